"""ALOHA of gym-aloha: two ViperX arms hand over a cube, or put a peg into a socket. Rows are places of joints.

Runs in an environment of its own with `gym-aloha`, which is not installed beside Merton.
"""

from __future__ import annotations

from typing import Any, ClassVar

import mujoco_state
import numpy as np
from gym_aloha.constants import START_ARM_POSE, normalize_puppet_gripper_position
from gym_aloha.env import AlohaEnv
from gymnasium_world import GymnasiumWorld

JOINTS_RAD = {
    "waist": (-3.14158, 3.14158),
    "shoulder": (-1.85005, 1.25664),
    "elbow": (-1.76278, 1.6057),
    "forearm roll": (-3.14158, 3.14158),
    "wrist angle": (-1.8675, 2.23402),
    "wrist rotate": (-3.14158, 3.14158),
}
"""Joint to its least and greatest angle, of gym-aloha's vx300s_left.xml."""

CAMERAS = ("top", "angle", "front_close", "left_pillar", "right_pillar", "left_wrist", "right_wrist")
"""`top` is the one of the data sets."""

WIDTH_PX, HEIGHT_PX = 640, 480


class Aloha(GymnasiumWorld):
    """Both tasks of gym-aloha; grippers are 0 closed .. 1 open. There is no expert, and no tool of the one arm."""

    tasks: ClassVar = {
        "transfer-cube": "pick up the red cube with the right arm and hand it over to the left arm",
        "insertion": "pick up the peg and the socket and put the peg into the socket",
    }
    max_rows = 400  # as in ACT, Zhao et al. 2023; gym-aloha registers 300
    columns: ClassVar = [
        column
        for side in ("left", "right")
        for column in (
            *(
                {"name": f"{side} {joint}", "unit": "rad", "low": low, "high": high, "spread": high - low}
                for joint, (low, high) in JOINTS_RAD.items()
            ),
            {"name": f"{side} gripper", "unit": "1", "low": 0, "high": 1, "spread": 1},
        )
    ]
    period_s = 0.02
    camera = "top"
    packages = ("gym-aloha", "dm-control", "mujoco", "gymnasium", "numpy")

    def cameras(self) -> list[dict[str, Any]]:
        return [{"name": name, "width_px": WIDTH_PX, "height_px": HEIGHT_PX} for name in CAMERAS]

    def versions(self) -> dict[str, str]:
        return {**super().versions(), "renderer": mujoco_state.renderer()}

    def make(self, task: str) -> AlohaEnv:
        return _Unseen(task.replace("-", "_"), obs_type="pixels_agent_pos")

    def look(self, camera: str) -> np.ndarray:
        return self._physics.render(height=HEIGHT_PX, width=WIDTH_PX, camera_id=camera)

    def state(self) -> dict[str, Any]:
        rest = self._rows[-1] if self._rows else START_ROW
        joints = np.concatenate([self.observation[:6], self.observation[7:13]])
        return {"joints_rad": joints, "rest_row": rest, "extra": {"agent_pos": self.observation}}

    def progress(self) -> float:
        """gym-aloha's own stages, 0 .. 4: touched, lifted, brought together, done."""
        return self.env.stage / 4

    def save(self) -> Any:
        model, data = self._physics.model.ptr, self._physics.data.ptr
        kept = tuple(self._rows), self.observation, self.info, self.env.stage
        return self._at, mujoco_state.saved(model, data), kept

    def load(self, snapshot: Any) -> None:
        at, physics, kept = snapshot
        if at != self._at:
            self._begin(*at)
        mujoco_state.restore(self._physics.model.ptr, self._physics.data.ptr, physics)
        rows, self.observation, self.info, self.env.stage = kept
        self._rows = list(rows)

    @property
    def _physics(self) -> Any:
        return self.env._env.physics


class _Unseen(AlohaEnv):
    """gym-aloha's environment, which draws nothing unless it is asked: its own draws three pictures in each step.

    Attributes:
        stage: the reward of the last step, 0 .. 4.
    """

    stage = 0

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.stage = 0
        return super().reset(seed=seed, options=options)

    def step(self, action: np.ndarray) -> Any:
        result = super().step(action)
        self.stage = result[1]
        return result

    def _make_env_task(self, task_name: str) -> Any:
        env = super()._make_env_task(task_name)
        env.task.get_observation = env.task.get_qpos
        return env

    def _format_raw_obs(self, raw_obs: np.ndarray) -> np.ndarray:
        return raw_obs


def _start_row() -> np.ndarray:
    grippers = [normalize_puppet_gripper_position(START_ARM_POSE[place]) for place in (6, 14)]
    return np.array([*START_ARM_POSE[:6], grippers[0], *START_ARM_POSE[8:14], grippers[1]])


START_ROW = _start_row()
"""Where a trial begins."""
