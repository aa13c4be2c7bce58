"""Loops over pixels that no function of numpy or OpenCV does in one pass, compiled by numba.

Imported where they are used, because numba takes half a second to load. `make setup` compiles them; elsewhere the first
call does, and keeps the result on disk. One thread, and no reordering of sums: every machine gives the same bytes.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from merton.world.observation import Image


@numba.njit(cache=True, nogil=True)
def color_cells(image: Image) -> Any:
    """The cube of colours cut into 32 cells a channel, and the pixels in each.

    Args:
        image: (height, width, 3) uint8.

    Returns:
        Cell of each pixel (height, width) uint16, number of pixels of each cell (32768,) int64, and sum of their
        channels (32768, 3) int64.
    """
    height, width = image.shape[:2]
    cells = np.empty((height, width), np.uint16)
    counts = np.zeros(32768, np.int64)
    sums = np.zeros((32768, 3), np.int64)
    for y in range(height):
        for x in range(width):
            red, green, blue = image[y, x, 0], image[y, x, 1], image[y, x, 2]
            cell = (np.int64(red) >> 3) << 10 | (np.int64(green) >> 3) << 5 | np.int64(blue) >> 3
            cells[y, x] = cell
            counts[cell] += 1
            sums[cell, 0] += red
            sums[cell, 1] += green
            sums[cell, 2] += blue
    return cells, counts, sums


@numba.njit(cache=True, nogil=True)
def fill_lost_blocks(image: Image, lost: NDArray[np.bool_], side: int, nothing: int) -> None:
    """Fill lost blocks from the pixels beside their four sides, in place; a nearer side weighs more.

    Args:
        image: (rows * side, columns * side, 3) uint8.
        lost: (rows, columns).
        side: of a block [px].
        nothing: value of a block whose neighbours are lost as well.
    """
    rows, columns = lost.shape
    weights = np.empty(side, np.float32)
    for index in range(side):
        weights[index] = np.float32(1) / np.float32(index + 1)
    little = np.float32(1e-6)
    for row in range(rows):
        for column in range(columns):
            if not lost[row, column]:
                continue
            top, left = row * side, column * side
            above = row > 0 and not lost[row - 1, column]
            below = row + 1 < rows and not lost[row + 1, column]
            before = column > 0 and not lost[row, column - 1]
            after = column + 1 < columns and not lost[row, column + 1]
            for y in range(side):
                for x in range(side):
                    for channel in range(3):
                        total, filled = little, np.float32(1e-6 * nothing)
                        if above:
                            filled += weights[y] * np.float32(image[top - 1, left + x, channel])
                            total += weights[y]
                        if below:
                            weight = weights[side - 1 - y]
                            filled += weight * np.float32(image[top + side, left + x, channel])
                            total += weight
                        if before:
                            filled += weights[x] * np.float32(image[top + y, left - 1, channel])
                            total += weights[x]
                        if after:
                            weight = weights[side - 1 - x]
                            filled += weight * np.float32(image[top + y, left + side, channel])
                            total += weight
                        image[top + y, left + x, channel] = np.uint8(np.rint(filled / total))


@numba.njit(cache=True, nogil=True)
def disk_mean(padded: Image, weights: NDArray[np.int32]) -> Any:
    """Weighted mean over a disk: sums of its full runs from running sums along the rows, its rim pixel by pixel.

    Args:
        padded: (height + 2 half, width + 2 half, 3) uint8.
        weights: (2 half + 1, 2 half + 1), symmetric left to right; pixels inside have the largest weight.

    Returns:
        (height, width, 3) uint8.
    """
    size = len(weights)
    half, full = size // 2, weights.max()
    height, width = padded.shape[0] - 2 * half, padded.shape[1] - 2 * half
    values = padded.reshape(len(padded), -1)  # channels beside one another
    before = np.zeros((len(padded), values.shape[1] + 3), np.int32)  # sum of the pixels left of each
    for y in range(len(padded)):
        for x in range(values.shape[1]):
            before[y, x + 3] = before[y, x] + values[y, x]
    result = np.empty((height, 3 * width), np.uint8)
    scale = np.float32(1) / np.float32(weights.sum())
    for y in range(height):
        total = np.zeros(3 * width, np.int32)
        for row in range(size):
            line, running = values[y + row], before[y + row]
            run = 0  # full weights right of the middle, the middle included
            while run <= half and weights[row, half + run] == full:
                run += 1
            if run:
                ends, starts = running[3 * (half + run) :], running[3 * (half - run + 1) :]
                for x in range(3 * width):
                    total[x] += full * (ends[x] - starts[x])
            for away in range(run, half + 1):
                weight = weights[row, half + away]
                if weight == 0:
                    break
                left, right = line[3 * (half - away) :], line[3 * (half + away) :]
                if away:
                    for x in range(3 * width):
                        total[x] += weight * (np.int32(left[x]) + np.int32(right[x]))
                else:
                    for x in range(3 * width):
                        total[x] += weight * np.int32(left[x])
        for x in range(3 * width):
            result[y, x] = np.uint8(np.rint(np.float32(total[x]) * scale))
    return result.reshape(height, width, 3)


@numba.njit(cache=True, nogil=True)
def line_mean(padded: Image, weights: NDArray[np.int32]) -> Any:
    """Weighted mean along a line, pixel by pixel of its kernel: as fast as the kernel has weights other than zero.

    Args:
        padded: (height + 2 half, width + 2 half, 3) uint8.
        weights: (2 half + 1, 2 half + 1), the same when turned by half a circle; their sum is at most 2^23.

    Returns:
        (height, width, 3) uint8.
    """
    size = len(weights)
    half = size // 2
    height, width = padded.shape[0] - 2 * half, padded.shape[1] - 2 * half
    values = padded.reshape(len(padded), -1)  # channels beside one another
    result = np.empty((height, 3 * width), np.uint8)
    scale = np.float32(1) / np.float32(weights.sum())
    total = np.empty(3 * width, np.int32)
    for y in range(height):
        middle = values[y + half, 3 * half :]
        for x in range(3 * width):
            total[x] = weights[half, half] * np.int32(middle[x])
        for row in range(half + 1):  # pairs opposite one another: the rows above the middle, and its left half
            for column in range(size if row < half else half):
                weight = weights[row, column]
                if weight == 0:
                    continue
                here, opposite = values[y + row, 3 * column :], values[y + size - 1 - row, 3 * (size - 1 - column) :]
                for x in range(3 * width):
                    total[x] += weight * (np.int32(here[x]) + np.int32(opposite[x]))
        for x in range(3 * width):
            result[y, x] = np.uint8(np.rint(np.float32(total[x]) * scale))
    return result.reshape(height, width, 3)


def compile_all() -> None:
    """Compile the loops for the arrays they get, or load the results of an earlier call."""
    image = np.zeros((16, 16, 3), np.uint8)
    fill_lost_blocks(image, np.zeros((4, 4), np.bool_), 4, 128)
    disk_mean(image, np.ones((3, 3), np.int32))
    line_mean(image, np.ones((3, 3), np.int32))
    color_cells(image)
    image.flags.writeable = False  # another type to numba: an image from the bytes of a message
    color_cells(image)
