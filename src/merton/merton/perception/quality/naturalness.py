"""Metrics that know how natural images look, and need no reference: BRISQUE, and NIQE with a model of Merton's own."""

from __future__ import annotations

import importlib.util
import pickletools
from functools import lru_cache
from importlib import resources
from math import gamma, sqrt
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, missing
from merton.world.observation import Image

BLOCK_PX = 96
"""Side of the blocks whose features NIQE compares."""
SHARP = 0.75
"""Share of the sharpness of an image's sharpest block, above which a block belongs to NIQE's model."""

_WINDOW = (7, 7 / 6)
"""Width and sigma of the Gaussian window [px]."""
_SHAPES = np.arange(200, 10001) / 1000
"""The shape parameters among which the releases of both metrics choose."""
_INVERSE_SPREADS = np.array([gamma(2 / shape) ** 2 / (gamma(1 / shape) * gamma(3 / shape)) for shape in _SHAPES])
"""E[|x|]^2 / E[x^2] of a generalised Gaussian with these shapes; rises with the shape."""
_NEIGHBOURS = ((0, 1), (1, 0), (1, 1), (-1, 1))
"""(rows, columns) to the neighbour in four directions."""
_CUBIC = np.array([-3, -9, 29, 111, 111, 29, -9, -3], np.float64) / 256
"""Bicubic weights of halving (a = -0.5, widened by two), as MATLAB's imresize has them."""
_ROUNDING = 1e-9
"""Contrasts below are errors of rounding."""


class Brisque:
    """The Blind/Referenceless Image Spatial Quality Evaluator: 0 (natural) .. 100 (distorted), or a little beyond.

    Mittal et al. (2012): 36 numbers say how contrasts and their products with neighbours are distributed at two scales;
    a support vector machine maps them to a score; its numbers are those that the package brisque ships. Features as in
    their release in C++; the numbers of the machine are read from the package brisque, whose own code is not used: it
    needs 0.1 s an image, and an older numpy.

    Raises MissingDependencyError without the package.
    """

    def __init__(self) -> None:
        found = importlib.util.find_spec("brisque")
        if found is None or not found.submodule_search_locations:
            raise missing("brisque", "quality", "brisque")
        folder = Path(found.submodule_search_locations[0]) / "models"
        head, _, vectors = (folder / "svm.txt").read_text(encoding="utf-8").partition("\nSV")
        named = dict(line.split(maxsplit=1) for line in head.splitlines())
        rows = [line.split() for line in vectors.splitlines() if line.strip()]
        self._gamma, self._rho = float(named["gamma"]), float(named["rho"])
        self._weights = np.array([float(row[0]) for row in rows])
        self._vectors = np.array([[float(cell.partition(":")[2]) for cell in row[1:]] for row in rows])
        # two lists of numbers, read without running the pickle
        operations = pickletools.genops((folder / "normalize.pickle").read_bytes())
        numbers = [argument for operation, argument, _ in operations if operation.name == "BINFLOAT"]
        self._low, self._high = np.reshape(np.array(numbers, np.float64), (2, 36))

    def __call__(self, image: Image, _: Image) -> float:
        """The score of an image; raises InputError for an image without any contrast."""
        features = brisque_features(image)
        if not np.isfinite(features).all():
            raise InputError("brisque is not defined for an image whose contrasts have one sign, such as a flat one")
        scaled = 2 * (features - self._low) / (self._high - self._low) - 1
        kernel = np.exp(-self._gamma * np.sum((self._vectors - scaled) ** 2, axis=1))
        return float(np.sum(self._weights * kernel) - self._rho)


build_brisque = lru_cache(maxsize=1)(Brisque)
"""The one `Brisque` of this process."""


