"""A frame of a camera: pixels, depth, and the intrinsics that belong to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.world.camera_info import PLUMB_BOB
from merton.world.observation import Image, Intrinsics, check_picture


@dataclass(frozen=True)
class CameraFrame:
    """One picture of a camera, without its pose.

    Attributes:
        color: (height, width, 3) uint8 RGB.
        depth_mm: (height, width) uint16, millimetres along the optical axis, aligned to `color`, 0 where unknown; None
            if there is none.
        intrinsics: focal lengths and principal point of `color` [px].
        stamp_ns: time of exposure [ns]; the source says on which clock.
        distortion: coefficients of the lens, as `merton.world.camera_info.lens_of` gives them; empty for none.
        distortion_model: of the lens, as in a CameraInfo.

    Raises:
        InputError: as `merton.world.observation.check_picture`.
    """

    color: Image
    depth_mm: NDArray[np.uint16] | None
    intrinsics: Intrinsics
    stamp_ns: int
    distortion: tuple[float, ...] = ()
    distortion_model: str = PLUMB_BOB

    def __post_init__(self) -> None:
        check_picture(self.color, self.depth_mm, self.intrinsics)
