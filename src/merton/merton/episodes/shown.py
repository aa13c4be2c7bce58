"""The pictures that a policy is shown in one episode: distorted, in some cameras and steps alone if asked for."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from merton.errors import InputError
from merton.experiment.subsets import is_covered
from merton.perception.distortion import DEPTH_FAULTS, TEMPORAL_FAULTS
from merton.perception.distortion.stream import REFERENCE, DistortionSetting
from merton.perception.distortion.temporal import FaultyStream
from merton.results.records import TestCase
from merton.seeding import derive_seed
from merton.world.observation import Frame, Image


def pictures_seed(seed: int, case: TestCase) -> int:
    """The seed of the pictures of a case, equal to that of a trial of `merton run`: every agent sees the same ones."""
    return derive_seed(seed, "distortion", case.id)


def load(distortions: Iterable[str]) -> None:
    """Import and compile what pictures under these distortions need, so that the first one takes as long as others.

    Args:
        distortions: types of images and faults of time.
    """
    from merton.recording.images import jpeg

    picture = np.zeros((64, 64, 3), np.uint8)
    for name in distortions:
        pictures = EpisodePictures(name, 5)
        for step in range(2):
            pictures.show(step, "", picture)
    jpeg(picture)


@dataclass(frozen=True)
class ShownPart:
    """The pictures of an episode that are distorted; the policy sees the others as they are.

    Attributes:
        cameras: names; None for every camera.
        steps: numbers of observations in the episode, from 0; None for every step.
    """

    cameras: Collection[str] | None = None
    steps: Container[int] | None = None

    def holds(self, camera: str, step: int) -> bool:
        """Whether the picture of a camera at a step is distorted."""
        return is_covered(self.cameras, self.steps, camera, step)


EVERYTHING = ShownPart()
"""The part without a bound."""


class EpisodePictures:
    """The pictures of one episode, in the order in which they are taken.

    A type of images changes each frame by itself: equal frames of a camera get equal noise. A fault of time shows
    frames of earlier steps; the first frame of a camera is always as it is. Make a new one for each episode.

    Args:
        distortion: a type of images or a fault of time; "reference" at level 0 alone.
        level: 0 .. 5.
        seed: of noise and faults, >= 0, such as `pictures_seed`.
        part: what of them is distorted.

    Attributes:
        distortion, level: as given; the name is written out where an id was given.
        clean: whether every picture passes as it is.
        part: as given.

    Raises:
        InputError: no such distortion or level, or a fault of depth, of which a colour picture shows nothing.
    """

    def __init__(
        self, distortion: str = REFERENCE, level: float = 0, seed: int = 0, part: ShownPart = EVERYTHING
    ) -> None:
        if distortion in DEPTH_FAULTS or (distortion in TEMPORAL_FAULTS and TEMPORAL_FAULTS[distortion].depth_alone):
            raise InputError(f"{distortion!r} is a fault of depth, and an episode of another program has colour alone")
        self.stream: FaultyStream | None = None
        if distortion in TEMPORAL_FAULTS:
            self.stream = FaultyStream(distortion, level, seed)
            self.distortion, self.level = distortion, level
            setting = DistortionSetting(seed=seed)
        else:
            setting = DistortionSetting(distortion, level, seed)
            self.distortion, self.level = setting.name, setting.level
        self._setting, self.part = setting, part
        self.clean = self.level == 0

    def show_all(self, step: int, pictures: Mapping[str, Image]) -> dict[str, Image]:
        """The pictures of all cameras at a step, by name; see `show`."""
        return {camera: self.show(step, camera, pixels) for camera, pixels in pictures.items()}

    def show(self, step: int, camera: str, pixels: Image) -> Image:
        """The picture that the policy gets in place of a camera's.

        Args:
            step: number of the observation in the episode, from 0. A fault of time needs each step once, in order,
                also those outside of the part.
            camera: any name; each has noise and faults of its own.
            pixels: (height, width, 3) uint8 RGB, upright, as the camera gives it, before it is resized.

        Returns:
            The very object that was given at level 0 and outside of the part, else an array of its shape and type.

        Raises:
            InputError: `pixels` is no such picture.
        """
        if self.clean:
            return pixels
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
            raise InputError(
                f"camera {camera!r}: a picture is uint8 (height, width, 3), got {pixels.dtype} {pixels.shape}"
            )
        if self.stream is not None:  # a copy, because environments draw into one buffer
            frame = Frame(camera, pixels.copy(), None)
            seen = self.stream.next(frame)
            return pixels if seen.color is frame.color or not self.part.holds(camera, step) else seen.color.copy()
        return self._setting.apply(camera, pixels) if self.part.holds(camera, step) else pixels
