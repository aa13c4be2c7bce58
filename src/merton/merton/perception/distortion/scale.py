"""Levels hold at a reference width; at another width every length in pixels follows, so that a level means the same.

The scale of an image is its number of pixels per pixel of the same image at the reference width. A narrower image
(scale < 1) is enlarged to the reference width, distorted there and averaged down again. In a wider one, a thing with a
size (a blur, a shift, a macro block) becomes `scale` times as large; values drawn for each pixel (noise, jitter) are
drawn at the reference width and enlarged by `enlarged_field`, so that a grain is as large as a reference pixel; and
an operation that depends on resolution as a whole (codecs, networks) works on the image at the reference width:
`at_reference`. A gentle curve of each value, such as a change of brightness, is the same at every width.
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.world.observation import Image

REFERENCE_WIDTH_PX = 640
"""Width at which Merton's level values hold. Ours: the most common width of the D455's modes (640 x 480 and 640 x 360,
colour and depth). Values taken from KADID-10k are its own pixel values at this width."""

KADID_WIDTH_PX = 512
"""Width of KADID-10k's images (512 x 384; Lin, Hosu and Saupe 2019), at which its own level values hold."""

SMALLEST_SIDE_PX = 16
"""Images smaller than this hold less than one macro block, so block distortions would have nothing to act on."""

LARGEST_SIDE_PX = 16383
"""The limit of WebP."""

SMALLEST_SCALE = 1 / 8
"""Narrower images are not enlarged further: hardly any detail is left for a level to act on."""


def scale_of(image: NDArray[np.generic], reference_width_px: float) -> float:
    """Pixels of an image (height, width, ...) per pixel at the reference width, 1 at the reference width itself.

    Limited so that the image at the reference width has sides of 16 .. 16383 pixels, and to at least 1/8.
    """
    height, width = image.shape[:2]
    largest = min(height, width) / SMALLEST_SIDE_PX
    smallest = max(SMALLEST_SCALE, max(height, width) / LARGEST_SIDE_PX)
    return min(max(width / reference_width_px, smallest), largest)


def reference_size(image: NDArray[np.generic], scale: float) -> tuple[int, int]:
    """(height, width) of an image at the reference width [px]."""
    return round(image.shape[0] / scale), round(image.shape[1] / scale)


def at_reference(image: Image, scale: float, operation: Callable[[Image], Image]) -> Image:
    """An operation on the image at the reference width, its result brought back to the size of the image.

    A wider image is averaged down, and comes back without the detail that the reference width does not hold. A narrower
    one is enlarged so that averaging down gives it back: bicubic, corrected once by the error that averaging shows.
    """
    if scale == 1:
        return operation(image)
    size = reference_size(image, scale)
    if scale > 1:
        return _interpolated(operation(averaged(image, size)), image.shape[:2])
    enlarged = _interpolated(image, size)
    error = cv2.subtract(image, averaged(enlarged, image.shape[:2]), dtype=cv2.CV_16S)
    corrected = cv2.add(enlarged, cv2.resize(error, size[::-1], interpolation=cv2.INTER_CUBIC), dtype=cv2.CV_8U)
    return averaged(operation(np.asarray(corrected, dtype=np.uint8)), image.shape[:2])


def enlarged_field(field: cv2.typing.MatLike, size: tuple[int, int]) -> cv2.typing.MatLike:
    """Values of each pixel at the reference width, (height, width, ...), in a wider image of `size` (height, width).

    Each value stands for a square of the image. Pixels that lie in two squares get the mean, weighted by area.
    """
    if field.shape[:2] == size:
        return field
    return cv2.resize(field, size[::-1], interpolation=cv2.INTER_AREA)


def averaged(image: cv2.typing.MatLike, size: tuple[int, int]) -> Image:
    """An image (height, width, ...) averaged down to `size` (height, width); the image itself if it has that size."""
    if image.shape[:2] != size:
        image = cv2.resize(image, size[::-1], interpolation=cv2.INTER_AREA)
    return np.asarray(image, dtype=np.uint8)


def _interpolated(image: Image, size: tuple[int, int]) -> Image:
    return np.asarray(cv2.resize(image, size[::-1], interpolation=cv2.INTER_CUBIC), dtype=np.uint8)
