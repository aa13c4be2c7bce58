"""Decoding of foreign images: intact PNG, JPEG and WEBP stills; any other file is refused with a reason."""

from __future__ import annotations

import zlib

import simplejpeg

from merton.errors import InputError
from merton.perception.distortion.base import LARGEST_SIDE_PX, SMALLEST_SIDE_PX
from merton.perception.image_size import check_size
from merton.perception.images import decode_image
from merton.world.observation import Image

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
CHECKED = (_PNG, _JPEG, b"RIFF")
"""First bytes of the kinds that `decode` reads, and in which it looks for damage."""
_HARMLESS = ("Adobe color transform", "JFIF revision", "SOS parameters", "ICC marker")
"""Warnings of the JPEG decoder about the header alone, as for all files of some phones and editors."""


def decode(content: bytes) -> Image:
    """The picture in a file's content as (height, width, 3) uint8 RGB, see `decode_image`.

    Damage in the middle of a file is found as far as the format allows: PNG has checksums, the codes of a JPEG lose
    their synchrony, but almost any bytes inside a WEBP decode to some image.

    Raises:
        InputError: not a whole, still PNG, JPEG or WEBP picture with sides of 16 .. 16383 pixels; the text says why.
    """
    if content.startswith(CHECKED):
        check_size(content)  # before anything is decoded; animations are refused here
    if content.startswith(_PNG):
        _check_png(content)
    elif content.startswith(_JPEG):
        _check_jpeg(content)
    elif content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        if int.from_bytes(content[4:8], "little") > len(content) - 8:
            raise InputError("the WEBP file is cut off")
    else:
        raise InputError("not a PNG, JPEG or WEBP file" if content else "the file is empty")
    try:
        image = decode_image(content)
    except InputError:
        raise InputError("the file is broken: it cannot be decoded") from None
    height, width = image.shape[:2]
    if min(height, width) < SMALLEST_SIDE_PX:
        side = SMALLEST_SIDE_PX
        raise InputError(f"too small: {width} x {height} pixels, at least {side} x {side} are needed")
    if max(height, width) > LARGEST_SIDE_PX:
        raise InputError(f"too large: {width} x {height} pixels, at most {LARGEST_SIDE_PX} a side are possible")
    return image


def _check_png(content: bytes) -> None:
    """Check every chunk: the checksums must be right, and the last chunk must exist."""
    position, kind = len(_PNG), b""
    while kind != b"IEND":
        length = int.from_bytes(content[position : position + 4], "big")
        end = position + 12 + length
        if end > len(content):
            raise InputError("the PNG file is cut off")
        kind = content[position + 4 : position + 8]
        if zlib.crc32(content[position + 4 : end - 4]) != int.from_bytes(content[end - 4 : end], "big"):
            raise InputError("the PNG file is broken: a checksum is wrong")
        position = end


def _check_jpeg(content: bytes) -> None:
    """Decode at an eighth of the size; warnings of the decoder are errors here, while OpenCV only prints them."""
    try:
        color = simplejpeg.decode_jpeg_header(content)[2]
        space = "CMYK" if color in ("CMYK", "YCCK") else "GRAY"
        simplejpeg.decode_jpeg(content, space, min_height=1, min_width=1, min_factor=8, strict=True)
    except ValueError as error:
        if any(name in str(error) for name in _HARMLESS):
            # the decoder stops at this warning: check at least the end marker
            if content.rfind(b"\xff\xd9") < content.rfind(b"\xff\xda"):
                raise InputError("the JPEG file is cut off") from None
            return
        reason = str(error).removeprefix("Corrupt JPEG data: ")
        raise InputError(f"the JPEG file is damaged: {reason[:1].lower()}{reason[1:]}") from None
