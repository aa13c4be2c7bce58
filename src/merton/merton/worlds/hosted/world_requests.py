"""Requests to a world, answered by the work that is common to all worlds: the trial, its end, snapshots, the expert."""

from __future__ import annotations

import copy
import traceback
from typing import Any

import numpy as np

LONGEST_REASON = 1000
"""Characters of an error's text in a reply."""
ABILITIES = {
    "fork": ("save", "load"),
    "expert": ("expert", "save", "load"),
    "depth": ("depth",),
    "things": ("things",),
    "progress": ("progress",),
}
"""Ability of a world to the methods that it takes."""
NEEDED = ("describe", "reset", "look", "step", "state", "success")
"""Methods of every world."""
STATE = ("joints_rad", "base_from_tool", "point", "rest_row")
"""Keys of a state whose values are arrays."""


class HostError(ValueError):
    """The world cannot be served, or a request cannot be answered."""


class Trial:
    """The trial under way.

    Attributes:
        task: its name.
        rows: carried out so far.
        success: whether it was ever reached.
        ended: why no more rows are carried out; "" while the trial goes on.
    """

    def __init__(self, task: str, max_rows: int) -> None:
        self.task, self.max_rows = task, max_rows
        self.rows, self.success, self.ended = 0, False, ""


class Hosted:
    """A world and the work that is common to all: the latch of success, the step limit, snapshots, its expert.

    An error in the world ends the trial: only `reset` begins another one.

    Raises:
        HostError: the world lacks one of the methods `NEEDED`.
    """

    def __init__(self, world: Any) -> None:
        self._world = world
        lacks = [f"{method}()" for method in NEEDED if not self._has(method)]
        if lacks:
            raise HostError("the class {} lacks {}".format(type(world).__name__, " and ".join(lacks)))
        self._trial: Any = None
        self._snapshots: dict = {}
        self._count = 0
        self._max_rows: dict = {}
        self._requests: dict = {
            "describe": self.describe,
            "reset": self.reset,
            "look": self.look,
            "things": self.things,
            "carry_out": self.carry_out,
            "save": self.save,
            "load": self.load,
            "expert": self.expert,
        }

    def answer(self, request: Any) -> dict:
        """The reply to a request {"do": name, its arguments, "drop": numbers of snapshots that are of no more use}.

        A reply is {"ok": values} or {"error": a sentence}.
        """
        try:
            request = dict(request)
            for number in request.pop("drop", ()):
                self._snapshots.pop(number, None)
            name = request.pop("do", None)
            if name not in self._requests:
                raise HostError("unknown request {!r}; choose one of: {}".format(name, ", ".join(self._requests)))
            return {"ok": self._requests[name](**request)}
        except Exception as error:
            self._trial = None
            if not isinstance(error, HostError):
                traceback.print_exc()
            return {"error": described(error)}

    def forget(self) -> None:
        """A new client comes: it has no trial and no snapshots."""
        self._trial = None
        self._snapshots.clear()

    def describe(self) -> dict:
        """The world's own description, with its abilities."""
        found = dict(_dictionary("describe()", self._world.describe()))
        able = [name for name, methods in ABILITIES.items() if all(map(self._has, methods))]
        for name in found.setdefault("abilities", able):
            if name in ABILITIES and name not in able:
                methods = " and ".join(f"{method}()" for method in ABILITIES[name])
                raise HostError(f"the description has the ability {name!r}, which takes {methods}")
        # a task without them is refused by Merton, which tells of every mistake in a description
        self._max_rows = {
            task["name"]: task["max_rows"] for task in found.get("tasks") or () if {"name", "max_rows"} <= set(task)
        }
        return found

    def reset(self, task: str, scene: int) -> dict:
        """Begin a trial."""
        self._trial = None
        if not self._max_rows:
            self.describe()
        instruction = self._world.reset(task, scene)
        self._trial = Trial(task, self._max_rows[task])
        self._trial.success = self._success()
        return {"instruction": instruction, "now": self._now()}

    def look(self, camera: str, depth: bool) -> dict:
        """A picture, and its depth if asked for."""
        self._under_way()
        color = np.asarray(self._world.look(camera))
        return {"color": color, "depth_m": np.asarray(self._world.depth(camera)) if depth else None}

    def things(self, camera: str) -> dict:
        """The pixels of things."""
        self._under_way()
        return {"things": np.asarray(self._world.things(camera))}

    def carry_out(self, rows: np.ndarray) -> dict:
        """Carry out rows until the trial ends."""
        trial = self._under_way()
        points = []
        done = 0
        for row in rows:
            if trial.ended:
                break
            self._step(row)
            done += 1
            point = _dictionary("state()", self._world.state()).get("point")
            if point is not None:
                points.append(np.asarray(point, np.float64))
        path = np.stack(points) if points else np.zeros((0, 3))
        return {"rows": done, "points": path, "ended": trial.ended, "now": self._now()}

    def save(self) -> dict:
        """Keep the state between two rows; its number."""
        trial = copy.copy(self._under_way())
        self._count += 1
        self._snapshots[self._count] = self._world.save(), trial
        return {"snapshot": self._count}

    def load(self, snapshot: int) -> dict:
        """Go back to a state that was kept."""
        if snapshot not in self._snapshots:
            raise HostError(f"there is no snapshot {snapshot!r}")
        state, trial = self._snapshots[snapshot]
        self._world.load(state)
        self._trial = copy.copy(trial)
        return {"now": self._now()}

    def expert(self, rows: int) -> dict:
        """The rows that the world's expert would carry out from here, until the trial would end."""
        trial = copy.copy(self._under_way())
        state = self._world.save()
        found: list = []
        while len(found) < rows and not self._trial.ended:
            found.append(np.array(self._world.expert(), np.float64))
            if len(found) < rows:
                self._step(found[-1])
        self._world.load(state)
        self._trial = trial
        return {"rows": np.stack(found) if found else None}

    def close(self) -> None:
        """End the world."""
        if self._has("close"):
            self._world.close()

    def _has(self, method: str) -> bool:
        return callable(getattr(self._world, method, None))

    def _under_way(self) -> Trial:
        if self._trial is None:
            raise HostError("no trial is under way: only reset begins one")
        return self._trial

    def _step(self, row: np.ndarray) -> None:
        trial = self._trial
        ended = self._world.step(np.array(row, np.float64))
        if not (ended is None or isinstance(ended, str)):
            raise HostError(f"step() gives None, or a text that ends the trial, and it gave {_shown(ended)}")
        trial.rows += 1
        trial.success = trial.success or ended == "success" or self._success()
        if trial.success:
            trial.ended = "success"
        elif ended or trial.rows >= trial.max_rows:
            trial.ended = ended or "step limit"

    def _success(self) -> bool:
        found = self._world.success()
        if not isinstance(found, (bool, np.bool_)):  # a share or a reward would count as success
            raise HostError(f"success() gives True or False, and it gave {_shown(found)}")
        return bool(found)

    def _now(self) -> dict:
        """What a client may ask next, so that it need not."""
        state = dict(_dictionary("state()", self._world.state()))
        for key in STATE:
            if state.get(key) is not None:
                state[key] = np.asarray(state[key], np.float64)
        if state.get("extra") is not None:
            state["extra"] = {key: np.asarray(value, np.float64) for key, value in state["extra"].items()}
        progress = self._world.progress() if self._has("progress") else None
        return {"state": state, "success": self._trial.success, "progress": progress}


def _dictionary(method: str, given: Any) -> dict:
    if not isinstance(given, dict):
        raise HostError(f"{method} gives a dictionary, and it gave {_shown(given)}")
    return given


def _shown(value: Any) -> str:
    return f"{value!r:.60} of type {type(value).__name__}" if value is not None else "None"


def described(error: BaseException) -> str:
    """An error on one line; of the world's code also its type, file and line."""
    text = " ".join(str(error).split())[:LONGEST_REASON]
    if isinstance(error, HostError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {text}{place}"
