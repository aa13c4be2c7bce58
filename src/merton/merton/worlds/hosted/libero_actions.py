"""LIBERO's actions and Merton's rows: the conversion forward and back, which needs no LIBERO.

LIBERO's controller (robosuite's OSC_POSE at 20 Hz) takes seven numbers of -1 .. 1 and clips them: translation, 1 is
0.05 m, and a rotation vector, 1 is 0.5 rad, both along the axes of the world; and the gripper, -1 opens and +1 closes.
Merton's row is translation [m], rotation vector [rad], gripper 0 closed .. 1 open: its convention `libero_env`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

PERIOD_S = 0.05
LIMITS = np.array([0.05, 0.05, 0.05, 0.5, 0.5, 0.5])
"""A row's translation [m] and rotation [rad] at which an action is 1."""

SPREAD_FROM = (
    "1st to 99th percentile of the demonstrations of libero_spatial without idle steps"
    " (norm_stats libero_spatial_no_noops of openvla-7b-finetuned-libero-spatial)"
)
_Q01 = np.array([-0.7454732114, -0.6616071463, -0.9375, -0.1071428582, -0.2067857087, -0.1842857152])
_Q99 = np.array([0.9375, 0.8758928776, 0.9321428537, 0.1039285734, 0.1767857075, 0.1457142830])


def columns() -> list[dict[str, Any]]:
    """The columns of a row, as `ActionColumn`."""
    names, units = ("x", "y", "z", "rotation x", "rotation y", "rotation z"), ("m",) * 3 + ("rad",) * 3
    spreads = np.round((_Q99 - _Q01) * LIMITS, 4)
    moved = [
        {"name": name, "unit": unit, "low": -limit, "high": limit, "spread": spread}
        for name, unit, limit, spread in zip(names, units, LIMITS.tolist(), spreads.tolist(), strict=True)
    ]
    return [*moved, {"name": "gripper", "unit": "1", "low": 0.0, "high": 1.0, "spread": 1.0}]


def native(row: np.ndarray) -> np.ndarray:
    """LIBERO's action (7,) of Merton's row (7,), clipped as its controller does."""
    row = np.asarray(row, np.float64)
    return np.clip(np.append(row[:6] / LIMITS, 1.0 - 2.0 * row[6]), -1.0, 1.0)


def merton(action: np.ndarray) -> np.ndarray:
    """Merton's row (7,) of LIBERO's action (7,)."""
    action = np.clip(np.asarray(action, np.float64), -1.0, 1.0)
    return np.append(action[:6] * LIMITS, (1.0 - action[6]) / 2.0)
