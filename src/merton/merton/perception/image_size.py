"""Sizes of image files from their headers, so that a file of a few bytes cannot ask for gigabytes of pixels.

Also how many pictures a file has: a decoder gives the first and no word of the others.

Ours, because the size must be the one that the decoder uses: `imagesize` 2.0.1 reads some sizes signed or from another
place of the file, and OpenCV takes its own limit from the environment, once, as it is loaded. Each reader below looks
where the format's decoder looks, and refuses a file that could be read in two ways.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import simplejpeg

from merton.errors import InputError

LARGEST_IMAGE_PX = 2**27
"""Most pixels of an image that is decoded, 134 million: the largest sensors of phones fit, 400 MB as RGB."""
MOST_COUNTED = 1000
"""Pictures of a file are counted up to here."""


def check_size(content: bytes) -> None:
    """Check the size in the header of an image file before its pixels are decoded.

    Raises:
        InputError: the size is beyond `LARGEST_IMAGE_PX`, or cannot be read: no whole header of a PNG, JPEG, WEBP,
            JPEG 2000, BMP or TIFF file; or it has more than one picture: an animation, or pages.
    """
    size = None
    for first_bytes, read in _READERS:
        if content.startswith(first_bytes):
            try:
                size = read(content)
            except (struct.error, ValueError, KeyError):
                break
    if size is None or min(size) < 1:
        raise InputError("not an intact image of a kind that is read: PNG, JPEG, WEBP, JPEG 2000, BMP or TIFF")
    width, height = size
    if width * height > LARGEST_IMAGE_PX:
        raise InputError(
            f"too large: {width} x {height} pixels, at most {LARGEST_IMAGE_PX // 10**6} million are possible"
        )
    if (count := _pictures(content)) > 1:
        shown = f"{count} or more" if count == MOST_COUNTED else str(count)
        raise InputError(f"no single image: it has {shown} frames or pages; save the one that is meant as a PNG file")


def _png(content: bytes) -> tuple[int, int] | None:
    kind, width, height = struct.unpack_from(">4sII", content, 12)
    return (width, height) if kind == b"IHDR" else None


def _jpeg(content: bytes) -> tuple[int, int]:
    height, width = simplejpeg.decode_jpeg_header(content, strict=False)[
        :2
    ]  # libjpeg-turbo, which decodes the pixels too
    return width, height


def _webp(content: bytes) -> tuple[int, int] | None:
    kind = content[8:16]
    if kind == b"WEBPVP8 ":
        width, height = struct.unpack_from("<HH", content, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"WEBPVP8L":
        bits = struct.unpack_from("<I", content, 21)[0]
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"WEBPVP8X":
        low_width, high_width, low_height, high_height = struct.unpack_from("<HBHB", content, 24)
        return 1 + low_width + (high_width << 16), 1 + low_height + (high_height << 16)
    return None


def _jpeg2000(content: bytes) -> tuple[int, int] | None:
    """The box "ihdr", first in "jp2h"; OpenJPEG refuses a file whose codestream has another size."""
    position = 12
    while content[position + 4 : position + 8] != b"jp2h":
        length = struct.unpack_from(">I", content, position)[0]
        if length < 8:  # a box without end, or of more than 4 GB
            return None
        position += length
    kind, height, width = struct.unpack_from(">4sII", content, position + 12)
    return (width, height) if kind == b"ihdr" else None


def _codestream(content: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", content, 8)
    return width, height


def _bmp(content: bytes) -> tuple[int, int]:
    if struct.unpack_from("<I", content, 14)[0] == 12:  # the header of OS/2
        width, height = struct.unpack_from("<HH", content, 18)
    else:
        width, height = struct.unpack_from("<ii", content, 18)  # a negative height: rows from top to bottom
    return width, abs(height)


def _tiff(content: bytes) -> tuple[int, int]:
    """The largest width and height of the first picture or its tiles, which are decoded as a whole."""
    order = "<" if content.startswith(b"I") else ">"
    start = struct.unpack_from(order + "I", content, 4)[0]
    sides = {256: 0, 257: 0, 322: 0, 323: 0}  # width and height of the picture, of a tile
    for index in range(struct.unpack_from(order + "H", content, start)[0]):
        entry = start + 2 + 12 * index
        tag, kind = struct.unpack_from(order + "HH", content, entry)
        if tag in sides:
            side = struct.unpack_from(order + {3: "H", 4: "I"}[kind], content, entry + 8)[0]
            sides[tag] = max(sides[tag], side)
    if not (sides[256] and sides[257]):
        raise ValueError("a TIFF file without a size")
    return max(sides[256], sides[322]), max(sides[257], sides[323])


def _pictures(content: bytes) -> int:
    """Frames of an animated PNG or WEBP, pages of a TIFF, up to `MOST_COUNTED`; 1 where the file does not say."""
    try:
        if content.startswith(b"\x89PNG"):
            return min(_frames_of_png(content), MOST_COUNTED)
        if content.startswith(b"RIFF") and content[8:16] == b"WEBPVP8X" and content[20] & 2:
            return _frames_of_webp(content)
        if content.startswith((b"II*\0", b"MM\0*")):
            return _pages(content)
    except struct.error:
        pass
    return 1


def _frames_of_png(content: bytes) -> int:
    """The number in the chunk acTL, which stands before the pixels (PNG, third edition, 11.3.6)."""
    position = 8
    while True:
        length, kind = struct.unpack_from(">I4s", content, position)
        if kind == b"acTL":
            return int(struct.unpack_from(">I", content, position + 8)[0])
        if kind == b"IDAT":
            return 1
        position += 12 + length


def _frames_of_webp(content: bytes) -> int:
    """The chunks ANMF (RFC 9649, 2.7.1.1)."""
    position, count = 12, 0
    while position + 8 <= len(content) and count < MOST_COUNTED:
        kind, length = struct.unpack_from("<4sI", content, position)
        count += kind == b"ANMF"
        position += 8 + length + length % 2
    return count


def _pages(content: bytes) -> int:
    """Directories of a TIFF but those of smaller copies and masks, as their tag NewSubfileType says (TIFF 6.0)."""
    order = "<" if content.startswith(b"I") else ">"
    place, count, seen = struct.unpack_from(order + "I", content, 4)[0], 0, set[int]()
    while place and place not in seen and count < MOST_COUNTED and place + 2 <= len(content):
        seen.add(place)
        entries = struct.unpack_from(order + "H", content, place)[0]
        tags = {}
        for index in range(entries):
            tag, _, _, value = struct.unpack_from(order + "HHII", content, place + 2 + 12 * index)
            tags[tag] = value
        count += not tags.get(254, 0) & 5
        place = struct.unpack_from(order + "I", content, place + 2 + 12 * entries)[0]
    return max(count, 1)


_READERS: tuple[tuple[bytes, Callable[[bytes], tuple[int, int] | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8\xff", _jpeg),
    (b"RIFF", _webp),
    (b"\0\0\0\x0cjP  \r\n\x87\n", _jpeg2000),
    (b"\xff\x4f\xff\x51", _codestream),
    (b"BM", _bmp),
    (b"II*\0", _tiff),
    (b"MM\0*", _tiff),
)
"""First bytes of a kind of file, and the reader of its (width, height)."""
