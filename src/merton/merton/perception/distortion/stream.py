"""Distorting a camera's stream: one setting for every frame, or a schedule of settings."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.perception.distortion import DEPTH_FAULTS, DISTORTIONS, distort, find_distortion
from merton.perception.distortion.base import check_level
from merton.perception.distortion.depth import Depth
from merton.seeding import generator
from merton.world.observation import CameraView, Image, whole_millimetres

REFERENCE = "reference"
"""Name of the setting without distortion."""


@dataclass(frozen=True)
class DistortionSetting:
    """The distortion of the frames of a stream.

    Attributes:
        name: a distortion, or its id, which is replaced by the name; a fault of depth; or "reference", at level 0 only.
        level: 0 .. 5.
        seed: of the noise, >= 0.

    Raises:
        InputError: no such distortion, a level it does not have, or a negative seed; the text lists the choices.
    """

    name: str = REFERENCE
    level: float = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"the seed of a distortion must be a whole number >= 0, got {self.seed!r}")
        if isinstance(self.level, float) and self.level.is_integer():  # as from a ROS parameter of type double
            object.__setattr__(self, "level", int(self.level))
        if self.name == REFERENCE and self.level == 0:
            return
        if self.name == REFERENCE:
            choices = ", ".join(sorted((*DISTORTIONS, *DEPTH_FAULTS)))
            raise InputError(
                f"level {self.level} of {REFERENCE!r}, which has level 0 only: choose first one of: {choices}"
            )
        distortion = DEPTH_FAULTS.get(self.name) or find_distortion(self.name)
        check_level(distortion, self.level)
        object.__setattr__(self, "name", distortion.name)

    @property
    def shown_name(self) -> str:
        """The distortion's name, or "reference" at level 0."""
        return self.name if self.level else REFERENCE

    def apply(self, camera: str, pixels: Image) -> Image:
        """The distorted frame (height, width, 3); the frame itself at level 0 and for a fault of depth.

        The noise depends on the seed, the camera and the frame's own pixels. Ours: equal frames get equal noise at any
        time, and frames that differ get different noise.
        """
        if self.level == 0 or self.acts_on_depth:
            return pixels
        return distort(pixels, self.name, self.level, self._generator(camera, pixels))

    @property
    def acts_on_depth(self) -> bool:
        """Whether it is a fault of depth above level 0."""
        return self.level > 0 and self.name in DEPTH_FAULTS

    def apply_depth(self, camera: str, depth_m: Depth) -> Depth:
        """The faulty depth (height, width) [m], 0 where there is none; the depth itself unless a fault acts on it.

        Holes depend on the seed, the camera and the depth itself, as the noise of `apply` does.
        """
        if not self.acts_on_depth:
            return depth_m
        fault = DEPTH_FAULTS[self.name]
        return fault.apply(depth_m, fault.value(self.level), self._generator(camera, depth_m))

    def apply_to(self, view: CameraView) -> CameraView:
        """A view with colour and depth distorted, as by distortion_node: changed depth is in whole millimetres."""
        color, depth_m = self.apply(view.camera, view.color), view.depth_m
        if depth_m is not None and self.acts_on_depth:
            depth_m = whole_millimetres(self.apply_depth(view.camera, depth_m))
        return replace(view, color=color, depth_m=depth_m)

    def _generator(self, camera: str, frame: NDArray[np.generic]) -> np.random.Generator:
        return generator(self.seed, camera, zlib.crc32(np.ascontiguousarray(frame).data))


@dataclass(frozen=True)
class Schedule:
    """Settings one after the other, each for its time, repeated without end.

    Attributes:
        steps: (setting, seconds > 0) pairs, at least one.
    """

    steps: tuple[tuple[DistortionSetting, float], ...]

    def at(self, elapsed_s: float) -> DistortionSetting:
        """The setting `elapsed_s` >= 0 seconds after the start."""
        left_s = elapsed_s % sum(seconds for _, seconds in self.steps)
        for setting, seconds in self.steps:
            if left_s < seconds:
                return setting
            left_s -= seconds
        return self.steps[-1][0]


def parse_schedule(lines: Sequence[str], seed: int = 0) -> Schedule:
    """A schedule from lines such as "lens_blur 3 2.5": name, level, seconds. Raises InputError naming the line."""
    if not lines:
        raise InputError("a schedule needs at least one line: name level seconds")
    steps = []
    for line in lines:
        words = line.split()
        try:
            name, level, seconds = words[0], float(words[1]), float(words[2])
        except (IndexError, ValueError):
            raise InputError(f"a line of a schedule reads: name level seconds; got {line!r}") from None
        if len(words) != 3 or not 0 < seconds < inf:
            raise InputError(f"a line of a schedule reads: name level seconds, with seconds > 0; got {line!r}")
        steps.append((DistortionSetting(name, level, seed), seconds))
    return Schedule(tuple(steps))
