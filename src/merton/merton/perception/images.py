"""Image files to RGB arrays and back."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.files import refuse_folder
from merton.perception.image_size import check_size
from merton.perception.transparency import on_white
from merton.world.observation import Image

JPEG_QUALITY = 95
"""OpenCV's own default, 0 .. 100."""
WRITTEN = (".png", ".jpg", ".jpeg", ".webp", ".jp2", ".bmp", ".tif", ".tiff")
"""Endings of files that `write_image` writes: those of the kinds that `read_image` reads."""


def read_image(file: Path) -> Image:
    """An image file as (height, width, 3) uint8 RGB; raises InputError naming a file that cannot be read."""
    refuse_folder(file)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {str(file)!r}: {error.strerror}") from None
    try:
        return decode_image(content)
    except InputError as error:
        raise InputError(f"{str(file)!r} is {error}") from None


def write_image(image: Image, file: Path) -> None:
    """Write (height, width, 3) uint8 RGB in the format of the name's ending; .png keeps every pixel.

    Raises:
        InputError: an ending that names no image format of `WRITTEN`, an image that the format cannot hold, or a place
            that cannot be written; the text names the file.
    """
    check_written(file)
    content = encode_image(image, file.suffix)
    try:
        file.write_bytes(content)
    except OSError as error:
        raise InputError(f"cannot write {str(file)!r}: {error.strerror}") from None


def check_written(file: Path) -> None:
    """Raises InputError if `write_image` writes no file of this ending."""
    if file.suffix.lower() not in WRITTEN:
        kind = file.suffix or file.name
        raise InputError(f"cannot write an image of the kind {kind!r}; use .png, or one of: {', '.join(WRITTEN[1:])}")


def decode_image(content: bytes, opaque: bool = False) -> Image:
    """The content of an image file as (height, width, 3) uint8 RGB.

    PNG, JPEG, WEBP, JPEG 2000, BMP or TIFF. Turned as its EXIF data say. Deeper channels are reduced to 8 bit,
    transparent pictures are shown on white; with `opaque` a fourth channel means nothing and is left out.

    Raises:
        InputError: no intact image of these kinds, or one of more than `image_size.LARGEST_IMAGE_PX` pixels, which is
            seen in its header: nothing of it is decoded; or grey and transparent as TIFF or JPEG 2000.
    """
    check_size(content)
    on_ground = None if opaque else on_white(content)
    bgr = _decoded(content, cv2.IMREAD_COLOR) if on_ground is None else on_ground
    return np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), dtype=np.uint8)


def decode_plane(content: bytes) -> NDArray[np.generic]:
    """The values of an image file as they are stored, such as (height, width) uint16 of a depth image.

    Raises:
        InputError: as `decode_image`.
    """
    check_size(content)
    return np.asarray(_decoded(content, cv2.IMREAD_UNCHANGED))


def _decoded(content: bytes, mode: int) -> cv2.typing.MatLike:
    try:
        pixels = cv2.imdecode(np.frombuffer(content, np.uint8), mode)
    except cv2.error:  # most broken files give None
        pixels = None
    if pixels is None:
        raise InputError("not an intact image: its pixels cannot be decoded")
    return pixels


def encode_image(image: Image, ending: str = ".png", jpeg_quality: int = JPEG_QUALITY) -> bytes:
    """(height, width, 3) uint8 RGB as the content of a file that ends in `ending`.

    Raises:
        InputError: the format cannot hold it, such as a WEBP of more than 16,383 pixels a side.
    """
    options = [cv2.IMWRITE_JPEG_QUALITY, jpeg_quality] if ending.lower() in (".jpg", ".jpeg") else []
    done, content = cv2.imencode(ending, cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)
    if not done:
        height, width = image.shape[:2]
        raise InputError(f"an image of {width} x {height} pixels cannot be written as {ending}; use .png")
    return content.tobytes()
