"""The entry of a distortion, the registry of all of them, and `distort`, which applies one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np

from merton.errors import InputError
from merton.perception.distortion.depth import DEPTH_FAULTS
from merton.perception.distortion.faults import Fault
from merton.perception.distortion.scale import (
    KADID_WIDTH_PX,
    LARGEST_SIDE_PX,
    REFERENCE_WIDTH_PX,
    SMALLEST_SIDE_PX,
    at_reference,
    scale_of,
)
from merton.perception.distortion.temporal import TEMPORAL_FAULTS
from merton.registry import Registry
from merton.world.observation import Image

CATEGORIES = ("blur", "luminance", "chrominance", "noise", "compression", "spatial", "others")
"""The seven families of Embodied-IQA, section 3.1."""

LevelSet = Literal["merton", "kadid"]
"""Source of the level values: Merton's rise in severity for every type; KADID-10k's own exist for the types it has."""

LEVELS = (0, 1, 2, 3, 4, 5)
"""Levels of severity; 0 is the undistorted image."""

WIDTHS_PX: dict[LevelSet, int] = {"merton": REFERENCE_WIDTH_PX, "kadid": KADID_WIDTH_PX}
"""Reference width of each set: the width at which its values in pixels hold. They follow the image's width."""

Operation = Callable[[Image, float, np.random.Generator, float], Image]
"""(contiguous image, level value, generator, scale) to a new image of the same shape; must not write to its input. The
scale, >= 1 unless the entry is `smooth`, is the image's pixels per pixel at the reference width: see `scale.py`."""


