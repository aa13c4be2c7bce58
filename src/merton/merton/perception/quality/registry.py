"""The registry of metrics of image quality, with or without a reference image."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import wraps

import numpy as np

from merton.errors import InputError
from merton.perception.quality import faults, fidelity, information, naturalness
from merton.perception.quality.catalogue import CATALOGUE
from merton.perception.quality.learned import small
from merton.perception.quality.metric import Measure, Metric
from merton.registry import Registry
from merton.world.observation import Image


class _Metrics(Registry[Metric]):
    """The metrics that are measured here; a name of the catalogue `iqa` is found, too, but not listed."""

    def _found(self, name: str) -> Metric | None:
        if name in self._entries or name not in CATALOGUE:
            return self._entries.get(name)
        return CATALOGUE[name].metric()

    def _known(self) -> Iterable[str]:
        return *self._entries, *CATALOGUE


METRICS: Registry[Metric] = _Metrics("quality metric")
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
        InputError: not an image, no reference, a reference of another shape, an image too small for this metric, or
            one of which it is not defined.
        MissingDependencyError: the metric needs a package that is not installed.
        InfrastructureError: the server of a metric of the catalogue does not answer.
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


def _alone(function: Callable[[Image], float]) -> Measure:
    """A metric that looks at one image, in the form of all; it remains a function of the module that defines it."""

    @wraps(function)
    def measured(image: Image, _: Image) -> float:
        return function(image)

    return measured


def _kind(value: object) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__


for _metric in (
    Metric(
        "psnr", "higher", (0.0, math.inf), True, 1, "peak signal-to-noise ratio in dB", "", lambda: fidelity.psnr,
        paper="PSNR",
    ),
    Metric(
        "ssim", "higher", (-1.0, 1.0), True, 11, "structural similarity", "Wang et al. 2004", lambda: fidelity.ssim,
        paper="SSIM",
    ),
    Metric(
        "ms_ssim", "higher", (0.0, 1.0), True, 176, "structural similarity over five scales", "Wang et al. 2003",
        lambda: fidelity.ms_ssim,
    ),
    Metric(
        "vif", "higher", (0.0, math.inf), True, 41, "visual information fidelity in the pixel domain",
        "Sheikh and Bovik 2006", lambda: information.vif,
    ),
    Metric(
        "gmsd", "lower", (0.0, math.inf), True, 8, "deviation of the similarity of gradients", "Xue et al. 2014",
        lambda: information.gmsd,
    ),
    Metric(
        "brisque", "lower", (-math.inf, math.inf), False, 32, "naturalness of contrasts, learned from people on LIVE",
        "Mittal et al. 2012", naturalness.build_brisque,
        licence="package brisque: Apache-2.0; its numbers: LIVE, UT Austin, free for any purpose with their notice",
        paper="Brisque", extra="quality",
    ),
    Metric(
        "niqe-merton", "lower", (0.0, math.inf), False, 2 * naturalness.BLOCK_PX,
        "distance of contrasts from those of undistorted renderings of the cell", "Mittal et al. 2013",
        lambda: _alone(naturalness.niqe_merton),
    ),
    Metric(
        "blur_effect", "lower", (0.0, 1.0), False, 16, "perceived blur alone", "Crete et al. 2007",
        lambda: _alone(faults.blur_effect),
    ),
    Metric(
        "noise_sigma", "lower", (0.0, math.inf), False, 3, "estimated white noise alone", "Immerkaer 1996",
        lambda: _alone(faults.noise_sigma),
    ),
    Metric(
        "merton-nr", "higher", (0.0, 5.0), False, small.SMALLEST_SIDE_PX,
        "predicted decision score of robots' models, from the image alone", "",
        lambda: _alone(small.measure_alone), "no_reference",
    ),
    Metric(
        "merton-fr", "higher", (0.0, 5.0), True, small.SMALLEST_SIDE_PX,
        "predicted decision score of robots' models, from image and reference", "",
        lambda: small.measure_beside, "full_reference",
    ),
):  # fmt: skip
    METRICS.add(_metric.name, _metric)
