"""MetaWorld's 50 tasks (v3), each in 50 scenes, with the scripted policies that come with them as experts.

Runs in an environment of its own with `metaworld` 3.1.1, which is not installed beside Merton.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from importlib.metadata import version
from typing import Any

import metaworld
import mujoco
import mujoco_state
import numpy as np
from metaworld.policies import ENV_POLICY_MAP

INSTRUCTIONS = {
    "assembly-v3": "put the ring of the wrench over the peg",
    "basketball-v3": "drop the ball through the hoop",
    "bin-picking-v3": "move the cube from the red bin into the blue bin",
    "box-close-v3": "put the lid on the box",
    "button-press-topdown-v3": "press the button from above",
    "button-press-topdown-wall-v3": "press the button behind the wall from above",
    "button-press-v3": "press the button",
    "button-press-wall-v3": "press the button behind the wall",
    "coffee-button-v3": "press the button of the coffee machine",
    "coffee-pull-v3": "pull the mug away from the coffee machine to the goal",
    "coffee-push-v3": "push the mug under the coffee machine",
    "dial-turn-v3": "turn the dial",
    "disassemble-v3": "lift the ring of the wrench off the peg",
    "door-close-v3": "close the door",
    "door-lock-v3": "lock the door by turning its knob",
    "door-open-v3": "open the door",
    "door-unlock-v3": "unlock the door by turning its knob",
    "drawer-close-v3": "close the drawer",
    "drawer-open-v3": "open the drawer",
    "faucet-close-v3": "turn the faucet clockwise",
    "faucet-open-v3": "turn the faucet anticlockwise",
    "hammer-v3": "hit the nail with the hammer",
    "hand-insert-v3": "put the hand into the hole",
    "handle-press-side-v3": "press the handle down from the side",
    "handle-press-v3": "press the handle down",
    "handle-pull-side-v3": "pull the handle up from the side",
    "handle-pull-v3": "pull the handle up",
    "lever-pull-v3": "pull the lever up",
    "peg-insert-side-v3": "put the peg into the hole in the side of the box",
    "peg-unplug-side-v3": "pull the plug out of the side of the box",
    "pick-out-of-hole-v3": "pick the cube out of the hole",
    "pick-place-v3": "pick up the cylinder and bring it to the goal",
    "pick-place-wall-v3": "lift the cylinder over the wall and bring it to the goal",
    "plate-slide-back-side-v3": "slide the plate out of the goal to the side",
    "plate-slide-back-v3": "slide the plate out of the goal backwards",
    "plate-slide-side-v3": "slide the plate sideways into the goal",
    "plate-slide-v3": "slide the plate into the goal",
    "push-back-v3": "pull the block back to the goal",
    "push-v3": "push the cylinder to the goal",
    "push-wall-v3": "push the cylinder around the wall to the goal",
    "reach-v3": "reach the goal with the hand",
    "reach-wall-v3": "reach the goal behind the wall with the hand",
    "shelf-place-v3": "put the cube onto the shelf",
    "soccer-v3": "push the ball into the goal",
    "stick-pull-v3": "pull the thermos with the stick",
    "stick-push-v3": "push the thermos with the stick",
    "sweep-into-v3": "sweep the cube into the hole",
    "sweep-v3": "sweep the cube off the table",
    "window-close-v3": "close the window",
    "window-open-v3": "open the window",
}
"""Ours, because MetaWorld has none."""

CAMERAS = {"corner2": ("corner2", True), "corner4": ("corner4", True), "gripper_pov": ("gripperPOV", False)}
"""Name to MetaWorld's own, and whether its picture comes upside down and is turned by 180 degrees. corner4 is corner2
moved to (0.75, 0.075, 0.7) m, as most data sets have it. The hand's picture has no upright."""

