"""The convolution of the small networks, against OpenCV's."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from merton.models.convolution import convolve, fold, unfolded_weight


@pytest.mark.parametrize(("height", "width"), [(31, 20), (12, 7), (24, 25), (2, 2)])
@pytest.mark.parametrize("stride", [1, 2])
def test_it_correlates_as_networks_do(height, width, stride):
    """cv2.filter2D correlates too; strips must not show, odd sizes neither."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(3, height, width)).astype(np.float32)
    weight = rng.normal(size=(2, 3, 3, 3)).astype(np.float32)
    bias = np.array([[0.5], [-1.0]], np.float32)
    result = convolve(signal, unfolded_weight(weight), bias, stride)
    for out in range(2):
        planes = [cv2.filter2D(signal[i], -1, weight[out, i], borderType=cv2.BORDER_CONSTANT) for i in range(3)]
        assert result[out] == pytest.approx((sum(planes) + bias[out])[::stride, ::stride], abs=1e-4)


def test_folding_keeps_every_pixel():
    planes = np.random.default_rng(0).random((3, 8, 6), dtype=np.float32)
    folded = fold(planes)
    assert folded.shape == (12, 4, 3)
    assert folded[:4, 0, 0].tolist() == planes[0, :2, :2].ravel().tolist()
    squares = folded.reshape(3, 2, 2, 4, 3)  # channel, row and column in the square, row and column of squares
    assert np.array_equal(squares.transpose(0, 3, 1, 4, 2).reshape(planes.shape), planes)
