"""Short videos whose frames carry their number as eight bars, so that a frame can be recognised after any codec."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from merton.world.observation import Image

BITS = 8
CODECS = {".mp4": "mpeg4", ".mov": "mpeg4", ".avi": "mjpeg", ".webm": "libvpx", ".gif": "gif"}
WIDTH_PX, HEIGHT_PX = 128, 96


def numbered(number: int) -> Image:
    """A picture with the number's bits as white bars, the lowest at the left."""
    bits = [255 * (number >> bit & 1) for bit in range(BITS)]
    row = np.repeat(np.array(bits, np.uint8), WIDTH_PX // BITS)
    return np.repeat(np.tile(row, (HEIGHT_PX, 1))[:, :, None], 3, axis=2)


def number_of(image: Image) -> int:
    """The number of a picture of `numbered`."""
    bar = image.shape[1] // BITS
    row = image[image.shape[0] // 2].mean(axis=1)
    return sum(1 << bit for bit in range(BITS) if row[bit * bar + bar // 4 : bit * bar + 3 * bar // 4].mean() > 127)


def write_numbered(
    file: Path, count: int, rate_hz: int = 10, first: int = 0, times_s: Sequence[float] | None = None
) -> Path:
    """A video of pictures with the numbers first, first + 1, ...; at the rate, or each at its own time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    codec = CODECS[file.suffix]
    with av.open(str(file), "w") as made:
        stream = made.add_stream(codec, rate=rate_hz if times_s is None else 1000)
        stream.width, stream.height = WIDTH_PX, HEIGHT_PX
        stream.pix_fmt = {"gif": "rgb8", "mjpeg": "yuvj420p"}.get(codec, "yuv420p")
        for place in range(count):
            frame = av.VideoFrame.from_ndarray(numbered(first + place), format="rgb24")
            if times_s is not None:
                frame.pts, frame.time_base = round(1000 * times_s[place]), Fraction(1, 1000)
            made.mux(stream.encode(frame))
        made.mux(stream.encode())
    return file
