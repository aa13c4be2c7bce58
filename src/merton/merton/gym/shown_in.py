"""Observations with the pictures that a policy is shown in place of the environment's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.gym.found import PicturePlace
from merton.world.observation import Image

Pictures = Mapping[str, Image]
"""Camera to (height, width, 3) uint8."""


def shown_in(observation: Any, places: Sequence[PicturePlace], show: Callable[[Pictures], Pictures]) -> Any:
    """An observation of one environment as the policy gets it; the very object if `show` changes nothing.

    Args:
        places: of the pictures.
        show: gives the pictures in their place, the very objects where nothing is distorted.
    """
    given = {place.camera: place.of(observation) for place in places}
    shown = _shown(given, places, show)
    for place in places:
        if shown[place.camera] is not given[place.camera]:
            observation = place.put(observation, shown[place.camera])
    return observation


class ShownInBatches:
    """Observations of a vector of environments, each with its own pictures.

    Args:
        places: of the pictures in an observation of one environment.
        count: of environments.
    """

    def __init__(self, places: Sequence[PicturePlace], count: int) -> None:
        self.places = places
        self._last: list[dict[str, NDArray[Any]]] = [{} for _ in range(count)]

    def shown_in(
        self, observations: Any, show: Callable[[int, Pictures], Pictures], new: NDArray[np.bool_] | None = None
    ) -> Any:
        """A batch of observations as the policy gets it; the very object if `show` changes nothing.

        Args:
            show: as of the function `shown_in`, with the number of the environment before the pictures.
            new: (count,), the environments whose observation is a new one; the others repeat their last one, and so
                does this, because a repeated picture is no step for a fault of time. All of them if left out.
        """
        batches = {place.camera: place.of(observations) for place in self.places}
        changed: dict[str, NDArray[Any]] = {}
        for i in range(len(self._last)):
            given = {camera: batch[i] for camera, batch in batches.items()}
            if new is None or new[i]:
                shown = _shown(given, self.places, partial(show, i))
                self._last[i] = {camera: shown[camera] for camera in given if shown[camera] is not given[camera]}
            for camera, pixels in self._last[i].items():
                batch = changed.setdefault(camera, batches[camera].copy())
                batch[i] = pixels
        for place in self.places:
            if place.camera in changed:
                observations = place.put(observations, changed[place.camera])
        return observations


def _shown(
    given: Mapping[str, NDArray[Any]], places: Sequence[PicturePlace], show: Callable[[Pictures], Pictures]
) -> dict[str, NDArray[Any]]:
    """The pictures that are shown, in the layout of those that are given; the very arrays where they are the same."""
    first = {place.camera for place in places if place.channels_first}
    upright = {
        camera: np.ascontiguousarray(pixels.transpose(1, 2, 0)) if camera in first else pixels
        for camera, pixels in given.items()
    }
    shown = show(upright)
    return {
        camera: given[camera]
        if shown[camera] is upright[camera]
        else np.ascontiguousarray(shown[camera].transpose(2, 0, 1))
        if camera in first
        else shown[camera]
        for camera in given
    }
