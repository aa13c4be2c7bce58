"""Camera frames from a folder of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from merton.errors import InputError
from merton.perception.camera.frame import CameraFrame
from merton.perception.images import read_image
from merton.world.observation import Intrinsics

SUFFIXES = (".jpeg", ".jpg", ".png")

D455_SENSOR_PX = (1280, 800)
"""Colour sensor of the D455, (width, height)."""

D455_FOCAL_PX = 640.0
"""Focal length at full resolution: half the width, which is a horizontal field of view of 90 degrees."""


class FolderCamera(Sequence[CameraFrame]):
    """The PNG and JPEG files of a folder in the order of their names; files are read on access.

    Stamps count from the first frame.

    Args:
        directory: the folder; hidden files and subfolders are left out.
        rate_hz: frame rate of the stamps, > 0.

    Raises:
        InputError: there is no such folder, no picture in it, or the rate is not positive.
    """

    def __init__(self, directory: str | Path, rate_hz: float = 30.0) -> None:
        self.directory = Path(directory)
        if not self.directory.is_dir():
            raise InputError(f"there is no folder {str(directory)!r} to play pictures from")
        if not (np.isfinite(rate_hz) and rate_hz > 0):
            raise InputError(
                f"the rate of a folder camera must be a positive number of frames a second, got {rate_hz!r}"
            )
        self.rate_hz = rate_hz
        self.files = sorted(
            file
            for file in self.directory.iterdir()
            if file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()
        )
        if not self.files:
            raise InputError(f"the folder {str(directory)!r} holds no picture; files must end in {', '.join(SUFFIXES)}")

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> CameraFrame:  # type: ignore[override]  # no slices
        """Frame number `index`; raises InputError naming the file if it cannot be read."""
        position = range(len(self.files))[index]
        color = read_image(self.files[position])
        intrinsics = d455_intrinsics(color.shape[1], color.shape[0])
        return CameraFrame(color, None, intrinsics, round(position * 1e9 / self.rate_hz))


def d455_intrinsics(width: int, height: int) -> Intrinsics:
    """Intrinsics of the D455 colour camera at a resolution of `width` x `height` pixels.

    The stream is the sensor (1280 x 800, 90 degrees across) scaled down until one side fits, the other one cropped
    around the centre: a focal length of 640 px at 1280x720, 384 at 640x480, 212 at 424x240. Pixel (0, 0) is the centre
    of the top left pixel, so the principal point is at ((width - 1) / 2, (height - 1) / 2).

    Raises:
        InputError: a side is not a positive integer.
    """
    for side in (width, height):
        if isinstance(side, bool) or not isinstance(side, (int, np.integer)) or side < 1:
            raise InputError(f"an image has a positive whole number of pixels a side, got {width!r} x {height!r}")
    focal_px = D455_FOCAL_PX * max(width / D455_SENSOR_PX[0], height / D455_SENSOR_PX[1])
    return Intrinsics(int(width), int(height), focal_px, focal_px, (width - 1) / 2, (height - 1) / 2)
