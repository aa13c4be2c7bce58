"""The opinions of a dataset's images that a study of execution compares trials with."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from merton.statistics.clustered import Floats, Integers


class Opinions(Protocol):
    """Opinions of images, a row each, as the package merton_studies makes them.

    Attributes:
        distortion, level, scene: columns of shape (images,).
    """

    @property
    def distortion(self) -> NDArray[np.str_]: ...

    @property
    def level(self) -> Integers: ...

    @property
    def scene(self) -> NDArray[np.str_]: ...

    def value(self, stage: str) -> Floats:
        """The opinions of a stage, "cognition" or "decision", shape (images,)."""
