"""A frame of a camera: pixels, depth, and the intrinsics that belong to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.world.observation import Image, Intrinsics


@dataclass(frozen=True)
class CameraFrame:
    """One picture of a camera, without its pose.

    Attributes:
        color: (height, width, 3) uint8 RGB.
        depth_mm: (height, width) uint16, millimetres along the optical axis, aligned to `color`, 0 where unknown; None
            if there is none.
        intrinsics: focal lengths and principal point of `color` [px].
        stamp_ns: time of exposure [ns]; the source says on which clock.
        distortion: (k1, k2, p1, p2, k3) of the lens, as in a CameraInfo of the model plumb_bob; empty for none.
    """

    color: Image
    depth_mm: NDArray[np.uint16] | None
    intrinsics: Intrinsics
    stamp_ns: int
    distortion: tuple[float, ...] = ()
