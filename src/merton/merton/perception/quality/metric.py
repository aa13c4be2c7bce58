"""A metric of image quality, with or without a reference image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from merton.errors import MissingDependencyError
from merton.world.observation import Image

Group = Literal["zero_shot", "full_reference", "no_reference"]
"""Metrics as they are, and metrics that were trained on opinions of robots, with and without a reference."""

Measure = Callable[[Image, Image], float]
"""(image, reference) to value; a metric without a reference ignores the second."""


@dataclass(frozen=True)
class Metric:
    """One way to measure quality.

    Attributes:
        name: such as "ssim".
        better: whether a "higher" or a "lower" value means a better image.
        range: smallest and largest possible value.
        needs_reference: whether it compares with an undistorted image.
        smallest_side_px: images with a shorter side cannot be measured.
        description: one line.
        source: such as "Wang et al. 2004".
        build: returns the function that measures; raises MissingDependencyError if something must be installed.
        group: "zero_shot", or what it was trained as.
        licence: of weights or code that it brings; "" if there are none but Merton's own.
        paper: its name in the tables of Embodied-IQA, if it is there.
        extra: the extra (`merton.extras`) that it needs; "" for none.
    """

    name: str
    better: Literal["higher", "lower"]
    range: tuple[float, float]
    needs_reference: bool
    smallest_side_px: int
    description: str
    source: str
    build: Callable[[], Measure]
    group: Group = "zero_shot"
    licence: str = ""
    paper: str = ""
    extra: str = ""

    def missing(self) -> str | None:
        """The sentence about a package or file without which this metric cannot be measured here; None if it can be.

        Raises what else `build` raises: a fault of another kind is none that an installation mends.
        """
        try:
            self.build()
        except MissingDependencyError as error:
            return str(error)
        return None
