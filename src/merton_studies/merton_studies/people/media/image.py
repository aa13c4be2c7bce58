"""Pictures of items as PNG files of pixels alone: no metadata, no name, and a size that tells nothing."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np

from merton.errors import InfrastructureError, InputError
from merton.files import write_file
from merton.perception.images import decode_image, encode_image
from merton.processes import usable_cores
from merton.progress import OnProgress, unseen
from merton.world.observation import Image
from merton_studies.people.media.sizes import padded

FORMAT = b"merton image 1"
"""Part of the hash in the name of a prepared picture: another way of preparing them needs another number."""

Source = TypeVar("Source")
Result = TypeVar("Result")


def prepare_image(source: Path | Image, folder: Path) -> tuple[Path, int, int]:
    """A picture as a PNG file that shows it and says nothing else.

    Its pixels are decoded (turned as EXIF data say) and written anew, without loss. It is named by a hash of its
    source, so that the same picture is prepared once; a file that is there already is used.

    Args:
        source: file of PNG, JPEG, WEBP, JPEG 2000, BMP or TIFF; or pixels, (height, width, 3) uint8 RGB.
        folder: of the project's prepared media; it is made if need be.

    Returns:
        The file, its width and its height [px].

    Raises:
        InputError: `source` cannot be read as a picture, or is larger than `image_size.LARGEST_IMAGE_PX`.
        InfrastructureError: the folder cannot be written.
    """
    pixels = source.tobytes() if isinstance(source, np.ndarray) else read_bytes(source)
    shape = repr(source.shape).encode() if isinstance(source, np.ndarray) else b""
    file = folder / f"{hash_of(FORMAT, shape, pixels)}.png"
    size = _png_size(file)
    if size is None:
        image = source if isinstance(source, np.ndarray) else decoded(source, pixels)
        make_folder(folder)
        write_file(file, padded(encode_image(image)))
        size = image.shape[1], image.shape[0]
    return file, *size


def in_parallel(
    prepare: Callable[[Source], Result],
    sources: Sequence[Source],
    on_progress: OnProgress = unseen,
) -> list[Result]:
    """The results of `prepare` for each source, in their order, on all cores: decoders and encoders run beside Python.

    Args:
        prepare: such as a call of `prepare_image`.
        sources: one for each call.
        on_progress: called with the number that is done and that of all.

    Raises:
        What `prepare` raises, for the first source in their order that fails.
    """
    results = []
    with ThreadPoolExecutor(usable_cores()) as pool:
        try:
            for result in pool.map(prepare, sources):
                results.append(result)
                on_progress(len(results), len(sources))
        finally:
            pool.shutdown(cancel_futures=True)
    return results


def hash_of(*parts: bytes) -> str:
    """The name of a prepared file: 32 hexadecimal digits of a SHA-256 over its parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(struct.pack("<Q", len(part)) + part)
    return digest.hexdigest()[:32]


def read_bytes(file: Path) -> bytes:
    """The content of a file; raises InputError naming a file that cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {str(file)!r}: {error.strerror}") from None


def decoded(file: Path, content: bytes) -> Image:
    """The picture in the content of a file; raises InputError naming it."""
    try:
        return decode_image(content)
    except InputError as error:
        raise InputError(f"{str(file)!r} is {error}") from None


def make_folder(folder: Path) -> None:
    """Make the folder of prepared media, if need be; raises InfrastructureError naming it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"cannot write into {str(folder)!r}: {error.strerror}") from None


def _png_size(file: Path) -> tuple[int, int] | None:
    """Width and height in the header of a PNG file; None if it is not there or is none."""
    try:
        with file.open("rb") as stream:
            start = stream.read(24)
    except OSError:
        return None
    if len(start) < 24 or start[:8] != b"\x89PNG\r\n\x1a\n":
        return None
    width, height = struct.unpack(">II", start[16:24])
    return width, height
