"""The pictures in the observations of a Gymnasium environment: where they are, taken out and put back."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from merton.errors import InputError

Key = str | int
ONLY_PICTURE = "pixels"
"""Camera of an observation that is one picture: the name that Gymnasium's `AddRenderObservation` gives it."""


@dataclass(frozen=True)
class PicturePlace:
    """A picture in an observation.

    Attributes:
        camera: its name: the last key that leads to it, or all of them, as in "left/rgb", where two end alike.
        path: the keys and numbers that lead to it through Dict and Tuple; empty if the observation is the picture.
        channels_first: it is (3, height, width) instead of (height, width, 3).
    """

    camera: str
    path: tuple[Key, ...]
    channels_first: bool

    def of(self, observation: Any) -> NDArray[Any]:
        """The array at this place: the picture, or a batch of them."""
        for key in self.path:
            observation = observation[key]
        return np.asarray(observation)

    def put(self, observation: Any, pixels: NDArray[Any]) -> Any:
        """The observation with another array at this place. What was given is left as it is."""
        return _put(observation, self.path, pixels)


def _put(observation: Any, path: tuple[Key, ...], pixels: NDArray[Any]) -> Any:
    if not path:
        return pixels
    inner = _put(observation[path[0]], path[1:], pixels)
    if isinstance(observation, tuple):
        items = list(observation)
        items[int(path[0])] = inner
        return tuple(items)
    outer = copy(observation)
    outer[path[0]] = inner
    return outer


def find_pictures(space: spaces.Space[Any], keys: Collection[str] | None = None) -> tuple[PicturePlace, ...]:
    """The pictures of a space: each Box of uint8 with three dimensions of which the last, or the first, is 3.

    Args:
        space: of one environment, not of a vector of them.
        keys: take only the pictures with one of these names: the camera, any key that leads to it, or all of them
            joined by "/".

    Raises:
        InputError: there is no picture, or none under one of the keys, and the text lists those that there are; or,
            without keys, something else that is seen would stay undistorted beside the pictures.
    """
    paths = list(_paths(space, ()))
    ends = [_end(path) for path, _ in paths]
    places = tuple(
        PicturePlace(end if ends.count(end) == 1 else _joined(path), path, channels_first)
        for end, (path, channels_first) in zip(ends, paths, strict=True)
    )
    if not places:
        raise InputError(
            "the observations have no picture, a Box of uint8 (height, width, 3) or (3, height, width); "
            "gymnasium.wrappers.AddRenderObservation makes what is rendered one"
        )
    if keys is None:
        if others := [_joined(path) for path in _other_pictures(space, ())]:
            raise InputError(
                f"{others[0]} has uint8 of another form than a picture, stacked or with transparency, and would stay "
                f"undistorted: put the wrapper inside of the one that makes it, or choose by keys= from: "
                f"{', '.join(place.camera for place in places)}"
            )
        return places
    if isinstance(keys, str):
        raise InputError(f"keys is a list of names, such as [{keys!r}]")
    keys = [str(key) for key in keys]
    if not keys:
        raise InputError("keys has no name; leave it out for every picture")
    names = {place: {place.camera, _joined(place.path), *map(str, place.path)} for place in places}
    for key in keys:
        if not any(key in known for known in names.values()):
            choices = ", ".join(place.camera for place in places)
            raise InputError(f"the observations have no picture {key!r}; choose from: {choices}")
    return tuple(place for place in places if names[place].intersection(keys))


def _other_pictures(space: spaces.Space[Any], path: tuple[Key, ...]) -> Iterator[tuple[Key, ...]]:
    """Paths of what is seen, but is no picture: stacks of them, four channels. One channel is a mask or a depth."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        items = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for key, inner in items:
            yield from _other_pictures(inner, (*path, key))
        return
    shape = space.shape if isinstance(space, spaces.Box) and space.dtype == np.uint8 else ()
    if len(shape) > 3 or (len(shape) == 3 and not {1, 3} & {shape[0], shape[2]}):
        yield path


def _paths(space: spaces.Space[Any], path: tuple[Key, ...]) -> Any:
    """(path, channels first) of every picture below a space."""
    if isinstance(space, spaces.Dict):
        for name, inner in space.spaces.items():
            yield from _paths(inner, (*path, name))
    elif isinstance(space, spaces.Tuple):
        for number, inner in enumerate(space.spaces):
            yield from _paths(inner, (*path, number))
    elif isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3:
        if space.shape[2] == 3:
            yield path, False
        elif space.shape[0] == 3:
            yield path, True


def _end(path: tuple[Key, ...]) -> str:
    return str(path[-1]) if path else ONLY_PICTURE


def _joined(path: tuple[Key, ...]) -> str:
    return "/".join(map(str, path)) or ONLY_PICTURE
