"""Pixels in the wrong place, lost, or too few."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.observation import Image
from merton.perception.distortion.base import register

BLOCK_SHARES = (0.02, 0.05, 0.1, 0.2, 0.35)
MID_GRAY = 128


@register(
    "23", "spatial", levels=BLOCK_SHARES, unit="share of the blocks", source="Ours: no public set", stochastic=True
)
def block_exchange(image: Image, share: float, rng: np.random.Generator) -> Image:
    """Macro blocks that have swapped places in random pairs, as after addressing errors in a stream."""
    side = block_side_px(image)
    rows, columns = image.shape[0] // side, image.shape[1] // side  # only whole blocks can be swapped
    pairs = max(1, round(share * rows * columns / 2))
    chosen = rng.permutation(rows * columns)[: 2 * pairs]  # a prefix: the same seed at a higher level swaps these too
    first, second = np.divmod(chosen[0::2], columns), np.divmod(chosen[1::2], columns)
    exchanged = image.copy()
    whole = exchanged[: rows * side, : columns * side].reshape(rows, side, columns, side, 3).swapaxes(1, 2)
    whole[first], whole[second] = whole[second], whole[first]  # fancy indexing on the right makes copies
    return exchanged


@register(
    "24", "spatial", levels=BLOCK_SHARES, unit="share of the blocks", source="Ours: no public set", stochastic=True
)
def block_lost(image: Image, share: float, rng: np.random.Generator) -> Image:
    """Macro blocks that never arrived, shown mid-grey."""
    lossy = image.copy()
    lossy[lost_blocks(image, share, rng)] = MID_GRAY
    return lossy


@register(
    "27",
    "spatial",
    levels=(1.5, 2, 3, 5, 8),
    unit="factor between the resolutions",
    source="Ours: no public set",
)
def resolution_limit(image: Image, factor: float, _: np.random.Generator) -> Image:
    """A camera of lower resolution: averaged down, then interpolated back to size."""
    height, width = image.shape[:2]
    small = cv2.resize(image, (round(width / factor), round(height / factor)), interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.uint8)


@register(
    "28",
    "spatial",
    levels=(20, 16, 13, 10, 7),
    unit="number of thresholds",
    source="KADID-10k 22; ours evenly spaced, so that a video does not flicker as thresholds follow the content",
)
def grayscale_quantization(image: Image, thresholds: float, _: np.random.Generator) -> Image:
    """Too few brightness steps: each channel cut at n thresholds into n + 1 values."""
    step = 255.0 / thresholds
    table = np.rint(np.rint(np.arange(256) / step) * step).astype(np.uint8)
    return np.asarray(cv2.LUT(image, table), dtype=np.uint8)


def block_side_px(image: Image) -> int:
    """Side of a macro block [px]: 16 as in MPEG and H.264, smaller where an image would hold fewer than 4 by 4."""
    return min(16, min(image.shape[:2]) // 4)


def lost_blocks(image: Image, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Mask (height, width) of a random share of the macro blocks, at least one; blocks at the border may be cut.

    With the same seed the blocks of a lower share are among those of a higher one.
    """
    side = block_side_px(image)
    height, width = image.shape[:2]
    rows, columns = -(-height // side), -(-width // side)
    lost = np.zeros(rows * columns, dtype=bool)
    lost[rng.permutation(lost.size)[: max(1, round(share * lost.size))]] = True
    return lost.reshape(rows, columns).repeat(side, axis=0).repeat(side, axis=1)[:height, :width]
