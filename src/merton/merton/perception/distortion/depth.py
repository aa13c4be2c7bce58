"""Faults of depth images: holes, quantisation, an offset and a wrong scale.

Values hold at every width: holes are shares of the image, disparities those of a D455 at the reference width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.perception.distortion.faults import Fault, Levels
from merton.registry import Registry

Depth = NDArray[np.float32]
"""Distances along the optical axis [m], shape (height, width); 0 is none."""

DepthOperation = Callable[[Depth, float, np.random.Generator], Depth]
"""(depth, level value > 0, generator) to a new depth of the same shape; pixels without depth stay without."""

PATCHES_ACROSS = 20
"""Patches, with or without depth, side by side in an image. Ours: each about the size of a cube's image from 1 m."""
FOCAL_BASELINE_PX_M = 36.6
"""Focal length times baseline of a D455 at the reference width: 385 px (an 80 degrees wide picture) times 0.095 m."""


@dataclass(frozen=True)
class DepthFault(Fault):
    """A fault of each depth image on its own.

    Attributes:
        apply: the operation itself; `DistortionSetting.apply_depth` calls it.
    """

    category: ClassVar[str] = "depth"
    apply: DepthOperation


DEPTH_FAULTS: Registry[DepthFault] = Registry("fault of depth")
"""Name to entry."""


def register(unit: str, levels: Levels) -> Callable[[DepthOperation], DepthOperation]:
    """Decorator that registers a function under its own name."""
    return DEPTH_FAULTS.function(
        lambda name, description, operation: DepthFault(name, levels, unit, description, True, operation)
    )


@register("share of the pixels", (0.1, 0.2, 0.4, 0.7, 0.9))
def depth_holes(depth_m: Depth, share: float, rng: np.random.Generator) -> Depth:
    """Patches without depth, as on surfaces that a stereo camera cannot match."""
    height, width = depth_m.shape
    rows = max(2, round(PATCHES_ACROSS * height / width))
    coarse = rng.standard_normal((rows, PATCHES_ACROSS), np.float32)
    field = np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR))
    count = round(share * field.size)
    holes = field <= np.partition(field, count, axis=None)[count]
    return np.where(holes, np.float32(0), depth_m)


@register("step of the disparity [px]", (1.5, 3.0, 6.0, 12.0, 24.0))
def depth_quantization(depth_m: Depth, step_px: float, rng: np.random.Generator) -> Depth:
    """Disparity in coarse steps: an error that grows with the square of the distance."""
    steps = np.zeros_like(depth_m)
    known = depth_m > 0
    farthest_m = np.float32(FOCAL_BASELINE_PX_M / step_px)
    np.divide(farthest_m, depth_m, out=steps, where=known)
    np.rint(steps, out=steps)
    return np.divide(farthest_m, steps, out=np.zeros_like(depth_m), where=known & (steps > 0))


@register("offset [m]", (0.005, 0.01, 0.02, 0.04, 0.08))
def depth_shift(depth_m: Depth, offset_m: float, rng: np.random.Generator) -> Depth:
    """Everything seems farther by a constant distance."""
    return np.where(depth_m > 0, depth_m + np.float32(offset_m), np.float32(0))


@register("relative error", (0.01, 0.02, 0.04, 0.08, 0.15))
def depth_scale(depth_m: Depth, error: float, rng: np.random.Generator) -> Depth:
    """Everything seems farther by a share of its distance, as with a wrong baseline."""
    return depth_m * np.float32(1 + error)
