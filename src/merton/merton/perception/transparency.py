"""Transparent pictures on white, the ground that a page and the servers of vision-language models show them on.

OpenCV's own decoding to colour drops transparency, and what lies below it is mostly black: black ink on nothing becomes
a black rectangle. White is the ground of vLLM (`rgba_to_rgb`) and of a browser's page.
"""

from __future__ import annotations

from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.world.opencv import decode_unchanged

_PNG, _TIFF, _JP2, _CODESTREAM = b"\x89PNG", (b"II*\0", b"MM\0*"), b"\0\0\0\x0cjP  ", b"\xff\x4f\xff\x51"
_SAMPLES, _EXTRA, _SHORT = 277, 338, 3
"""Of TIFF 6.0: the tags for the samples of a pixel and the meaning of those beyond its colour, and a kind of number."""
_PREMULTIPLIED, _ALONE = 1, 2
"""Values of the tag `_EXTRA`: the colours are multiplied by the opacity, or are not."""
_BAND = 64
"""Rows that are put on white at once: their wider numbers are small beside the picture."""


def on_white(content: bytes) -> NDArray[np.uint8] | None:
    """A picture that may be transparent, on white, turned as its EXIF data say; None for one to be decoded as colour.

    Args:
        content: of an image file whose header `image_size.check_size` has passed.

    Returns:
        (height, width, 3) uint8 BGR. A pixel of colour c and opacity a in 0..1 is a c + (1 - a) 255, rounded; deeper
        channels are cut to 8 bit first.

    Raises:
        InputError: grey and transparent, as TIFF or JPEG 2000: the decoder drops the transparency of those.
    """
    if not may_be_transparent(content):
        return None
    if _samples(content) == 2:
        raise InputError("a grey picture with transparency as TIFF or JPEG 2000, which is not read: save it as PNG")
    try:
        found, exif = decode_unchanged(content)
    except cv2.error:
        return None
    if found is None or found.dtype not in (np.uint8, np.uint16):
        return None
    stored: NDArray[Any] = np.asarray(found)
    if stored.ndim == 3 and stored.shape[2] == 3 and stored.dtype == np.uint8 and exif is None:
        return stored  # the same as decoded to colour, so it is not decoded again
    if stored.ndim == 2:
        stored = _with_key(content, stored)
    if stored.ndim != 3 or stored.shape[2] != 4:
        return None
    # libtiff multiplies 8-bit colours by an opacity that stands alone, and hands 16-bit ones over as they are
    premultiplied = content.startswith(_TIFF) and _tags(content).get(_EXTRA) in (
        (_PREMULTIPLIED, _ALONE) if stored.dtype == np.uint8 else (_PREMULTIPLIED,)
    )
    eight_bit = stored.astype(np.uint8) if stored.dtype == np.uint8 else (stored >> 8).astype(np.uint8)
    shown = _composited(eight_bit, premultiplied)
    if exif is not None:  # OpenCV turns what it decodes to colour, and nothing else
        _, turned = cv2.imencodeWithMetadata(".png", shown, [cv2.IMAGE_METADATA_EXIF], [exif])
        shown = np.asarray(cv2.imdecode(turned, cv2.IMREAD_COLOR), np.uint8)
    return shown


def _composited(bgra: NDArray[np.uint8], premultiplied: bool) -> NDArray[np.uint8]:
    """(height, width, 4) on white; colours that were `premultiplied` hold their opacity already."""
    found = np.ascontiguousarray(bgra[..., :3])
    for top in range(0, len(found), _BAND):
        rows, a = found[top : top + _BAND], bgra[top : top + _BAND, :, 3:].astype(np.uint16)
        light = rows if premultiplied else (rows * a + 127) // 255  # at most 255 * 255 + 127, which fits
        rows[...] = np.minimum(light + (255 - a), 255)
    return found


def may_be_transparent(content: bytes) -> bool:
    """Whether it is worth decoding twice, from the header."""
    if content.startswith(_PNG):
        return content[25:26] in (b"\4", b"\6") or b"tRNS" in content[: content.find(b"IDAT")]
    if content.startswith(b"RIFF"):
        return content[12:16] != b"VP8 "
    return not content.startswith(b"\xff\xd8")


def _with_key(content: bytes, grey: NDArray[Any]) -> NDArray[Any]:
    """As BGRA a grey PNG whose transparent pixels are those of one grey (PNG specification, tRNS); others unchanged."""
    place = content.find(b"tRNS", 0, content.find(b"IDAT")) if content.startswith(_PNG) else -1
    if place < 0:
        return grey
    key, depth = _number(content[place + 4 : place + 6]), content[24]
    if depth < 8:
        key = key * 255 // (2**depth - 1)
    opacity = np.where(grey == key, 0, np.iinfo(grey.dtype).max).astype(grey.dtype)
    return np.dstack((grey, grey, grey, opacity))


def _samples(content: bytes) -> int:
    """Channels of a TIFF or JPEG 2000 file by its header; 0 for other kinds, or where it does not say."""
    if content.startswith(_TIFF):
        return _tags(content).get(_SAMPLES, 1)
    if content.startswith(_JP2):
        place = content.find(b"ihdr")
        return _number(content[place + 12 : place + 14])
    return _number(content[40:42]) if content.startswith(_CODESTREAM) else 0


def _tags(content: bytes) -> dict[int, int]:
    """The first values of those tags of a TIFF file's first picture that are short numbers."""
    order: Literal["little", "big"] = "little" if content.startswith(b"I") else "big"
    start = _number(content[4:8], order)
    found = {}
    for entry in range(start + 2, start + 2 + 12 * _number(content[start : start + 2], order), 12):
        kind, count = _number(content[entry + 2 : entry + 4], order), _number(content[entry + 4 : entry + 8], order)
        if kind == _SHORT and count <= 2:  # more do not fit into the entry
            found[_number(content[entry : entry + 2], order)] = _number(content[entry + 8 : entry + 10], order)
    return found


def _number(part: bytes, order: Literal["little", "big"] = "big") -> int:
    return int.from_bytes(part, order)
