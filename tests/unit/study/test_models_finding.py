"""The first sentence of a study of models."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from merton.study.models import ScoreTable
from merton.study.models_finding import NOTHING, models_finding


def table(scores: Mapping[str, float], level: int = 5, scatter: float = 0.0) -> ScoreTable:
    """Each model with this mean decision score in eight scenes."""
    rows = [
        (model, f"s{scene}", mean + scatter * (-1) ** scene) for model, mean in scores.items() for scene in range(8)
    ]
    names = [np.array([row[at] for row in rows], np.str_) for at in (0, 1)]
    same = [np.full(len(rows), word) for word in ("image", "pick", "decision")]
    values = np.array([row[2] for row in rows])
    return ScoreTable(names[0], names[1], same[0], same[1], same[2], np.full(len(rows), level), values)


def test_the_highest_is_named_with_interval_and_n() -> None:
    text = models_finding(table({"a": 0.6, "b": 0.9}, scatter=0.01))
    assert text.startswith("In decision b scores highest under distortion, 0.900 [0.8")
    assert text.endswith("(n = 8 in 8 scenes).")


def test_equal_models_are_not_told_apart_and_one_model_beats_nobody() -> None:
    assert "not told apart from b" in models_finding(table({"a": 0.7, "b": 0.7}, scatter=0.1))
    assert models_finding(table({"a": 0.7}, scatter=0.1)).startswith("In decision the one model, a, scores 0.700")


def test_undistorted_images_alone_resolve_nothing() -> None:
    assert models_finding(table({"a": 0.7}, level=0)) == NOTHING
