"""Preparations of images for a metric, computed once and kept in files, however often a network is trained."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.files import written_whole
from merton.perception.images import read_image
from merton.processes import carried_out
from merton.progress import OnProgress, unseen
from merton.world.observation import Image

Array = NDArray[Any]
"""A preparation of one image, or of an image and its reference."""

_CHUNK = 150
"""Items that a worker gets at a time: all copies of a reference, five items each."""


@dataclass(frozen=True)
class Preparation:
    """A kind of preparation.

    Attributes:
        kind: its name and version; names the folder in the cache.
        compute: of the images of an item, one or two.
    """

    kind: str
    compute: Callable[..., Array]

    def of(self, files: tuple[Path, ...], cache: Path | None) -> Array:
        """The preparation of an image or a pair of images: from the cache, or computed and kept there.

        Raises:
            InputError: an image cannot be read, or two images have different sizes.
        """
        if cache is None:
            return self.compute(*_images(files))
        kept = cache / self.kind / f"{_state(files)}.npy"
        if kept.exists():
            return np.asarray(np.load(kept))
        made = self.compute(*_images(files))
        kept.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(kept, durable=False) as file:
            np.save(file, made)
        return made


Item = tuple[Preparation, tuple[Path, ...]]
"""A preparation, and the files of the images that it is made of."""


def prepare_all(items: Sequence[Item], cache: Path, on_progress: OnProgress = unseen) -> None:
    """Fill the cache with all items, by as many processes as there are cores.

    Progress counts the items that the cache does not hold yet. After an error the same call goes on from there.

    Raises:
        InputError: as `Preparation.of`.
        InfrastructureError: a worker was killed.
    """
    wanted = list(dict.fromkeys(items))
    missing = [(kind, files) for kind, files in wanted if not (cache / kind.kind / f"{_state(files)}.npy").exists()]
    done = 0
    chunks = [missing[start : start + _CHUNK] for start in range(0, len(missing), _CHUNK)]
    on_progress(done, len(missing))
    for _, count in carried_out(_fill, [(chunk, cache) for chunk in chunks]):
        done += count
        on_progress(done, len(missing))


def _fill(items: Sequence[Item], cache: Path) -> int:
    for preparation, files in items:
        preparation.of(files, cache)
    return len(items)


def _images(files: tuple[Path, ...]) -> list[Image]:
    images = [_read(file, _state((file,))) for file in files]
    if any(image.shape != images[0].shape for image in images):
        raise InputError(f"{str(files[0])!r} and its reference {str(files[1])!r} have different sizes")
    return images


@lru_cache(maxsize=2)
def _read(file: Path, state: str) -> Image:
    """An image; it and its reference are kept until the next, because several items are made of them."""
    return read_image(file)


def _state(files: tuple[Path, ...]) -> str:
    """A name for these files as they are now: a file that was written again has another."""
    parts = []
    for file in files:
        try:
            state = file.stat()
        except OSError as error:
            raise InputError(f"cannot read image {str(file)!r}: {error.strerror}") from None
        parts.append(f"{os.path.abspath(file)}\x1f{state.st_size}\x1f{state.st_mtime_ns}")
    return hashlib.sha256("\x1e".join(parts).encode()).hexdigest()[:32]