@dataclass(frozen=True)
class Distortion:
    """One type of distortion.

    Attributes:
        id: two digits, "01".."30", the position in Embodied-IQA's Fig. 5.
        name: such as "gaussian_blur".
        category: one of `CATEGORIES`.
        levels: parameter value of levels 1..5, in `unit`, in order of rising severity.
        unit: quantity and unit of the values.
        stochastic: the result depends on the generator.
        source: where the level values come from.
        description: one line.
        continuous: the parameter is a real number, so that levels between the whole ones exist.
        kadid: KADID-10k's own values of levels 1..5, in `unit`; None where it lacks the type. Some are signed, so that
            level is not severity, and some are the identity.
        smooth: a gentle curve of each pixel's own value, which gives about the same before and after averaging, so that
            there is nothing to do for another width.
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
    continuous: bool
    kadid: tuple[float, ...] | None
    smooth: bool
    apply: Operation

    def value(self, level: float, levels: LevelSet = "merton") -> float:
        """Parameter value of a level in 1..5, linearly interpolated between whole levels.

        Raises:
            InputError: KADID-10k has no such type, or no such set of levels.
        """
        values = self.levels
        if levels == "kadid":
            if self.kadid is None:
                have = ", ".join(name for name, entry in DISTORTIONS.items() if entry.kadid is not None)
                raise InputError(f"KADID-10k has no levels of {self.name!r}; it has those of: {have}")
            values = self.kadid
        elif levels != "merton":
            raise InputError(f"levels must be 'merton' or 'kadid', got {levels!r}")
        below = min(int(level), 4)
        share = level - below
        if share in (0, 1):  # exactly the stored value
            return values[below - 1 + int(share)]
        return values[below - 1] + share * (values[below] - values[below - 1])


DISTORTIONS: Registry[Distortion] = Registry("distortion")
"""Name to entry, in the order of the ids."""


def register(
    id: str,
    category: str,
    *,
    levels: tuple[float, ...],
    unit: str,
    source: str,
    stochastic: bool = False,
    continuous: bool = True,
    kadid: tuple[float, ...] | None = None,
    smooth: bool = False,
) -> Callable[[Operation], Operation]:
    """Decorator that registers a function under its own name; the first line of its docstring is the description."""
    return DISTORTIONS.function(
        lambda name, description, operation: Distortion(
            id, name, category, levels, unit, stochastic, source, description, continuous, kadid, smooth, operation
        )
    )


def all_distortions() -> dict[str, Distortion | Fault]:
    """Everything that an experiment may name, by name: the types of images, the faults of depth, the faults of time."""
    return {**DISTORTIONS, **DEPTH_FAULTS, **TEMPORAL_FAULTS}


def find_distortion(name: str | int) -> Distortion:
    """The entry with this name ("lens_blur") or id ("02", "2" or 2).

    Raises:
        UnknownNameError: there is none; the text lists the names.
        InputError: it is a fault of depth or of time, which a single image does not have.
    """
    text = str(name)
    if text in DEPTH_FAULTS or text in TEMPORAL_FAULTS:
        acts_on = "depth" if text in DEPTH_FAULTS else "a succession of pictures"
        raise InputError(f"{text!r} acts on {acts_on}, not on a single image: name it in an experiment")
    if text.isascii() and text.isdigit():
        for entry in DISTORTIONS.values():
            if entry.id == text.zfill(2):
                return entry
    return DISTORTIONS[text]


def distort(
    image: Image,
    name: str | int,
    level: float,
    rng: np.random.Generator,
    *,
    levels: LevelSet = "merton",
    reference_width_px: int | None = None,
) -> Image:
    """A distorted copy of an image.

    Args:
        image: (height, width, 3) uint8 RGB, sides of 16 .. 16383 pixels; never written to.
        name: name or id of the distortion.
        level: 0 (an exact copy) .. 5 (worst). Fractions, where the parameter is continuous: between whole levels the
            parameter is interpolated linearly; below 1 the result of level 1 is mixed with the image, `level` of it.
        rng: all randomness comes from here; distortions that are not stochastic do not touch it.
        levels: "kadid" for KADID-10k's own parameter values.
        reference_width_px: the width at which the values hold, >= 16; None for that of the set of levels in
            `WIDTHS_PX`. The image's own width gives the values as they are written.

    Returns:
        A new array of the same shape and type. The same generator state gives the same bytes.

    Raises:
        UnknownNameError: no such distortion.
        InputError: a wrong image, level, set of levels, generator or reference width.
    """
    entry = find_distortion(name)
    _check_image(image)
    check_level(entry, level)
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    value = entry.value(max(1.0, float(level)), levels)
    scale = scale_of(image, WIDTHS_PX[levels] if reference_width_px is None else _checked_width(reference_width_px))
    if level == 0:
        return image.copy(order="C")
    image = np.ascontiguousarray(image)
    if scale >= 1 or entry.smooth:
        distorted = entry.apply(image, value, rng, scale)
    else:
        distorted = at_reference(image, scale, lambda enlarged: entry.apply(enlarged, value, rng, 1.0))
    if level < 1:
        return np.asarray(cv2.addWeighted(image, 1.0 - level, distorted, float(level), 0.0), dtype=np.uint8)
    return distorted


def check_level(entry: Distortion | Fault, level: object) -> None:
    """Raise InputError unless `level` is a level of the distortion; the text lists the levels there are."""
    whole = ", ".join(map(str, LEVELS))
    if (
        not isinstance(level, (int, float, np.integer, np.floating))
        or isinstance(level, bool)
        or not 0 <= float(level) <= LEVELS[-1]  # false for nan too
    ):
        raise InputError(f"level of {entry.name!r} must be {'in 0 .. 5' if entry.continuous else whole}, got {level!r}")
    if not entry.continuous and float(level) != int(level):
        raise InputError(
            f"level of {entry.name!r} must be one of {whole}, got {level!r}: "
            f"its parameter ({entry.unit}) has no values in between"
        )


def _checked_width(reference_width_px: object) -> int:
    if (
        not isinstance(reference_width_px, (int, np.integer))
        or isinstance(reference_width_px, bool)
        or not SMALLEST_SIDE_PX <= reference_width_px <= LARGEST_SIDE_PX
    ):
        raise InputError(
            f"the reference width of levels must be a whole number in {SMALLEST_SIDE_PX} .. {LARGEST_SIDE_PX} pixels, "
            f"got {reference_width_px!r}"
        )
    return int(reference_width_px)


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
    if max(image.shape[:2]) > LARGEST_SIDE_PX:
        raise InputError(
            f"an image must be at most {LARGEST_SIDE_PX} pixels wide and high, got {image.shape[1]} x {image.shape[0]}"
        )
