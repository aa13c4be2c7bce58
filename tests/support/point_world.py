"""A world for tests of worlds in processes of their own: a point in a plane that goes to a goal, drawn with numpy.

It stands alone, as in another virtual environment. `trouble` makes it misbehave once its point has made `after` rows.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

import numpy as np

SIZE_PX = 64
NEAR = 0.05
LONGEST = 0.1


class Point:
    def __init__(self, trouble: str = "", after: int = 3, version: str = "1.0", scenes: int = 50) -> None:
        self.trouble, self.after, self.version, self.scenes = trouble, after, version, scenes
        if trouble == "cannot be built":
            raise RuntimeError("the assets are missing")
        if trouble == "prints":
            print("merton-world listens on 1.2.3.4:5")
            os.write(1, b"merton-world listens on 1.2.3.4:6\n")

    def describe(self) -> dict:
        columns = [{"name": name, "unit": "1", "low": -0.1, "high": 0.1, "spread": 0.1} for name in ("x", "y")]
        tasks = [
            {"name": name, "instruction": f"go to the {thing}", "scenes": self.scenes, "group": "go", "max_rows": 40}
            for name, thing in (("reach", "goal"), ("touch", "goal and away"))
        ]
        return {
            "cameras": [{"name": "above", "width_px": SIZE_PX, "height_px": SIZE_PX}],
            "tasks": tasks,
            "action": {"form": "rows", "columns": columns, "period_s": 0.1, "spread_from": "its range"},
            "frame": "the plane",
            "distorted_at": "as it is drawn",
            "versions": {"point": self.version, "numpy": np.__version__},
        }

    def reset(self, task: str, scene: int) -> str:
        generator = np.random.default_rng([scene, len(task)])
        self.task, self.rows, self.random = task, 0, generator
        self.point, self.goal = generator.uniform(-1, 1, 2), generator.uniform(-1, 1, 2)
        self.begun = float(np.linalg.norm(self.goal - self.point))
        return "go to the goal"

    def look(self, camera: str) -> np.ndarray:
        picture = np.full((SIZE_PX, SIZE_PX, 3), 255, np.uint8)
        for place, color in ((self.goal, (0, 160, 0)), (self.point, (200, 0, 0))):
            picture[self._disc(place)] = color
        if self._troubled("has a small picture"):
            return picture[::2, ::2]
        if self._troubled("fails in a look"):
            raise ValueError("no context\nof graphics")
        return picture

    def things(self, camera: str) -> np.ndarray:
        return self._disc(self.goal)

    def depth(self, camera: str) -> np.ndarray:
        return np.where(self._disc(self.point), 0.5, 1.0).astype(np.float32)

    def step(self, row: np.ndarray) -> str | None:
        self.rows += 1
        noise = self.random.normal(0, 0.001, 2)  # the state of a generator belongs to a fork
        self.point = self.point + np.clip(row, -LONGEST, LONGEST) + noise
        if self._troubled("fails"):
            raise KeyError("joint 7")
        if self._troubled("exits"):
            sys.exit("bye")
        if self._troubled("hangs"):
            time.sleep(3600)
        if self._troubled("hangs with the lock"):
            ctypes.PyDLL(None).sleep(3600)
        if self._troubled("is killed"):
            print("memory is short", file=sys.stderr)
            os.kill(os.getpid(), 9)
        if self._troubled("gives a reward"):
            return 0.5
        return "left the plane" if np.abs(self.point).max() > 3 else None

    def state(self) -> dict:
        x, y = self.point.tolist()
        tool = np.eye(4)
        tool[:2, 3] = x, y
        if self._troubled("has no state"):
            return None
        state = {"point": (x, y, 0.0), "rest_row": (0.0, 0.0), "base_from_tool": tool, "gripper_open": 0.5}
        state["extra"] = {"goal": self.goal.copy()}
        wrong = {
            "gives NaN": ("point", (x, float("nan"), 0.0)),
            "gives NaN in extra": ("extra", {"goal": [0.0, float("nan")]}),
            "has no rotation": ("base_from_tool", 2 * np.eye(4)),
            "opens too far": ("gripper_open", 1.5),
            "has another key": ("joints", [0.0]),
            "rests in three columns": ("rest_row", [0.0, 0.0, 0.0]),
        }
        if self._troubled(self.trouble) and self.trouble in wrong:
            key, value = wrong[self.trouble]
            state[key] = value
        return state

    def success(self) -> bool:
        if self._troubled("succeeds by a share"):
            return 0.3
        return bool(np.linalg.norm(self.goal - self.point) < NEAR)

    def progress(self) -> float:
        share = 1.0 - float(np.linalg.norm(self.goal - self.point)) / self.begun
        return -5.0 if self._troubled("has no share") else min(max(share, 0.0), 1.0)

    def save(self) -> object:
        return self.point.copy(), self.goal.copy(), self.rows, self.random.bit_generator.state, self.begun, self.task

    def load(self, snapshot: tuple) -> None:
        point, goal, self.rows, self.random.bit_generator.state, self.begun, self.task = snapshot
        self.point, self.goal = point.copy(), goal.copy()

    def expert(self) -> np.ndarray:
        return np.clip(self.goal - self.point, -LONGEST, LONGEST)

    def _troubled(self, trouble: str) -> bool:
        return self.trouble == trouble and self.rows >= self.after

    def _disc(self, place: np.ndarray) -> np.ndarray:
        axis = np.linspace(-1, 1, SIZE_PX)
        return (axis[None, :] - place[0]) ** 2 + (axis[:, None] + place[1]) ** 2 < 0.08**2


class Hand(Point):
    """The same point as a hand with a gripper, which Merton's tool deltas move."""

    def describe(self) -> dict:
        told = super().describe()
        columns = [{"name": f"c{number}", "unit": "1", "low": -0.1, "high": 1.0, "spread": 0.1} for number in range(7)]
        return {**told, "action": {**told["action"], "form": "tool_deltas", "columns": columns}}

    def state(self) -> dict:
        return {**super().state(), "rest_row": np.zeros(7)}

    def step(self, row: np.ndarray) -> str | None:
        return super().step(row[:2])

    def expert(self) -> np.ndarray:
        return np.array([*super().expert(), 0, 0, 0, 0, 1])


class Mute:
    """Has nothing but what every world must have; one scene, no point."""

    def describe(self) -> dict:
        found = Point().describe()
        return {**found, "tasks": found["tasks"][:1], "frame": ""}

    def reset(self, task: str, scene: int) -> str:
        return "wait"

    def look(self, camera: str) -> np.ndarray:
        return np.zeros((SIZE_PX, SIZE_PX, 3), np.uint8)

    def step(self, row: np.ndarray) -> None:
        return None

    def state(self) -> dict:
        return {}

    def success(self) -> bool:
        return False


class Boastful(Mute):
    def describe(self) -> dict:
        return {**super().describe(), "abilities": ["fork"]}


class Vague(Mute):
    def describe(self) -> None:
        return None


class Endless(Mute):
    def describe(self) -> dict:
        found = super().describe()
        del found["tasks"][0]["max_rows"]
        return found


class Odd(Mute):
    def describe(self) -> dict:
        return {**super().describe(), "versions": {"numpy": np.zeros(1)}}
