"""How far a task of LIBERO has come, measured by its own goal; ours, since LIBERO itself only knows success."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

PLACES = ("on", "in")
RANGES = {
    "open": "default_open_ranges",
    "close": "default_close_ranges",
    "turnon": "default_turnon_ranges",
    "turnoff": "default_turnoff_ranges",
}


class Progress:
    """The way from the state at `begin` to the goal of the task; `first` is the distance to each part of it there.

    A share is the mean over the parts of the goal. A part that holds counts 1. Else it is, of a thing to be placed, the
    part of its first horizontal distance to its place that is gone, and of a joint, the part of its travel that is
    done, at most 0.99. None for a goal with a part of another kind.
    """

    def __init__(self, domain: Any) -> None:
        self._domain = domain
        self._parts = domain.parsed_problem["goal_state"]
        self._known = all(part[0] in PLACES or part[0] in RANGES for part in self._parts)
        self.first: list[float] = []

    def begin(self) -> None:
        """The way begins here."""
        self.first = [self._left(part) for part in self._parts] if self._known else []

    def share(self) -> float | None:
        """0 .. 1, and 1 only at success."""
        if not self.first:
            return None
        shares = []
        for part, first in zip(self._parts, self.first, strict=True):
            if self._domain._eval_predicate(part):
                shares.append(1.0)
            elif first <= 0:
                shares.append(0.0)
            else:
                shares.append(float(np.clip(1.0 - self._left(part) / first, 0.0, 0.99)))
        return float(np.mean(shares))

    def _left(self, part: list[str]) -> float:
        """The distance to the goal of a part, horizontal [m] or of a joint [m or rad]."""
        states = self._domain.object_states_dict
        if part[0] in PLACES:
            thing, place = (states[name].get_geom_state()["pos"] for name in part[1:])
            return float(np.linalg.norm((thing - place)[:2]))
        return min(self._joints_left(states[part[1]], part))

    def _joints_left(self, state: Any, part: list[str]) -> Iterator[float]:
        thing = self._domain.get_object(getattr(state, "parent_name", part[1]))
        low, high = sorted(thing.object_properties["articulation"][RANGES[part[0]]])
        joints = self._domain.get_object(part[1]).joints
        for joint in joints:
            position = float(self._domain.sim.data.get_joint_qpos(joint))
            yield max(low - position, position - high, 0.0)