SCENES = 50  # of each task, MetaWorld's own number
SEED = 42  # that the scenes are drawn with, LeRobot's
ROWS = 500  # SawyerXYZEnv.max_path_length
WAY_M = 0.01  # of 1 of MetaWorld's own action, SawyerXYZEnv.action_scale
PERIOD_S = 0.0125  # 5 steps of 2.5 ms
KEPT = 3  # environments that stay built: one with its renderer takes some 190 MB
STAGE = ("world", "tablelink", "RetainingWall", "base", "mocap", "wall", "")  # roots of bodies that no task is about

SPREADS = {"x": 0.02, "y": 0.02, "z": 0.02, "gripper": 1.0}
SPREAD_FROM = (
    "20268 rows of MetaWorld's own experts in 5 scenes of each of the 50 tasks; the hand never turns, so rotations are "
    "not carried out"
)


class MetaWorld:
    """All 50 tasks. A policy sees pictures; the place of the goal is in the observation, which the expert alone reads.

    Attributes:
        size_px: width and height of every picture.
    """

    def __init__(self, size_px: int = 256) -> None:
        self.size_px = size_px
        self._benches: OrderedDict[str, _Bench] = OrderedDict()
        self._at = ("", 0)

    def describe(self) -> dict[str, Any]:
        size = {"width_px": self.size_px, "height_px": self.size_px}
        return {
            "cameras": [{"name": name, **size} for name in CAMERAS],
            "tasks": [
                {"name": name, "instruction": words, "scenes": SCENES, "group": name, "max_rows": ROWS}
                for name, words in INSTRUCTIONS.items()
            ],
            "action": action_space(),
            "frame": "MetaWorld's world [m]",
            "distorted_at": "The picture as MuJoCo draws it, turned upright, before the policy resizes or crops it.",
            "abilities": ["fork", "expert", "depth", "things", "progress"],
            "versions": {
                **{name: version(name) for name in ("metaworld", "mujoco", "gymnasium", "numpy")},
                "renderer": mujoco_state.renderer(),
            },
        }

    def reset(self, task: str, scene: int) -> str:
        self._bench, self._at = self._bench_of(task), (task, scene)
        env = self._bench.env
        env.set_task(self._bench.scenes[scene])
        self._obs, _ = env.reset()
        mujoco.mj_fwdPosition(env.model, env.data)  # MetaWorld leaves what it moved last where it was drawn
        self._open = 1.0  # MetaWorld's reset opens the gripper
        self._info = env.evaluate_state(self._obs, np.zeros(4))[1]
        self._start = float(self._info["obj_to_target"])
        return INSTRUCTIONS[task]

    def look(self, camera: str) -> np.ndarray:
        return self._drawn(camera)

    def depth(self, camera: str) -> np.ndarray:
        """Distances along the optical axis [m]."""
        self._bench.renderer.enable_depth_rendering()
        try:
            return self._drawn(camera)
        finally:
            self._bench.renderer.disable_depth_rendering()

    def things(self, camera: str) -> np.ndarray:
        """Pixels of everything on the table but walls, and of marks such as the goal."""
        self._bench.renderer.enable_segmentation_rendering()
        try:
            ids, kinds = np.moveaxis(self._drawn(camera), 2, 0)
        finally:
            self._bench.renderer.disable_segmentation_rendering()
        shown = np.zeros(ids.shape, dtype=bool)
        for kind, named in self._bench.things.items():
            shown[kinds == kind] = named[ids[kinds == kind]]
        return shown

    def step(self, row: np.ndarray) -> str | None:
        native = np.clip([*row[:3] / WAY_M, 1 - 2 * row[6]], -1, 1)
        self._obs, _, _, truncated, self._info = self._bench.env.step(native)
        self._open = float(row[6])
        return "step limit" if truncated else None

    def state(self) -> dict[str, Any]:
        env = self._bench.env
        pose = np.eye(4)
        pose[:3, :3] = env.data.body("hand").xmat.reshape(3, 3)
        pose[:3, 3] = env.tcp_center
        return {
            "base_from_tool": pose,
            "gripper_open": float(self._obs[3]),
            "point": pose[:3, 3].tolist(),
            "rest_row": np.array([0, 0, 0, 0, 0, 0, self._open], dtype=float),
            "extra": {"agent_pos": self._obs[:4].copy()},  # as LeRobot's MetaWorld names hand and gripper
        }

    def success(self) -> bool:
        return bool(self._info["success"])

    def progress(self) -> float | None:
        """1 - the distance to the target as a share of that at the start; None in five tasks, which measure none."""
        if self._start == 0:
            return None
        if self.success():  # which is within a margin of the target
            return 1.0
        return float(np.clip(1 - self._info["obj_to_target"] / self._start, 0, 1))

    def save(self) -> dict[str, Any]:
        env = self._bench.env
        return {
            "at": self._at,
            "physics": mujoco_state.integration_state(env.model, env.data),
            "fields": {name: copy.copy(value) for name, value in vars(env).items() if _is_plain(value)},
            "own": copy.deepcopy((self._obs, self._info, self._open)),
        }

    def load(self, snapshot: dict[str, Any]) -> None:
        if snapshot["at"] != self._at:
            self.reset(*snapshot["at"])  # places of fixed bodies are in the model, not in the state
        env = self._bench.env
        mujoco_state.set_integration_state(env.model, env.data, snapshot["physics"])
        vars(env).update({name: copy.copy(value) for name, value in snapshot["fields"].items()})
        self._obs, self._info, self._open = copy.deepcopy(snapshot["own"])

    def expert(self) -> np.ndarray:
        native = np.clip(self._bench.policy.get_action(self._obs), -1, 1)
        return np.array([*native[:3] * WAY_M, 0, 0, 0, (1 - native[3]) / 2], dtype=float)

    def close(self) -> None:
        while self._benches:
            self._benches.popitem()[1].renderer.close()

    def _bench_of(self, task: str) -> _Bench:
        if task not in self._benches:
            if len(self._benches) == KEPT:
                self._benches.popitem(last=False)[1].renderer.close()
            self._benches[task] = _Bench(task, self.size_px)
        self._benches.move_to_end(task)
        return self._benches[task]

    def _drawn(self, camera: str) -> np.ndarray:
        name, turned = CAMERAS[camera]
        self._bench.renderer.update_scene(self._bench.env.data, camera=name)
        picture = self._bench.renderer.render()
        return picture[::-1, ::-1].copy() if turned else picture


