"""Media of items, prepared for the browser."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from merton.errors import InfrastructureError
from merton.files import write_file
from merton.people.item import Medium
from merton.perception.images import encode_image, read_image


def images_prepared(
    files: Sequence[Path], folder: Path, on_progress: Callable[[int, int], None]
) -> list[Callable[[str], Medium]]:
    """For each picture the function that makes a medium of it from its role."""
    found = []
    for number, file in enumerate(files, 1):
        found.append(_image(file, folder))
        on_progress(number, len(files))
    return found


def _image(source: Path, folder: Path) -> Callable[[str], Medium]:
    pixels = read_image(source)
    name = hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).hexdigest()
    file = folder / f"{name[:32]}.png"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"cannot write into {str(folder)!r}: {error.strerror}") from None
    if not file.is_file():
        write_file(file, encode_image(pixels))
    height, width = pixels.shape[:2]
    return lambda role: Medium(role, "image", file, width, height)
