"""Action sequences that no client should send, for the tests of the gate."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

KINDS = ("garbage", "poison", "huge", "walk", "jitter", "dive", "sweep", "fold", "grasp")
"""Kinds of sequences: no array at all, numbers that are none, far too large, plausible, alternating, into the
table, into a wall, into itself, and with a gripper that opens and closes."""

_POISON = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e30, 5e-324)


def count(variable: str, default: int) -> int:
    """A whole number of a test, such as its sequences: that of an environment variable, or the default."""
    return int(os.environ.get(variable, default))


@dataclass(frozen=True)
class Sequence:
    """An output of a model, which may be wrong in value and in type."""

    kind: str
    deltas: Any
    step_s: Any
    frame: Any


class Rude:
    """Raises an error of its own when it is converted."""

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise RuntimeError("not today")


def sequence(rng: np.random.Generator) -> Sequence:
    """A sequence of a kind drawn at random."""
    kind = str(rng.choice(KINDS))
    frame = str(rng.choice(["base_link", "tcp"]))
    step_s = float(rng.choice([0.002, 0.05, 0.1, 0.2, 0.2, 0.5, rng.uniform(0.001, 1.0)]))
    n = int(rng.integers(1, 13))
    if kind in ("dive", "sweep", "fold"):
        step_s = max(step_s, 0.15)  # slow enough to get there
    if kind == "garbage":
        return _garbage(rng, n)
    deltas = np.zeros((n, 7))
    deltas[:, 6] = float(rng.integers(0, 2))
    scale = 10.0 ** rng.uniform(-3, 0)
    if kind == "huge":
        deltas[:, :6] = rng.normal(0, 10.0 ** rng.uniform(0, 12), (n, 6))
    elif kind == "jitter":
        deltas[:, :3] = rng.normal(0, 0.05 * scale, 3) * (-1.0) ** np.arange(n)[:, None]
        deltas[:, 3:6] = rng.normal(0, 0.2 * scale, 3) * (-1.0) ** np.arange(n)[:, None]
    elif kind == "dive":
        deltas[:, :3] = rng.normal(0, 0.01, (n, 3))
        deltas[:, 2] -= rng.uniform(0.0, 0.08)
    elif kind == "sweep":
        heading = rng.normal(0, 1, 3) * (1, 1, 0.3)
        deltas[:, :3] = rng.uniform(0.02, 0.08) * heading / np.linalg.norm(heading)
    elif kind == "fold":
        deltas[:, :3] = rng.uniform(-0.05, 0.05, 3)
        deltas[:, 3:6] = rng.uniform(-0.2, 0.2, 3)
    else:  # a walk, perhaps poisoned, perhaps with a busy gripper
        deltas[:, :3] = rng.normal(0, 0.04 * scale, (n, 3))
        deltas[:, 3:6] = rng.normal(0, 0.1 * scale, (n, 3))
    if kind == "grasp":
        deltas[:, 6] = rng.uniform(0, 1, n).round(int(rng.integers(0, 3)))
    if kind == "poison":
        deltas[rng.integers(n), rng.integers(7)] = rng.choice(_POISON)
    return Sequence(kind, deltas, step_s, frame)


def _garbage(rng: np.random.Generator, n: int) -> Sequence:
    deltas: list[Any] = [
        None, "nonsense", b"\x00", {}, [[1, 2], [3]], [[None] * 7], Rude(), [Rude()], 10**400, 1 + 1j, np.zeros(7),
        np.zeros((n, 6)), np.zeros((2, n, 7)), np.zeros((1000, 7)), np.full((n, 7), "x"), np.zeros((0, 7)), [],
        np.zeros((n, 7), dtype=complex), np.zeros((n, 7), dtype=bool), np.array(["NaT"] * 7, dtype="datetime64[s]"),
    ]  # fmt: skip
    steps: list[Any] = [0.2, 0.0, -1.0, np.nan, np.inf, None, "soon", 1e-300, 1e300, [0.2], 10**400]
    frames: list[Any] = ["base_link", "tcp", "world", None, 3, np.zeros(3), ["tcp"]]
    which = rng.integers(0, 4)
    return Sequence(
        "garbage",
        deltas[rng.integers(len(deltas))] if which != 1 else np.zeros((n, 7)),
        steps[rng.integers(len(steps))] if which in (1, 3) else 0.2,
        frames[rng.integers(len(frames))] if which in (2, 3) else "base_link",
    )
