"""The layers of the small networks, the convolution against OpenCV's."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from merton.models.convolution import convolve, fold, unfolded_weight
from merton.models.networks import NumpyNetwork, softmax


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


def test_a_network_applies_the_weights_of_its_file(tmp_path):
    """A kernel of 1 x 1 is a linear layer of each position; one of 3 x 3 is that of `convolve`."""
    rng = np.random.default_rng(0)
    arrays = {"one.weight": rng.normal(size=(2, 3, 1, 1)), "three.weight": rng.normal(size=(2, 3, 3, 3))}
    biases = {"one.bias": rng.normal(size=2), "three.bias": rng.normal(size=2)}
    np.savez(tmp_path / "weights.npz", words=np.array(["cube", "red"]), **arrays, **biases)
    network = NumpyNetwork(tmp_path / "weights.npz")
    signal = rng.normal(size=(3, 4, 5)).astype(np.float32)
    flat = signal.reshape(3, -1)
    assert network.words == ("cube", "red")
    expected = arrays["one.weight"][:, :, 0, 0] @ flat + biases["one.bias"][:, None]
    assert network.linear("one", flat) == pytest.approx(expected, abs=1e-5)
    assert network.linear("one", flat[:, 7]) == pytest.approx(expected[:, 7], abs=1e-5)
    kernel = unfolded_weight(arrays["three.weight"])
    assert np.array_equal(
        network.convolve("three", signal), convolve(signal, kernel, biases["three.bias"].astype(np.float32)[:, None])
    )


def test_shares_add_up_to_one_for_logits_of_any_size():
    shares = softmax(np.array([[1000.0, 1000.0, -1000.0], [0.0, 1.0, 2.0]], np.float32))
    assert shares.sum(-1) == pytest.approx(1.0)
    assert shares[0] == pytest.approx([0.5, 0.5, 0.0])
    assert shares[1, 2] / shares[1, 1] == pytest.approx(np.e, rel=1e-5)
