"""Sizes of prepared files, made equal so that the length of an answer tells nothing about what is shown."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from merton.errors import InfrastructureError
from merton_studies.people.item import Medium

SMALLEST_BYTES = 16 * 1024
"""No prepared file is smaller. Ours: a plain picture of 320 x 240 pixels is about this large."""


def padded(content: bytes) -> bytes:
    """The content of a prepared file with zeros behind it, up to the next power of two of at least `SMALLEST_BYTES`.

    Browsers end a PNG at its last chunk, and a reel says where each frame ends, so both pass over the zeros.
    """
    size = max(SMALLEST_BYTES, 1 << (len(content) - 1).bit_length())
    return content.ljust(size, b"\0")


def make_alike(media: Iterable[Medium]) -> None:
    """Give all prepared files of one kind, picture size, number of frames and rate the size of the largest of them.

    After this the size of a file is a function of what a rater sees anyway, and neither of a distortion nor of a
    model. Files only grow, by zeros that a file system with holes does not store; twice is as once.

    Args:
        media: all of a project, of all its items.

    Raises:
        InfrastructureError: a file is missing or cannot be written.
    """
    alike: dict[tuple[str, int, int, int, float], set[Path]] = defaultdict(set)
    for medium in media:
        alike[medium.kind, medium.width_px, medium.height_px, medium.frames, medium.rate_hz].add(medium.file)
    for files in alike.values():
        try:
            sizes = {file: file.stat().st_size for file in files}
            for file, size in sizes.items():
                if size < max(sizes.values()):
                    os.truncate(file, max(sizes.values()))
        except OSError as error:
            raise InfrastructureError(f"cannot prepare the media: {error.filename}: {error.strerror}") from None
