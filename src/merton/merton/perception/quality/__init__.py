"""Metrics of image quality, with or without a reference image: one registry, `METRICS`.

They need OpenCV and numpy alone, `brisque` the extra `quality` besides. `learned` holds metrics that are trained on
opinions.
"""

from merton.perception.quality.metric import Metric
from merton.perception.quality.registry import METRICS, measure, no_reference_metrics

__all__ = [
    "METRICS",
    "Metric",
    "catalogue",
    "fidelity",
    "information",
    "learned",
    "measure",
    "naturalness",
    "no_reference_metrics",
    "pairs",
    "sample_pair",
]
