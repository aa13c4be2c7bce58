"""mAP of the Waymo Open Motion Dataset, scenario by scenario, from hits and misses (AGI-Elo, B.5.2 and eq. 22).

Whether a predicted trajectory is a miss is Waymo's own rule (its distance to the real one at 3, 5 and 8 s, along and
across the heading, by the speed at the start) and comes from its evaluation. Of a scenario taken alone the paper says
no more; ours: the mean is over the buckets that have an object in it, and the area is that under the precision made
monotone, as Waymo's interpolation has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from merton.errors import InputError, UnknownNameError
from merton.results.tables import name_in, number_in, read_rows

BUCKETS = (
    "stationary",
    "straight",
    "straight-left",
    "straight-right",
    "left",
    "right",
    "left u-turn",
    "right u-turn",
)
"""Shapes of real trajectories, each of which has an AP of its own."""

Guess = tuple[str, float, bool]
"""Object, confidence 0..1, and whether the trajectory is a miss."""


def values(predictions: Path, truth: Path | None = None) -> dict[tuple[str, str], float]:
    """(agent, scenario) to its mAP, 0..1, from a table of predicted trajectories, a row each.

    An agent needs a trajectory of each object that any agent of the file has one of.
    Columns: case (the scenario), object, bucket of its real trajectory, confidence, miss (0 or 1), perhaps agent.

    Raises:
        InputError: the table is invalid, an object is in two buckets, or an agent has no trajectory of one.
        UnknownNameError: no such bucket.
    """
    found: dict[tuple[str, str], dict[str, list[Guess]]] = {}
    bucket_of: dict[tuple[str, str], str] = {}
    for where, row in read_rows(predictions, ("case", "object", "bucket", "confidence", "miss"), ("agent",)):
        agent = name_in(where, row, "agent") if "agent" in row else predictions.stem
        case, object_, bucket = (name_in(where, row, name) for name in ("case", "object", "bucket"))
        if bucket not in BUCKETS:
            raise UnknownNameError(f"bucket ({where})", bucket, BUCKETS)
        if bucket_of.setdefault((case, object_), bucket) != bucket:
            raise InputError(f"{where}: object {object_!r} of {case!r} is in the bucket {bucket_of[case, object_]!r}")
        miss = number_in(where, row, "miss", 0.0, 1.0)
        if miss not in (0.0, 1.0):
            raise InputError(f"{where}: miss is {row['miss']!r}; it must be 0 or 1")
        guess = object_, number_in(where, row, "confidence", 0.0, 1.0), bool(miss)
        found.setdefault((agent, case), {}).setdefault(bucket, []).append(guess)
    objects: dict[str, set[str]] = {}
    for case, object_ in bucket_of:
        objects.setdefault(case, set()).add(object_)
    for (agent, case), buckets in found.items():
        there = {object_ for guesses in buckets.values() for object_, _, _ in guesses}
        if missing := sorted(objects[case] - there):
            raise InputError(f"{predictions}: agent {agent!r} predicts nothing of object {missing[0]!r} of {case!r}")
    return {
        key: float(np.mean([average_precision(guesses) for guesses in buckets.values()]))
        for key, buckets in found.items()
    }


def average_precision(guesses: Sequence[Guess]) -> float:
    """The area under the curve of precision and recall of one bucket.

    Of each object the most confident trajectory that is not a miss is right; all its others are wrong. Of trajectories
    of one confidence the misses come first (ours, so that the order of the rows plays no part).
    """
    objects = {object_ for object_, _, _ in guesses}
    taken: set[str] = set()
    right = []
    for object_, _, miss in sorted(guesses, key=lambda guess: (-guess[1], not guess[2], guess[0])):
        right.append(not miss and object_ not in taken)
        if not miss:
            taken.add(object_)
    hits = np.cumsum(right)
    precision = np.maximum.accumulate((hits / np.arange(1, len(hits) + 1))[::-1])[::-1]
    return float(precision[right].sum()) / len(objects)
