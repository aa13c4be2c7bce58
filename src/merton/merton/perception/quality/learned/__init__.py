"""Metrics of image quality that are trained on opinions: networks whose weights are a file.

`merton-nr` and `merton-fr` are small, run in plain numpy and ship with weights; training, and the others, need the
extra `iqa`; those of `ELSEWHERE` need an environment of their own.
"""

from merton.perception.quality.learned import cnniqa, elsewhere, lite, prepared, small, weights
from merton.perception.quality.learned.base import ELSEWHERE, TRAINABLE, TrainableMetric, trainable

__all__ = [
    "ELSEWHERE",
    "TRAINABLE",
    "TrainableMetric",
    "cnniqa",
    "elsewhere",
    "lite",
    "prepared",
    "small",
    "trainable",
    "weights",
]
