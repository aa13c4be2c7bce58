"""Pictures as a video file that any player opens."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from merton.errors import InfrastructureError, InputError, require
from merton.files import written_whole
from merton.world.observation import Image

ENCODERS = {
    "libx264": {"qp": "18", "preset": "fast"},
    "mpeg4": {"qscale": "3"},
    "mjpeg": {"qscale": "3"},
}
"""FFmpeg's encoders in the order in which they are tried, and their settings: H.264 and MPEG-4 at a quality at which
their own traces are not seen, and JPEG for an FFmpeg without either. H.264 with a constant quantizer: with a constant
rate factor, x264 gave other bytes for the same pictures in a process that also draws (measured, 1 of 2 films)."""


def write_video(file: Path, pictures: Iterable[Image], rate_hz: float, key_every: int | None = None) -> None:
    """Write pictures as an MP4 file, whole or not at all; equal pictures give equal bytes.

    Args:
        file: its name ends in .mp4; its folder is there.
        pictures: at least one, (height, width, 3) uint8 RGB of one size with an even height and width.
        rate_hz: pictures a second, > 0.
        key_every: at least each such picture can be decoded without those before it; None leaves it to the encoder.

    Raises:
        InputError: no pictures.
        InfrastructureError: the file cannot be written.
        MissingDependencyError: PyAV is not installed.
    """
    av = require("av", "people", "writing videos")
    name = next(name for name in ENCODERS if name in av.codecs_available and _can_write(av, name))
    try:
        with written_whole(file) as target, av.open(target, "w", format="mp4", options={"fflags": "+bitexact"}) as made:
            stream: Any = None
            for picture in pictures:
                if stream is None:
                    stream = made.add_stream(name, rate=Fraction(rate_hz).limit_denominator(1000))
                    stream.height, stream.width = picture.shape[:2]
                    stream.pix_fmt = "yuvj420p" if name == "mjpeg" else "yuv420p"
                    stream.options = ENCODERS[name] | ({"g": str(key_every)} if key_every else {})
                    stream.codec_context.thread_count = 1  # more of them need not give the same bytes
                    stream.codec_context.flags |= av.codec.context.Flags.bitexact
                made.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            if stream is None:
                raise InputError(f"{file.name} would have no pictures")
            made.mux(stream.encode())
    except OSError as error:
        raise InfrastructureError(f"cannot write {str(file)!r}: {error.strerror or error}") from None


def _can_write(av: Any, name: str) -> bool:
    try:
        return bool(av.Codec(name, "w").is_encoder)
    except ValueError:  # known for reading alone
        return False
