"""Pixels in the wrong place, lost, or too few."""

from __future__ import annotations

from functools import partial

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.perception.distortion.base import register
from merton.perception.distortion.noise import normal_values
from merton.perception.distortion.scale import at_reference, enlarged_field, reference_size
from merton.world.observation import Image

CONCEALED_SHARES = (0.05, 0.1, 0.2, 0.35, 0.5)
"""Larger, because a lost block that was filled in shows less."""
BLOCK_SHARES = (0.02, 0.05, 0.1, 0.2, 0.35)
MID_GRAY = 128


@register(
    "22",
    "spatial",
    levels=(0.05, 0.1, 0.2, 0.5, 1),
    unit="jitter of one pass [px]",
    source="KADID-10k 19",
    stochastic=True,
    kadid=(0.05, 0.1, 0.2, 0.5, 1),
)
def clock_jittering(image: Image, jitter_px: float, rng: np.random.Generator, scale: float) -> Image:
    """Pixels read at slightly wrong places, each on its own, as with an unsteady sampling clock.

    KADID-10k warps five times in a row; ours is one warp with the deviation of the five together.
    """
    height, width = image.shape[:2]
    drawn_height, drawn_width = reference_size(image, scale)
    drawn = normal_values((2 * drawn_height, drawn_width), rng)
    drawn *= np.float32(np.sqrt(5.0) * jitter_px * scale)
    across = enlarged_field(drawn[:drawn_height], (height, width))
    down = enlarged_field(drawn[drawn_height:], (height, width))
    x = across + np.arange(width, dtype=np.float32)
    y = down + np.arange(height, dtype=np.float32)[:, None]
    moved = cv2.remap(image, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
    return np.asarray(moved, dtype=np.uint8)


@register(
    "23", "spatial", levels=BLOCK_SHARES, unit="share of the blocks", source="Ours: no public set", stochastic=True
)
def block_exchange(image: Image, share: float, rng: np.random.Generator, scale: float) -> Image:
    """Macro blocks that have swapped places in random pairs, as after addressing errors in a stream."""
    side = block_side_px(image, scale)
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
def block_lost(image: Image, share: float, rng: np.random.Generator, scale: float) -> Image:
    """Macro blocks that never arrived, shown mid-grey."""
    received, _ = _blocks_with_losses(image, share, rng, scale)
    return received[: image.shape[0], : image.shape[1]].copy()


@register(
    "25", "spatial", levels=CONCEALED_SHARES, unit="share of the blocks", source="Ours: no public set", stochastic=True
)
def block_interpolation(image: Image, share: float, rng: np.random.Generator, scale: float) -> Image:
    """Lost macro blocks filled in from the pixels around them, the nearer side weighing more.

    Sides that are lost as well or lie outside the image do not count; a block that has none left is mid-grey.
    """
    from merton.perception.distortion.compiled import fill_lost_blocks  # here: loading numba takes half a second

    received, lost = _blocks_with_losses(image, share, rng, scale)
    fill_lost_blocks(received, lost, block_side_px(image, scale), MID_GRAY)
    return received[: image.shape[0], : image.shape[1]].copy()


@register(
    "26", "spatial", levels=CONCEALED_SHARES, unit="share of the blocks", source="Ours: no public set", stochastic=True
)
def block_repeat(image: Image, share: float, rng: np.random.Generator, scale: float) -> Image:
    """Lost macro blocks replaced by a copy of the nearest block that did arrive."""
    from scipy.ndimage import distance_transform_edt  # here: everything that names distortions imports this file

    received, lost = _blocks_with_losses(image, share, rng, scale)
    row, column = distance_transform_edt(lost, return_distances=False, return_indices=True)
    blocks = _as_blocks(received, block_side_px(image, scale))
    blocks[lost] = blocks[row[lost], column[lost]]
    return received[: image.shape[0], : image.shape[1]].copy()


@register(
    "27",
    "spatial",
    levels=(1.5, 2, 3, 5, 8),
    unit="factor between the resolutions",
    source="Ours; KADID-10k 21 keeps .95 - x ** .6 of a side, shown as squares",
    kadid=(1 / 0.887, 1 / 0.784, 1 / 0.699, 1 / 0.569, 1 / 0.290),
)
def resolution_limit(image: Image, factor: float, _: np.random.Generator, scale: float) -> Image:
    """A camera of lower resolution: averaged down, then interpolated back to size."""
    return at_reference(image, scale, partial(_limited, factor=factor))


def _limited(image: Image, factor: float) -> Image:
    height, width = image.shape[:2]
    small = cv2.resize(image, (round(width / factor), round(height / factor)), interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.uint8)


@register(
    "28",
    "spatial",
    levels=(20, 16, 13, 10, 7),
    unit="number of thresholds",
    source="KADID-10k 22; ours evenly spaced: no flicker in a video",
    continuous=False,
    kadid=(20, 16, 13, 10, 7),
)
def grayscale_quantization(image: Image, thresholds: float, _: np.random.Generator, __: float) -> Image:
    """Too few brightness steps: each channel cut at n thresholds into n + 1 values."""
    step = 255.0 / thresholds
    table = np.rint(np.rint(np.arange(256) / step) * step).astype(np.uint8)
    return np.asarray(cv2.LUT(image, table), dtype=np.uint8)


def block_side_px(image: Image, scale: float) -> int:
    """Side of a macro block [px]: 16 at the reference width, as in MPEG and H.264, at most a quarter of the image."""
    return min(round(16 * scale), min(image.shape[:2]) // 4)


def _lost_grid(image: Image, share: float, rng: np.random.Generator, side: int) -> NDArray[np.bool_]:
    """Whether each block is lost, (block rows, block columns): a random share of them, at least one.

    With the same seed the blocks of a lower share are among those of a higher one.
    """
    rows, columns = -(-image.shape[0] // side), -(-image.shape[1] // side)
    lost = np.zeros(rows * columns, dtype=bool)
    lost[rng.permutation(lost.size)[: max(1, round(share * lost.size))]] = True
    return lost.reshape(rows, columns)


def _blocks_with_losses(
    image: Image, share: float, rng: np.random.Generator, scale: float
) -> tuple[Image, NDArray[np.bool_]]:
    """A copy of the image extended to whole blocks, lost ones mid-grey, and which are lost (block rows, columns)."""
    side = block_side_px(image, scale)
    lost = _lost_grid(image, share, rng, side)
    height, width = image.shape[:2]
    beyond = ((0, len(lost) * side - height), (0, lost.shape[1] * side - width), (0, 0))
    received = np.pad(image, beyond, mode="edge")
    _as_blocks(received, side)[lost] = MID_GRAY
    return received, lost


def _as_blocks(image: Image, side: int) -> Image:
    """The same memory as (block rows, block columns, side, side, 3); whole blocks only."""
    rows, columns = image.shape[0] // side, image.shape[1] // side
    return image.reshape(rows, side, columns, side, 3).swapaxes(1, 2)
