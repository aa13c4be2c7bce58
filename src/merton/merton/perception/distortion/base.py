"""What a distortion is, where the distortions are kept, and how one is applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from merton.errors import InputError
from merton.observation import Image
from merton.registry import Registry

CATEGORIES = ("blur", "luminance", "chrominance", "noise", "compression", "spatial", "others")
"""The seven families of Embodied-IQA, section 3.1."""

LEVELS = (0, 1, 2, 3, 4, 5)
"""Levels of severity; 0 is the undistorted image."""

SMALLEST_SIDE_PX = 16
"""Images smaller than this hold less than one macro block, so block distortions would have nothing to act on."""

Operation = Callable[[Image, float, np.random.Generator], Image]
"""(contiguous image, level value, generator) to a new image of the same shape; must not write to its input."""


@dataclass(frozen=True)
class Distortion:
    """One type of distortion.

    Attributes:
        id: two digits, "01".."30", the position in Embodied-IQA's Fig. 5.
        name: such as "gaussian_blur".
        category: one of `CATEGORIES`.
        levels: parameter value of levels 1..5, in `unit`, in order of rising severity.
        unit: what the values are.
        stochastic: the result depends on the generator.
        source: where the level values come from.
        description: one line for people.
        apply: the operation itself; call `distort` instead, which checks its input.
    """

    id: str
    name: str
    category: str
    levels: tuple[float, ...]
    unit: str
    stochastic: bool
    source: str
    description: str
    apply: Operation


DISTORTIONS: Registry[Distortion] = Registry("distortion")
"""Name to entry, in the order of the ids."""


def register(
    id: str, category: str, *, levels: tuple[float, ...], unit: str, source: str, stochastic: bool = False
) -> Callable[[Operation], Operation]:
    """Decorator that registers a function under its own name; the first line of its docstring is the description."""

    def decorate(operation: Operation) -> Operation:
        name = operation.__name__
        description = (operation.__doc__ or "").strip().splitlines()[0]
        DISTORTIONS.add(name, Distortion(id, name, category, levels, unit, stochastic, source, description, operation))
        return operation

    return decorate


def find_distortion(name: str | int) -> Distortion:
    """The entry with this name ("lens_blur") or id ("02", "2" or 2).

    Raises:
        UnknownNameError: there is none; the text lists the names.
    """
    text = str(name)
    if text.isascii() and text.isdigit():
        for entry in DISTORTIONS.values():
            if entry.id == text.zfill(2):
                return entry
    return DISTORTIONS[text]


def distort(image: Image, name: str | int, level: int, rng: np.random.Generator) -> Image:
    """A distorted copy of an image.

    Args:
        image: (height, width, 3) uint8 RGB, at least 16 x 16; never written to.
        name: name or id of the distortion.
        level: 0 (an exact copy) .. 5 (worst).
        rng: all randomness comes from here; distortions that are not stochastic do not touch it.

    Returns:
        A new array of the same shape and type. The same generator state gives the same bytes.

    Raises:
        UnknownNameError: no such distortion.
        InputError: a wrong image, level or generator.
    """
    entry = find_distortion(name)
    _check_image(image)
    if isinstance(level, (bool, np.bool_)) or not isinstance(level, (int, np.integer)) or int(level) not in LEVELS:
        raise InputError(f"level of {entry.name!r} must be one of {', '.join(map(str, LEVELS))}, got {level!r}")
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    if level == 0:
        return image.copy(order="C")
    return entry.apply(np.ascontiguousarray(image), entry.levels[int(level) - 1], rng)


def _check_image(image: Image) -> None:
    if not isinstance(image, np.ndarray):
        raise InputError(f"an image must be a numpy array, got {type(image).__name__}")
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise InputError(f"an image must be uint8 (height, width, 3) RGB, got {image.dtype} {image.shape}")
    if min(image.shape[:2]) < SMALLEST_SIDE_PX:
        raise InputError(
            f"an image must be at least {SMALLEST_SIDE_PX} x {SMALLEST_SIDE_PX} pixels, "
            f"got {image.shape[1]} x {image.shape[0]}"
        )
