"""A second axis of severity: images pooled by quality, in place of the levels of their types."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from merton.errors import UnknownNameError
from merton.perception.dataset import layout
from merton.results.parquet import read_columns
from merton.study.outputs import DIMENSIONS
from merton_studies.opinions.opinion_tables import Opinions
from merton_studies.opinions.sensitivity import by_cell

METRICS = ("ssim", "psnr")
"""Columns of a manifest that a dataset may be pooled by; a higher value is a better image."""
COUNT = 5


def at_quality_levels(opinions: Opinions, dataset: Path, metric: str = "ssim") -> Opinions:
    """Opinions whose level is a fifth of their images by quality: 1 the best, 5 the worst.

    Ours, because a level of one type may be far from the same level of another. A type need not have images at every
    quality level. The classes of what is just noticeable are those of cells of type and quality level.

    Args:
        opinions: of the dataset.
        dataset: its folder.
        metric: one of `METRICS`.

    Raises:
        UnknownNameError: another metric.
        InputError: no such manifest.
    """
    if metric not in METRICS:
        raise UnknownNameError("metric of quality levels", metric, METRICS)
    table = read_columns(dataset / layout.MANIFEST, ("reference_id", "distortion", "level", metric))
    columns = [table.column(name).to_pylist() for name in ("reference_id", "distortion", "level", metric)]
    value_of = {(reference, name, level): value for reference, name, level, value in zip(*columns, strict=True)}
    keys = zip(opinions.reference_id.tolist(), opinions.distortion.tolist(), opinions.level.tolist(), strict=True)
    value = np.array([value_of[key] for key in keys])
    rank = rankdata(-value)
    level = 1 + np.minimum((COUNT * (rank - 0.5) / len(rank)).astype(np.int64), COUNT - 1)
    ends = {str(one): [float(value[level == one].min()), float(value[level == one].max())] for one in np.unique(level)}
    cognition, decision = (by_cell(opinions.value(stage), opinions.distortion_id, level) for stage in DIMENSIONS)
    about = {
        **opinions.about,
        "levels": COUNT,
        "quality_levels": {"fifths of the images by": metric, "lowest and highest value": ends},
    }
    return replace(opinions, level=level, about=about, jnd_cognition=cognition, jnd_decision=decision)
