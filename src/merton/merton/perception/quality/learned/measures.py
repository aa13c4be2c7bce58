"""Local measures of an image: the fixed first layer of Merton's own learned metrics.

Ours. In every cell of 8 x 8 pixels: brightness and colour, and how strong edges, corners and grain are, in luma and
chroma and at up to three scales, as logarithms, because what is noticed of a change is its ratio (Weber's law). They
are 21 numbers for 64 pixels of 3 channels, are computed once for an image however often a network is trained, and see
blur, noise, lost colour and the borders of blocks by construction.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.world.observation import Image

CELL_PX = 8
"""Side of a cell."""
ROWS_PX = 240
"""An image with a longer shorter side is reduced to it. Ours: the scale at which Merton's own models look; noise that a
model averages away is then averaged away here too, and the time does not grow with the camera."""
SMALLEST_SIDE_PX = 32
"""Images with a shorter side have too few cells for the networks."""

OF_ONE = 21
"""Measures of an image."""
OF_TWO = 6
"""Measures of the difference of two images."""

_FLOOR = 0.25
"""Added to a mean difference, in 8-bit units, before its logarithm: a quarter of the smallest step."""
_STEPS = 255 / np.log((128 + _FLOOR) / _FLOOR)
"""Units of a logarithm: differences of 0 to 128 become 0 to 255."""


def reduced(image: Image) -> Image:
    """The image at the scale of the measures, its sides multiples of a cell; what is left over is cut off evenly.

    Raises InputError for an image with a side below SMALLEST_SIDE_PX.
    """
    height, width = image.shape[:2]
    shorter = min(height, width)
    if shorter < SMALLEST_SIDE_PX:
        side = SMALLEST_SIDE_PX
        raise InputError(f"a metric of Merton's own needs at least {side} x {side} pixels, got {width} x {height}")
    if shorter > ROWS_PX:
        size = (max(1, round(width * ROWS_PX / shorter)), max(1, round(height * ROWS_PX / shorter)))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
        height, width = image.shape[:2]
    top, left = height % CELL_PX // 2, width % CELL_PX // 2
    return image[top : top + height - height % CELL_PX, left : left + width - width % CELL_PX]


def measures(image: Image) -> NDArray[np.uint8]:
    """The local measures (OF_ONE, height / 8, width / 8) of an image (height, width, 3) uint8 RGB.

    The size is that of `reduced`.
    """
    small = reduced(image)
    luma, red, blue = (np.asarray(plane, np.uint8) for plane in cv2.split(cv2.cvtColor(small, cv2.COLOR_RGB2YCrCb)))
    rows, columns = small.shape[0] // CELL_PX, small.shape[1] // CELL_PX
    brightest = cv2.max(cv2.max(small[..., 0], small[..., 1]), small[..., 2])
    darkest = cv2.min(cv2.min(small[..., 0], small[..., 1]), small[..., 2])
    plain = [_cells(plane, rows, columns) for plane in (luma, red, blue, brightest, darkest)]
    raised: list[NDArray[np.float32]] = []
    for scale in (1, 2, 4):
        across, down = _steps(luma, 1), _steps(luma, 0)
        curved = cv2.absdiff(luma, _small_blur(luma))
        raised += [_cells(each, rows, columns) for each in (across, down, curved)]
        if scale == 1:
            squares = np.square(curved, dtype=np.float32)
            raised.append(np.sqrt(_cells(squares, rows, columns)))
            raised += [_borders(across, 1, rows, columns), _borders(down, 0, rows, columns)]
        if scale < 4:
            for plane in (red, blue):
                raised.append(_cells(cv2.add(_steps(plane, 1), _steps(plane, 0)), rows, columns))
            luma, red, blue = (_half(plane) for plane in (luma, red, blue))
    return np.stack([*_rounded(plain), *_logarithms(raised)])


def differences(image: Image, reference: Image) -> NDArray[np.uint8]:
    """Measures (OF_TWO, height / 8, width / 8) of what is different between two images of the same size.

    Mean absolute differences of luma and both chroma planes, pixel by pixel; of luma and chroma after averaging over
    4 x 4 pixels, which ignores noise; and 1 minus the correlation of luma, as in SSIM's structure.
    """
    one, other = (np.asarray(cv2.cvtColor(reduced(each), cv2.COLOR_RGB2YCrCb), np.uint8) for each in (image, reference))
    rows, columns = one.shape[0] // CELL_PX, one.shape[1] // CELL_PX
    fine = _cells(cv2.absdiff(one, other), rows, columns)
    coarse_one, coarse_other = (_half(_half(each)) for each in (one, other))
    coarse = _cells(cv2.absdiff(coarse_one, coarse_other), rows, columns)
    chroma = cv2.max(np.ascontiguousarray(coarse[..., 1]), np.ascontiguousarray(coarse[..., 2]))
    raised = [fine[..., 0], fine[..., 1], fine[..., 2], coarse[..., 0], np.asarray(chroma, np.float32)]
    first, second = (each[..., 0].astype(np.float32) for each in (one, other))
    mean_first, mean_second = _cells(first, rows, columns), _cells(second, rows, columns)
    shared = _cells(first * second, rows, columns) - mean_first * mean_second
    power = (_cells(first * first, rows, columns) - mean_first**2) * (
        _cells(second * second, rows, columns) - mean_second**2
    )
    likeness = (shared + 4) / (np.sqrt(np.maximum(power, 0)) + 4)
    return np.stack([*_logarithms(raised), *_rounded([127.5 * (1 - likeness)])])


def _cells(plane: NDArray[Any], rows: int, columns: int) -> NDArray[np.float32]:
    """The mean of every cell."""
    cells = cv2.resize(plane.astype(np.float32), (columns, rows), interpolation=cv2.INTER_AREA)
    return np.asarray(cells, np.float32)


def _half(plane: NDArray[np.uint8]) -> NDArray[np.uint8]:
    size = (plane.shape[1] // 2, plane.shape[0] // 2)
    return np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), np.uint8)


def _steps(plane: NDArray[np.uint8], axis: int) -> NDArray[np.uint8]:
    """Absolute differences to the next pixel along an axis; 0 in the last row or column."""
    steps = np.zeros_like(plane)
    if axis:
        cv2.absdiff(plane[:, 1:], plane[:, :-1], dst=steps[:, :-1])
    else:
        cv2.absdiff(plane[1:], plane[:-1], dst=steps[:-1])
    return steps


def _small_blur(plane: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.asarray(cv2.blur(plane, (3, 3), borderType=cv2.BORDER_REFLECT), np.uint8)


def _borders(steps: NDArray[np.uint8], axis: int, rows: int, columns: int) -> NDArray[np.float32]:
    """Mean step from each cell's last row or column to the next cell: the borders of compression's blocks."""
    if axis:
        return steps[:, CELL_PX - 1 :: CELL_PX].reshape(rows, CELL_PX, columns).mean(1, dtype=np.float32)
    return steps[CELL_PX - 1 :: CELL_PX].reshape(rows, columns, CELL_PX).mean(2, dtype=np.float32)


def _logarithms(raised: list[NDArray[np.float32]]) -> list[NDArray[np.uint8]]:
    return _rounded([_STEPS * np.log(each / _FLOOR + 1) for each in raised])


def _rounded(planes: list[NDArray[np.float32]]) -> list[NDArray[np.uint8]]:
    return [np.clip(np.rint(plane), 0, 255).astype(np.uint8) for plane in planes]
