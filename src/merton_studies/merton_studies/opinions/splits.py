"""Divisions of the images of a study into a part to learn from and a part to test on, by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import InputError, UnknownNameError
from merton.seeding import generator

SPLITS = {
    "pair": "over images: others of the same reference are learned from",
    "reference": "over scenes: no view of a tested scene is learned from",
    "type": "over types of distortion: no tested type is learned from",
}
"""Name of a split to the sentence that says what is kept apart.

Embodied-IQA (section 5.1) divides 8 : 2 and does not say over which unit. The split over images is its likely one; it
leaks, because other distortions of a tested reference are learned from.
"""
TEST_SHARE = 0.2
"""Of the units, as in the paper."""


def split(kind: str, columns: Mapping[str, ArrayLike], seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Divide images into a training and a test part.

    Whole units go to one part, drawn without replacement: single images, scenes, or types of distortion. The split
    "reference" keeps whole scenes together, because the cell's cameras show one scene in three references, which
    resemble one another more than two scenes do.

    Args:
        kind: one of `SPLITS`.
        columns: (n,) each: "reference_id", "scene", "distortion" and "level" of every image. An image's part depends on
            these, never on the order of images.
        seed: the same seed gives the same parts.

    Returns:
        Indices of the training and of the test images, rising.

    Raises:
        UnknownNameError: no such split.
        InputError: there are fewer than two units.
    """
    unit = units(kind, columns)
    names, which = np.unique(unit, return_inverse=True)
    count = _tested(kind, len(names))
    tested = np.zeros(len(names), np.bool_)
    tested[generator("split", kind, seed).permutation(len(names))[:count]] = True
    test = tested[which]
    return np.flatnonzero(~test), np.flatnonzero(test)


def divisions(kind: str, columns: Mapping[str, ArrayLike]) -> int:
    """Number of different parts that `split` can draw; arguments and errors are its own."""
    count = len(np.unique(units(kind, columns)))
    return math.comb(count, _tested(kind, count))


def _tested(kind: str, count: int) -> int:
    """The number of units in the test part: `TEST_SHARE` of all, rounded; at least one is in each part."""
    if count < 2:
        raise InputError(f"the split over {kind} needs at least two different ones, got {count}")
    return min(max(round(TEST_SHARE * count), 1), count - 1)


def units(kind: str, columns: Mapping[str, ArrayLike]) -> NDArray[Any]:
    """(n,) the unit of each image that a split keeps whole; see `split`."""
    if kind not in SPLITS:
        raise UnknownNameError("split", kind, SPLITS)
    if kind == "pair":
        parts = (columns["reference_id"], columns["distortion"], columns["level"])
        return np.array(["\x1f".join(map(str, image)) for image in zip(*map(np.asarray, parts), strict=True)])
    return np.asarray(columns["scene" if kind == "reference" else "distortion"]).astype(np.str_)
