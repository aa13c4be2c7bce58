"""Resizing of images for policy servers, with the filter and the rounding of their own clients."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from merton.world.observation import Image


def resize_with_padding(image: Image, height: int, width: int) -> Image:
    """An image (h, w, 3) uint8 RGB resized into (height, width) [px], centred on black, as openpi's clients do it.

    The filter is Pillow's BILINEAR: a triangle as wide as the reduction, columns first, rounded after each pass. It
    averages noise, which a bilinear filter that ignores the reduction would keep.
    """
    ratio = max(image.shape[1] / width, image.shape[0] / height)
    if image.shape[:2] == (height, width):
        return image
    inner_height, inner_width = int(image.shape[0] / ratio), int(image.shape[1] / ratio)
    sideways = image.astype(np.float32).transpose(1, 0, 2).reshape(image.shape[1], -1)
    narrow = _rounded(_weights(image.shape[1], inner_width) @ sideways).reshape(inner_width, -1, 3)
    upright = narrow.transpose(1, 0, 2).reshape(image.shape[0], -1)
    small = _rounded(_weights(image.shape[0], inner_height) @ upright).reshape(inner_height, inner_width, 3)
    top, left = (height - inner_height) // 2, (width - inner_width) // 2
    result = np.zeros((height, width, 3), np.uint8)
    result[top : top + inner_height, left : left + inner_width] = small
    return result


def _rounded(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.clip(np.floor(values + 0.5), 0.0, 255.0)


@lru_cache(maxsize=16)
def _weights(size: int, wanted: int) -> csr_array:
    """Weights of `size` pixels in each of the `wanted` ones, (wanted, size)."""
    scale = size / wanted
    width = max(scale, 1.0)
    centers = (np.arange(wanted) + 0.5) * scale
    weights = np.maximum(0.0, 1.0 - np.abs(np.arange(size) + 0.5 - centers[:, None]) / width)
    return csr_array((weights / weights.sum(axis=1, keepdims=True)).astype(np.float32))
