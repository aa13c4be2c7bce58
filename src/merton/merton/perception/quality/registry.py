"""The registry of metrics of image quality, with or without a reference image."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from merton.errors import InputError
from merton.perception.quality import faults, fidelity
from merton.registry import Registry
from merton.world.observation import Image

Measure = Callable[[Image, Image], float]
"""(image, reference) to value; a metric without a reference ignores the second."""


@dataclass(frozen=True)
class Metric:
    """One way to measure quality.

    Attributes:
        name: such as "ssim".
        better: whether a "higher" or a "lower" value means a better image.
        range: smallest and largest possible value.
        needs_reference: whether it compares with an undistorted image.
        smallest_side_px: images with a shorter side cannot be measured.
        description: one line, with the source.
        build: returns the function that measures; raises MissingDependencyError if something must be installed.
        licence: of weights or code that it brings; "" if there are none but Merton's own.
    """

    name: str
    better: Literal["higher", "lower"]
    range: tuple[float, float]
    needs_reference: bool
    smallest_side_px: int
    description: str
    build: Callable[[], Measure]
    licence: str = ""


METRICS: Registry[Metric] = Registry("quality metric")
"""Name to entry."""


def no_reference_metrics() -> list[str]:
    """The names of the metrics that need no reference image."""
    return [name for name, metric in METRICS.items() if not metric.needs_reference]


def measure(name: str, image: Image, reference: Image | None = None) -> float:
    """The value of a metric.

    Args:
        name: one of `METRICS`.
        image: (height, width, 3) uint8 RGB.
        reference: the undistorted image, same shape; only for metrics that need it, else left out or ignored.

    Raises:
        UnknownNameError: no such metric.
        InputError: not an image, no reference, a reference of another shape, or an image too small for this metric.
        MissingDependencyError: the metric needs a package that is not installed.
    """
    metric = METRICS[name]
    if metric.needs_reference and reference is None:
        raise InputError(f"{name} compares with a reference image, and none was given")
    other = image if reference is None or not metric.needs_reference else reference
    for candidate in (image, other):
        if not isinstance(candidate, np.ndarray) or candidate.dtype != np.uint8 or candidate.shape[2:] != (3,):
            raise InputError(f"{name} takes uint8 (height, width, 3) RGB images, got {_kind(candidate)}")
    if image.shape != other.shape:
        raise InputError(f"image {image.shape} and reference {other.shape} must have the same shape")
    if min(image.shape[:2]) < metric.smallest_side_px:
        side = metric.smallest_side_px
        raise InputError(f"{name} needs at least {side} x {side} pixels, got {image.shape[1]} x {image.shape[0]}")
    return metric.build()(image, other)


def _kind(value: object) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__


for _metric in (
    Metric("psnr", "higher", (0.0, math.inf), True, 1, "peak signal-to-noise ratio in dB", lambda: fidelity.psnr),
    Metric("ssim", "higher", (-1.0, 1.0), True, 11, "structural similarity, Wang et al. 2004", lambda: fidelity.ssim),
    Metric(
        "ms_ssim", "higher", (0.0, 1.0), True, 176, "SSIM over five scales, Wang et al. 2003", lambda: fidelity.ms_ssim,
    ),
    Metric(
        "vif", "higher", (0.0, math.inf), True, 41,
        "visual information fidelity in the pixel domain, Sheikh and Bovik 2006, by torchmetrics; needs .[quality]",
        fidelity.build_vif,
    ),
    Metric(
        "blur_effect", "lower", (0.0, 1.0), False, 16, "perceived blur alone, Crete et al. 2007",
        lambda: lambda image, _: faults.blur_effect(image),
    ),
    Metric(
        "noise_sigma", "lower", (0.0, math.inf), False, 3, "estimated white noise alone, Immerkaer 1996",
        lambda: lambda image, _: faults.noise_sigma(image),
    ),
):  # fmt: skip
    METRICS.add(_metric.name, _metric)
