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
OTHER = "is of another form than a picture: stacked, with transparency, or of floats"
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
    paths = list(_paths(space))
    ends = [_end(path) for path, _ in paths]
    places = tuple(
        PicturePlace(end if ends.count(end) == 1 else _joined(path), path, channels_first)
        for end, (path, channels_first) in zip(ends, paths, strict=True)
    )
    others = [_joined(path) for path, box in _boxes(space) if _is_other(box)]
    if not places and others:
        raise InputError(f"{others[0]} {OTHER}: put the wrapper inside of the one that makes it")
    if not places:
        raise InputError(
            "the observations have no picture, a Box of uint8 (height, width, 3) or (3, height, width); "
            "gymnasium.wrappers.AddRenderObservation makes what is rendered one"
        )
    if keys is None:
        if others:
            raise InputError(
                f"{others[0]} {OTHER}, and would stay undistorted: put the wrapper inside of the one that makes it, or "
                f"choose by keys= from: {', '.join(place.camera for place in places)}"
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


def _is_other(box: spaces.Box) -> bool:
    """Whether it is seen, but is no picture: a stack of them, four channels, floats. One channel is a mask or a depth.

    Floats are colours where they are three channels between 0 and 1 or 255; others are points, normals, features.
    """
    shape = box.shape
    if box.dtype == np.uint8:
        return len(shape) > 3 or (len(shape) == 3 and not {1, 3} & {shape[0], shape[2]})
    is_colour = np.issubdtype(box.dtype, np.floating) and len(shape) == 3 and 3 in (shape[0], shape[2])
    return bool(is_colour and (box.low == 0).all() and (np.isin(box.high, (1, 255))).all())


def _boxes(space: spaces.Space[Any], path: tuple[Key, ...] = ()) -> Iterator[tuple[tuple[Key, ...], spaces.Box]]:
    """Path and space of every Box below a space, through Dict and Tuple."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        items = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for key, inner in items:
            yield from _boxes(inner, (*path, key))
    elif isinstance(space, spaces.Box):
        yield path, space


def _paths(space: spaces.Space[Any]) -> Iterator[tuple[tuple[Key, ...], bool]]:
    """(path, channels first) of every picture below a space."""
    for path, box in _boxes(space):
        if box.dtype == np.uint8 and len(box.shape) == 3 and 3 in (box.shape[0], box.shape[2]):
            yield path, box.shape[2] != 3


def _end(path: tuple[Key, ...]) -> str:
    return str(path[-1]) if path else ONLY_PICTURE


def _joined(path: tuple[Key, ...]) -> str:
    return "/".join(map(str, path)) or ONLY_PICTURE
