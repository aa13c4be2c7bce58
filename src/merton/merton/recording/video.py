"""Pictures as a video file that any player opens."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class VideoForm:
    """The form of a video that is written like another one.

    Attributes:
        codec: FFmpeg's name of it, of `LIKE`.
        pixel_format: such as "yuv420p".
        time_base: the unit of the pictures' times [s].
        rate_hz: mean pictures a second.
        key_every: at least each such picture can be decoded alone.
    """

    codec: str
    pixel_format: str
    time_base: Fraction
    rate_hz: float
    key_every: int


LIKE = {
    "h264": ("libx264", {"qp": "18", "preset": "fast"}),
    "hevc": ("libx265", {"crf": "18", "preset": "fast", "x265-params": "log-level=error"}),
    "av1": ("libsvtav1", {"crf": "18", "preset": "8", "svtav1-params": "lp=1"}),
    "vp9": ("libvpx-vp9", {"crf": "18", "b": "0", "row-mt": "0"}),
    "mpeg4": ("mpeg4", {"qscale": "3"}),
}
"""Codec to the encoder that writes it and its settings: a quality at which noise that was put into a picture stays
there. LeRobot's usual factor of 30 for AV1 would smooth it away again."""


def write_video_like(file: Path, pictures: Iterable[tuple[float, Image]], form: VideoForm) -> None:
    """Write pictures, each at its time since the first, as an MP4 file, whole or not at all.

    Args:
        file: its name ends in .mp4; its folder is there.
        pictures: at least one, (seconds, (height, width, 3) uint8 RGB) of one size, in order.
        form: of the video.

    Raises:
        InputError: no pictures, or a codec or pixel format that cannot be written here.
        InfrastructureError: the file cannot be written.
        MissingDependencyError: PyAV is not installed.
    """
    os.environ.setdefault("SVT_LOG", "1")  # its errors alone: it prints its settings for every file
    av = require("av", "people", "writing videos")
    name, settings = LIKE.get(form.codec, ("", {}))
    if name not in av.codecs_available or not _can_write(av, name):
        raise InputError(
            f"videos of the codec {form.codec!r} cannot be written here; those that can: {', '.join(LIKE)}"
        )
    try:
        with written_whole(file) as target, av.open(target, "w", format="mp4", options={"fflags": "+bitexact"}) as made:
            stream: Any = None
            for time_s, picture in pictures:
                if stream is None:
                    stream = made.add_stream(name, rate=Fraction(form.rate_hz).limit_denominator(1001))
                    stream.height, stream.width = picture.shape[:2]
                    stream.pix_fmt, stream.time_base = form.pixel_format, form.time_base
                    stream.options = settings | {"g": str(form.key_every)}
                    stream.codec_context.time_base = form.time_base
                    stream.codec_context.thread_count = 1
                    stream.codec_context.flags |= av.codec.context.Flags.bitexact
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
                frame.pts, frame.time_base = round(time_s / form.time_base), form.time_base
                made.mux(stream.encode(frame))
            if stream is None:
                raise InputError(f"{file.name} would have no pictures")
            made.mux(stream.encode())
    except (av.error.FFmpegError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"a video of the codec {form.codec!r} and the pixel format {form.pixel_format!r} cannot be written: {error}"
        ) from None
    except OSError as error:
        raise InfrastructureError(f"cannot write {str(file)!r}: {error.strerror or error}") from None


def _can_write(av: Any, name: str) -> bool:
    try:
        return bool(av.Codec(name, "w").is_encoder)
    except ValueError:  # known for reading alone
        return False
