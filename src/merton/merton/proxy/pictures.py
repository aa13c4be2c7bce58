"""The pictures of an observation: which parts of it are some, their cameras' names, and others put in their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from merton.proxy.spans import Piece
from merton.world.observation import Image

LEAST_PX = 8
"""The shortest side of a picture; a smaller array (a mask, a matrix) is none. Ours."""


@dataclass(frozen=True)
class Picture:
    """A picture in a message.

    Attributes:
        path: the keys that lead to it.
        read: its pixels (height, width, 3) uint8 RGB.
        write: the piece of the message that shows other pixels of the same size in its place.
    """

    path: tuple[str, ...]
    read: Callable[[], Image]
    write: Callable[[Image], Piece]


def in_array(
    path: tuple[str, ...], shape: Sequence[int], content: Callable[[], bytes], write: Callable[[bytes], Piece]
) -> Picture | None:
    """The picture that an array of bytes (uint8) holds, rows first or channels first; None if it is none.

    Args:
        path: the keys that lead to it.
        shape: of the array.
        content: its bytes in C order.
        write: the piece of the message for other bytes of the same number.
    """
    if len(shape) != 3 or min(shape) < 3 or sorted(shape)[1] < LEAST_PX or 3 not in (shape[0], shape[2]):
        return None
    rows_first = shape[2] == 3

    def pixels() -> Image:
        array = np.frombuffer(content(), np.uint8).reshape(shape)
        return np.ascontiguousarray(array if rows_first else array.transpose(1, 2, 0))

    def shown(image: Image) -> Piece:
        return write(np.ascontiguousarray(image if rows_first else image.transpose(2, 0, 1)).tobytes())

    return Picture(path, pixels, shown)


def walk(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[Any, Any]]]:
    """Every dictionary within a value, the outer before the inner, with the keys that lead to it."""
    if isinstance(value, dict):
        yield path, value
        for key, item in value.items():
            yield from walk(item, (*path, key if isinstance(key, str) else repr(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                yield from walk(item, (*path, str(index)))


def by_camera(pictures: Sequence[Picture]) -> dict[str, Picture]:
    """Pictures by the names of their cameras: the last part of the keys that lead there, split at "/".

    "observation/wrist_image" and {"images": {"wrist_image": ...}} are both of the camera wrist_image. Where two have
    the same last part, all parts are the name, joined by ".".
    """
    parts = [[part for key in picture.path for part in key.split("/") if part] for picture in pictures]
    last = Counter(one[-1] for one in parts)
    return {
        one[-1] if last[one[-1]] == 1 else ".".join(one): picture for one, picture in zip(parts, pictures, strict=True)
    }


def pieces(pictures: Mapping[str, Picture], before: Mapping[str, Image], shown: Mapping[str, Image]) -> list[Piece]:
    """What to replace in a message so that it shows these pictures; nothing for those that are as they were."""
    return [
        pictures[camera].write(image)
        for camera, image in shown.items()
        if image is not before[camera] and not np.array_equal(image, before[camera])
    ]
