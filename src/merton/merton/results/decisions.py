"""The decisions that a run directory keeps of its trials: the first chunks, and the dimensions that never vary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from merton.errors import MertonError
from merton.results.records import TestCase
from merton.world.action import DIMENSION_NAMES, DIMENSIONS, ActionChunk, checked_chunk

STILL = 1e-6
"""A dimension of an action that varies by less [m, rad, share of the gripper's travel] does not vary."""


def stored_chunks(detail: Mapping[str, Any]) -> tuple[ActionChunk, ActionChunk] | None:
    """The first chunks of a trial.json, on the reference and on the distorted images; None unless it holds both."""
    decisions = detail.get("decision")
    found: list[ActionChunk | None] = []
    if isinstance(decisions, dict):
        found = [_chunk(decisions.get(side), decisions.get("spread")) for side in ("reference", "distorted")]
    chunks = [chunk for chunk in found if chunk is not None]
    return (chunks[0], chunks[1]) if len(chunks) == 2 else None


def inert_dimensions(decided: Iterable[tuple[TestCase, Sequence[ActionChunk]]]) -> tuple[str, ...]:
    """The dimensions of `DIMENSION_NAMES` with one value in all chunks, the gripper's at their ends.

    Ours: the end is where the decision score reads the gripper. Of chunks of a world with an action space, nothing is
    said: the description of the world says which columns never vary.

    Args:
        decided: chunks of one agent by test case; of fewer than two scenes or tasks, nothing is known.
    """
    scenes = set()
    least, most = np.full(DIMENSIONS, np.inf), np.full(DIMENSIONS, -np.inf)
    for case, chunks in decided:
        scenes.add(case.reference)
        for deltas in (chunk.deltas for chunk in chunks if len(chunk.deltas) and chunk.spread is None):
            last = deltas[-1:, -1]
            least = np.minimum(least, [*deltas[:, :-1].min(axis=0), *last])
            most = np.maximum(most, [*deltas[:, :-1].max(axis=0), *last])
    if len(scenes) < 2:
        return ()
    return tuple(name for name, range_ in zip(DIMENSION_NAMES, most - least, strict=True) if 0.0 <= range_ < STILL)


def _chunk(stored: object, spread: object) -> ActionChunk | None:
    if not isinstance(stored, dict) or "deltas" not in stored:
        return None
    try:
        chunk = checked_chunk(
            stored["deltas"], float(stored.get("step_s", 1.0)), frame=str(stored.get("frame", "base_link"))
        )
        return replace(chunk, spread=tuple(map(float, spread))) if isinstance(spread, list) else chunk
    except (MertonError, TypeError, ValueError):
        return None
