"""The first sentence of a study of models: the one that scores highest under distortion, stage by stage."""

from __future__ import annotations

import numpy as np

from merton.pages.words import interval_words, number
from merton.results.text import count_of, printable
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton.study.models import ScoreTable, stages

NOTHING = "No model has a score on a distorted image: nothing is resolved until distorted images are scored."


def models_finding(table: ScoreTable) -> str:
    """A sentence with, for each stage, the model with the highest mean score on distorted images, its interval and n.

    Means are 0 to 1; 95 % intervals are clustered by scene. Models whose intervals overlap that of the first are
    counted as not told apart from it.
    """
    parts = [part for stage in stages(table) if (part := _of_stage(table, stage))]
    if not parts:
        return NOTHING
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _of_stage(table: ScoreTable, stage: str) -> str:
    rows = (table.dimension == stage) & (table.level > 0)
    means: dict[str, tuple[float, Interval, int, int]] = {}
    for model in np.unique(table.model[rows]).tolist():
        own = rows & (table.model == model)
        scores, scenes = table.score[own].tolist(), table.scene[own].tolist()
        means[model] = float(np.mean(scores)), mean_interval(scores, scenes), len(scores), len(set(scenes))
    if not means:
        return ""
    first, *others = sorted(means, key=lambda model: (-means[model][0], model))
    mean, interval, n, scenes = means[first]
    size = f"{number(mean, 3)} {interval_words(interval, 3)} (n = {count_of(n, scenes)})"
    if not others:
        return f"in {stage} the one model, {printable(first, 40)}, scores {size} under distortion"
    rivals = [model for model in others if means[model][1][1] >= interval[0]]
    doubt = ""
    if rivals:
        more = f" and {len(rivals) - 1} more" if len(rivals) > 1 else ""
        doubt = f", not told apart from {printable(rivals[0], 40)}{more}"
    return f"in {stage} {printable(first, 40)} scores highest under distortion, {size}{doubt}"
