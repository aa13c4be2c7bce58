"""Colour and depth of image messages: one decoder for live topics and for recordings.

Messages are taken by their fields alone: sensor_msgs Image and CompressedImage, of rclpy or decoded from a recording.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.perception.images import decode_image, decode_plane
from merton.recording.images import PNG, png
from merton.world.observation import Image, millimetres

COLOR_CHANNELS = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}
DEPTH_BYTES = {"16UC1": 2, "mono16": 2, "32FC1": 4}
"""Bytes a pixel of the encodings of depth: whole millimetres, or metres in 32FC1 (REP 118)."""
_ENCODINGS = "16UC1 or mono16 (mm) or 32FC1 (m)"
MOST_PX = 8192
"""Pixels of a side at most."""

_TRANSPORT_HEADER = struct.Struct("<iff")
"""The header that compressed_depth_image_transport puts before the file (codec.cpp): its format, and the parameters A
and B of inverse depth, by which a value v of a 32FC1 image stands for A / (v - B) metres."""


def color_of(message: Any) -> Image:
    """(height, width, 3) uint8 RGB of an Image (rgb8, bgr8, rgba8, bgra8, mono8) or of a CompressedImage.

    The fourth channel is left out, as cv_bridge does, also of a CompressedImage that names an encoding with four: the
    opacity of a camera means nothing. Pixels of rgb8 are the message's own, not a copy.

    Raises:
        InputError: another encoding, sizes that do not fit together, or a file that cannot be decoded.
    """
    if hasattr(message, "format"):
        named = _encoding_of(message.format)
        if named in DEPTH_BYTES or named.startswith("bayer_"):
            raise InputError(f"a compressed image of {named} is no colour; use one of: {', '.join(COLOR_CHANNELS)}")
        return decode_image(bytes(message.data), opaque=_has_opacity(message))
    channels = COLOR_CHANNELS.get(message.encoding)
    if channels is None:
        raise InputError(
            f"image encoding {message.encoding!r} is not supported; use one of: {', '.join(COLOR_CHANNELS)}"
        )
    pixels = rows_of(message, channels).reshape(message.height, message.width, channels)
    if message.encoding.startswith("bgr"):
        return np.ascontiguousarray(pixels[:, :, 2::-1])
    return np.repeat(pixels, 3, axis=2) if channels == 1 else pixels[:, :, :3]


def file_of(message: Any) -> bytes:
    """The content of an image file, as `decode_image` reads it: of a CompressedImage as it is, of an Image as PNG.

    A CompressedImage with a fourth channel is written anew as PNG without it.

    Raises:
        InputError: a message that is written anew and that `color_of` refuses.
    """
    as_it_is = hasattr(message, "format") and not _has_opacity(message)
    return bytes(message.data) if as_it_is else bytes(png(color_of(message)))


def depth_m_of(message: Any) -> NDArray[np.float32]:
    """(height, width) float32 metres, 0 where unknown, of an Image (16UC1 or mono16 in mm, 32FC1 in m) or a
    CompressedImage of one: PNG or TIFF, with or without the header of compressedDepth.

    Raises:
        InputError: another encoding or codec, sizes that do not fit together, or a file that cannot be decoded.
    """
    values = _compressed_depth(message) if hasattr(message, "format") else _raw_depth(message)
    if values.dtype == np.uint16:
        return values.astype(np.float32) * np.float32(0.001)
    metres = values.astype(np.float32)
    return np.where((metres > 0) & np.isfinite(metres), metres, np.float32(0))


def depth_mm_of(message: Any) -> NDArray[np.uint16]:
    """As `depth_m_of`, in whole millimetres, (height, width) uint16; 0 beyond 65 m."""
    values = _compressed_depth(message) if hasattr(message, "format") else _raw_depth(message)
    return values if values.dtype == np.uint16 else millimetres(values.astype(np.float32))


def rows_of(message: Any, bytes_per_pixel: int) -> NDArray[np.uint8]:
    """The bytes of an Image's pixels, (height, width * bytes_per_pixel), checked against the sizes in it.

    Raises:
        InputError: sizes that do not fit together, or a side of more than `MOST_PX` pixels.
    """
    height, width, step = message.height, message.width, message.step
    if not (0 < height <= MOST_PX and 0 < width <= MOST_PX):
        raise InputError(f"an image of {width}x{height} pixels is not usable")
    data = np.frombuffer(message.data, np.uint8)
    if step < width * bytes_per_pixel or data.size != step * height:
        raise InputError(
            f"an image of {width}x{height} {message.encoding} with step {step} cannot have {data.size} bytes"
        )
    return data.reshape(height, step)[:, : width * bytes_per_pixel]


def _raw_depth(message: Any) -> NDArray[Any]:
    """The values of an Image of depth: uint16 millimetres or float metres."""
    size = DEPTH_BYTES.get(message.encoding)
    if size is None:
        raise InputError(f"depth encoding {message.encoding!r} is not supported; use {_ENCODINGS}")
    kind = np.dtype(np.uint16 if size == 2 else np.float32).newbyteorder(">" if message.is_bigendian else "<")
    return np.ascontiguousarray(rows_of(message, size)).view(kind).astype(kind.newbyteorder("="))


def _compressed_depth(message: Any) -> NDArray[Any]:
    """The values of a CompressedImage of depth: uint16 millimetres or float metres."""
    form, data = str(message.format), bytes(message.data)
    named, _, codec = (part.strip() for part in form.partition(";"))
    shown = form[:60].strip()
    if "rvl" in codec.lower().split():
        raise InputError(f"depth of format {shown!r} is not supported: record it as compressedDepth png, or raw")
    start = 0 if data.startswith(PNG) else _TRANSPORT_HEADER.size if "compresseddepth" in codec.lower() else 0
    encoding = named if codec or named in DEPTH_BYTES else "16UC1"
    if encoding not in DEPTH_BYTES:
        raise InputError(f"depth of format {shown!r} is not supported; use {_ENCODINGS}")
    try:
        values = decode_plane(data[start:])
    except InputError as error:
        raise InputError(f"a depth image of format {shown!r} is no PNG of 16 bits: {error}") from None
    if encoding == "32FC1" and values.dtype == np.float32 and values.ndim == 2:
        return values  # TIFF holds metres as they are
    if values.dtype != np.uint16 or values.ndim != 2:
        raise InputError(f"a depth image of format {shown!r} is no PNG of 16 bits")
    if encoding != "32FC1":
        return np.asarray(values, np.uint16)
    if not start:
        raise InputError(f"a depth image of format {shown!r} lacks the header with which it is read as metres")
    return _metres(np.asarray(values, np.uint16), *_TRANSPORT_HEADER.unpack_from(data)[1:])


def _metres(values: NDArray[np.uint16], a: float, b: float) -> NDArray[np.float32]:
    """Depth [m] from inverse depth, 0 where the value is 0 or behind the camera."""
    if not (np.isfinite((a, b)).all() and a > 0):
        raise InputError(f"a depth image of compressedDepth has parameters A = {a:g} and B = {b:g}; A must be positive")
    inverse = values.astype(np.float64) - b
    known = (values > 0) & (inverse > 0)
    return np.where(known, a / np.where(known, inverse, 1.0), 0.0).astype(np.float32)


def _has_opacity(message: Any) -> bool:
    """Whether a CompressedImage names an encoding of four channels."""
    return COLOR_CHANNELS.get(_encoding_of(message.format)) == 4


def _encoding_of(form: str) -> str:
    """The encoding of the image before it was compressed, as a CompressedImage names it; empty if it does not."""
    return form.partition(";")[0].strip() if ";" in form else ""
