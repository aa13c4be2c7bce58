"""The recent motion of the arm: speeds and distances over the cell's clock, in the form the page draws them."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from merton.execution.gate.collision import Guard
from merton.execution.kinematics import base_from_tcp
from merton.world.cell import CellConfig

BUCKET_S = 0.1
"""There is one row for this much of the cell's clock [s]; the greatest value within it is kept, so no peak is lost."""
MOST_ROWS = 300
SMALL_STEP_S = 1e-4
"""The speed of the tool is the difference of two positions that lie this far apart [s]."""
COLUMNS = (
    "stamp_s",
    *(f"joint_{number}_deg_s" for number in range(1, 7)),
    "tool_mm_s",
    "height_mm",
    "clearance_mm",
)


class MotionLog:
    """Rows of `COLUMNS`, the newest last: at most `MOST_ROWS`, of motion and rest alike, in the order of the clock.

    A clock that steps back, as when the graph is started anew, empties the log. A state with the stamp of the last one
    changes nothing: a cell at rest repeats its last state.
    """

    def __init__(self, cell: CellConfig) -> None:
        self._guard, self._cell = Guard(cell), cell
        self._rows: deque[list[float]] = deque(maxlen=MOST_ROWS)
        self._last_s = -np.inf

    @property
    def rows(self) -> list[list[float]]:
        """Of `COLUMNS`, rounded to what can be read on the page."""
        return [[round(row[0], 2), *(round(value, 1) for value in row[1:])] for row in self._rows]

    def add(self, stamp_s: float, joints_rad: ArrayLike, speeds_rad_s: ArrayLike, opening_m: float) -> None:
        """Add a state of the arm.

        Args:
            stamp_s: on the cell's clock [s].
            joints_rad: (6,) [rad].
            speeds_rad_s: (6,) [rad/s].
            opening_m: of the gripper [m].
        """
        if stamp_s == self._last_s:
            return
        if stamp_s < self._last_s:
            self._rows.clear()
        self._last_s = stamp_s
        joints, speeds = np.asarray(joints_rad, float), np.asarray(speeds_rad_s, float)
        height_mm = 1e3 * float(base_from_tcp(joints, self._cell)[2, 3])
        tool_mm_s = 1e3 * tool_speed_m_s(joints, speeds, self._cell)
        clearance_mm = 1e3 * self._guard.clearance(joints, opening_m).distance_m
        row = [stamp_s, *np.degrees(speeds).tolist(), tool_mm_s, height_mm, clearance_mm]
        if self._rows and int(self._rows[-1][0] / BUCKET_S) == int(stamp_s / BUCKET_S):
            row = _merged(self._rows.pop(), row)
        self._rows.append(row)


def tool_speed_m_s(joints_rad: ArrayLike, speeds_rad_s: ArrayLike, cell: CellConfig) -> float:
    """Speed of the tool centre point in `base_link` [m/s], for joints (6,) [rad] and their speeds (6,) [rad/s]."""
    joints, speeds = np.asarray(joints_rad, float), np.asarray(speeds_rad_s, float)
    here, soon = base_from_tcp(np.stack([joints, joints + speeds * SMALL_STEP_S]), cell)[:, :3, 3]
    return float(np.linalg.norm(soon - here)) / SMALL_STEP_S


def _merged(old: list[float], new: list[float]) -> list[float]:
    """One row of two: the greater speeds, the newer height, the smaller distance."""
    speeds = [max(pair, key=abs) for pair in zip(old[1:8], new[1:8], strict=True)]
    return [old[0], *speeds, new[8], min(old[9], new[9])]
