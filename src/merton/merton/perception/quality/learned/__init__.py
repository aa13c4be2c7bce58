"""Metrics of image quality that are trained on opinions: networks whose weights are a file."""

from merton.perception.quality.learned.base import TRAINABLE, TrainableMetric

__all__ = ["TRAINABLE", "TrainableMetric"]