class _Bench:
    """The environment of one task with its scenes, expert and renderer."""

    def __init__(self, task: str, size_px: int) -> None:
        benchmark = metaworld.MT1(task, seed=SEED)
        self.env, self.scenes = benchmark.train_classes[task](), benchmark.train_tasks
        self.policy = ENV_POLICY_MAP[task]()
        model = self.env.model
        self.renderer = mujoco.Renderer(model, size_px, size_px)
        named = np.array([model.body(root).name not in STAGE for root in model.body_rootid])
        on_world = np.array([root == 0 for root in model.body_rootid])
        self.things = {
            mujoco.mjtObj.mjOBJ_GEOM: named[model.geom_bodyid],
            mujoco.mjtObj.mjOBJ_SITE: (named | on_world)[model.site_bodyid],
        }


def action_space() -> dict[str, Any]:
    """Tool deltas, of which MetaWorld carries out the way and the gripper."""
    way = [{"name": name, "unit": "m", "low": -WAY_M, "high": WAY_M, "spread": SPREADS[name]} for name in "xyz"]
    turn = [{"name": f"rotation {name}", "unit": "rad", "low": -1, "high": 1, "spread": 0} for name in "xyz"]
    gripper = {"name": "gripper", "unit": "1", "low": 0, "high": 1, "spread": SPREADS["gripper"]}
    columns = [*way, *turn, gripper]
    return {"form": "tool_deltas", "columns": columns, "period_s": PERIOD_S, "spread_from": SPREAD_FROM}


def _is_plain(value: Any) -> bool:
    """Whether an attribute is a number of the environment's own, not a window on MuJoCo's memory."""
    if not isinstance(value, np.ndarray):
        return isinstance(value, (bool, int, float, str, tuple, np.generic, type(None)))
    while isinstance(value.base, np.ndarray):
        value = value.base
    return value.base is None