def brisque_features(image: Image) -> NDArray[np.float64]:
    """(36,): of the contrasts their shape and variance; of each product shape, mean and both variances; two scales.

    NaN where all contrasts, or all products, have one sign.
    """
    luma = _luma(image)
    half = cv2.resize(luma, (luma.shape[1] // 2, luma.shape[0] // 2), interpolation=cv2.INTER_CUBIC).astype(np.float64)
    features: list[float] = []
    for values in (luma, half):
        contrasts = _contrasts(values)[0]
        shape, left, right = _two_sided(contrasts)
        features += [shape, (left**2 + right**2) / 2]
        for rows, columns in _NEIGHBOURS:
            # outside of the image all is 0
            shifted = np.roll(contrasts, (-rows, -columns), axis=(0, 1))
            if columns:
                shifted[:, -1] = 0
            if rows:
                shifted[-1 if rows > 0 else 0] = 0
            shape, left, right = _two_sided(contrasts * shifted)
            features += [shape, _mean_of(shape, left, right), left**2, right**2]
    return np.array(features)


def niqe_merton(image: Image) -> float:
    """The Natural Image Quality Evaluator with a model of Merton's own: 0 .., lower is better.

    Mittal et al. (2013): how far the Gaussian of the features of an image's blocks is from the Gaussian of undistorted
    images (equation 10). Ours: the undistorted images are renderings of the cell in scenes of the split "train"
    (`tools/train/fit_niqe.py`), not the authors' 125 photographs; so the value is not theirs, and a photograph is far.
    Few blocks make the distance uncertain: 424 x 240 pixels have eight.

    Raises:
        InputError: fewer than two blocks with contrast.
    """
    model = _undistorted()
    return niqe(image, model["mean"], model["covariance"])


def niqe(image: Image, mean: NDArray[np.float64], covariance: NDArray[np.float64]) -> float:
    """The distance of NIQE from a model: the (36,) mean and (36, 36) covariance of the features of undistorted blocks.

    Raises InputError for fewer than two blocks with contrast.
    """
    features, _ = niqe_features(image)
    whole = features[np.isfinite(features).all(axis=1)]
    if len(whole) < 2:
        raise InputError(f"niqe needs two blocks of {BLOCK_PX} x {BLOCK_PX} pixels with contrast, found {len(whole)}")
    difference = mean - np.nanmean(features, axis=0)
    pooled = (covariance + np.cov(whole, rowvar=False)) / 2
    return float(np.sqrt(difference @ np.linalg.pinv(pooled) @ difference))


def niqe_features(image: Image) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features and sharpness of all whole blocks.

    Returns:
        (blocks, 36) features: of the contrasts their shape and scale, of each product shape, mean and both scales, at
        two scales; NaN where a block has no contrasts. (blocks,) mean standard deviation around a pixel.
    """
    luma = _luma(image)
    rows, columns = luma.shape[0] // BLOCK_PX, luma.shape[1] // BLOCK_PX
    luma = luma[: rows * BLOCK_PX, : columns * BLOCK_PX]
    features, sharpness = [], []
    for side, values in ((BLOCK_PX, luma), (BLOCK_PX // 2, _halved(luma))):
        contrasts, deviations = _contrasts(values)
        cuts = [
            (slice(row * side, (row + 1) * side), slice(column * side, (column + 1) * side))
            for row in range(rows)
            for column in range(columns)
        ]
        features.append([_block_features(contrasts[cut]) for cut in cuts])
        sharpness.append([float(np.mean(deviations[cut])) for cut in cuts])
    return np.hstack(features), np.array(sharpness[0])


@lru_cache(maxsize=1)
def _undistorted() -> dict[str, NDArray[Any]]:
    file = resources.files("merton.perception.quality") / "niqe_merton.npz"
    with resources.as_file(file) as path, np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _luma(image: Image) -> NDArray[np.float64]:
    return cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float64)


def _contrasts(luma: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Differences from the local mean, divided by the local standard deviation plus 1 (equation 1 of both papers).

    Where an image is flat they are 0. Ours: the releases leave rounding errors there, whose sign decides whether a
    pixel counts as below or above 0.

    Returns:
        (height, width) each: contrasts, and the local standard deviations in 8-bit units.
    """
    window = ((_WINDOW[0], _WINDOW[0]), _WINDOW[1])
    mean = cv2.GaussianBlur(luma, *window, borderType=cv2.BORDER_REPLICATE)
    square = cv2.GaussianBlur(luma * luma, *window, borderType=cv2.BORDER_REPLICATE)
    deviations = np.sqrt(np.abs(square - mean * mean))
    contrasts = (luma - mean) / (deviations + 1)
    contrasts[np.abs(contrasts) < _ROUNDING] = 0
    return contrasts, deviations


def _halved(luma: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the size, of even sides."""
    blurred = cv2.sepFilter2D(luma, cv2.CV_64F, _CUBIC, _CUBIC, anchor=(3, 3), borderType=cv2.BORDER_REFLECT)
    return np.ascontiguousarray(blurred[::2, ::2])


def _block_features(contrasts: NDArray[np.float64]) -> list[float]:
    """(18,) features; on the other side of a block follows its first row or column."""
    shape, left, right = _two_sided(contrasts)
    features = [shape, (left + right) / 2 * _scale_of(shape)]
    height, width = contrasts.shape
    around = np.empty((height + 2, width + 1))  # what leaves on one side comes back on the other
    around[1:-1, 1:] = contrasts
    around[1:-1, 0] = contrasts[:, -1]
    around[0], around[-1] = around[-2], around[1]
    for rows, columns in _NEIGHBOURS:
        shifted = around[1 - rows : 1 - rows + height, 1 - columns : 1 - columns + width]
        shape, left, right = _two_sided(contrasts * shifted)
        features += [shape, _mean_of(shape, left, right), left * _scale_of(shape), right * _scale_of(shape)]
    return features


def _two_sided(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Shape, and root mean squares left and right of 0, of an asymmetric generalised Gaussian; NaN if one is empty."""
    squares = values * values
    below, above = np.flatnonzero(values < 0), np.flatnonzero(values > 0)  # faster than masks
    if not below.size or not above.size:
        return np.nan, np.nan, np.nan
    left, right = (float(np.sqrt(squares.take(side).sum() / side.size)) for side in (below, above))
    ratio = left / right
    inverse = float((np.abs(values).sum() / values.size) ** 2 / (squares.sum() / values.size))
    return _shape(inverse * (ratio**3 + 1) * (ratio + 1) / (ratio**2 + 1) ** 2), left, right


def _shape(inverse_spread: float) -> float:
    """The shape whose inverse spread is nearest."""
    place = min(max(int(_INVERSE_SPREADS.searchsorted(inverse_spread)), 1), len(_SHAPES) - 1)
    below, above = inverse_spread - _INVERSE_SPREADS[place - 1], _INVERSE_SPREADS[place] - inverse_spread
    return float(_SHAPES[place - 1 if below <= above else place])


@lru_cache(maxsize=len(_SHAPES))
def _scale_of(shape: float) -> float:
    """Scale of a generalised Gaussian whose standard deviation is 1."""
    return sqrt(gamma(1 / shape) / gamma(3 / shape))


def _mean_of(shape: float, left: float, right: float) -> float:
    return (right - left) * gamma(2 / shape) / gamma(1 / shape) * _scale_of(shape)
