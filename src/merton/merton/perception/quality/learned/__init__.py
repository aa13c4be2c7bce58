"""Metrics of image quality that are trained on opinions: networks whose weights are a file.

`merton-nr` and `merton-fr` are small, run in plain numpy and ship with weights; training, and the others, need the
extra `iqa`.
"""

from merton.perception.quality.learned import cnniqa, lite, prepared, small, weights
from merton.perception.quality.learned.base import TRAINABLE, TrainableMetric, trainable

__all__ = ["TRAINABLE", "TrainableMetric", "cnniqa", "lite", "prepared", "small", "trainable", "weights"]
