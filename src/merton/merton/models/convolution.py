"""3 x 3 convolutions in plain numpy, for the small networks of Merton, which need no framework."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_STRIP_ROWS = 12
"""Rows convolved at a time, so that the unfolded neighbourhoods stay in the processor's cache."""


def unfolded_weight(weight: NDArray[np.floating]) -> Floats:
    """Weights (outputs, inputs, 3, 3), as networks store them, in the order of `convolve`: (outputs, 9 inputs)."""
    return np.ascontiguousarray(weight.transpose(0, 2, 3, 1).reshape(len(weight), -1), np.float32)


def convolve(signal: Floats, weight: Floats, bias: Floats, stride: int = 1) -> Floats:
    """Correlate with 3 x 3 kernels, zeros beyond the border.

    Args:
        signal: (inputs, height, width).
        weight: (outputs, 9 inputs), from `unfolded_weight`.
        bias: (outputs, 1).
        stride: 1, or 2 for every second row and column from the first.

    Returns:
        (outputs, ceil(height / stride), ceil(width / stride)).
    """
    channels, height, width = signal.shape
    rows_out, columns_out = -(-height // stride), -(-width // stride)
    padded = np.pad(signal, ((0, 0), (1, stride), (1, stride)))
    result = np.empty((len(weight), rows_out, columns_out), np.float32)
    unfolded = np.empty((9, channels, _STRIP_ROWS, columns_out), np.float32)
    for top in range(0, rows_out, _STRIP_ROWS):
        rows = min(_STRIP_ROWS, rows_out - top)
        for tap in range(9):
            y, x = stride * top + tap // 3, tap % 3
            unfolded[tap, :, :rows] = padded[:, y : y + stride * rows : stride, x : x + stride * columns_out : stride]
        columns = unfolded[:, :, :rows].reshape(9 * channels, rows * columns_out)
        result[:, top : top + rows] = (weight @ columns + bias).reshape(-1, rows, columns_out)
    return result


def fold(planes: Floats) -> Floats:
    """(channels, 2 h, 2 w) to (4 channels, h, w): the pixels of each 2 x 2 square beside one another."""
    channels, height, width = planes.shape
    squares = planes.reshape(channels, height // 2, 2, width // 2, 2).transpose(0, 2, 4, 1, 3)
    return squares.reshape(4 * channels, height // 2, width // 2)
