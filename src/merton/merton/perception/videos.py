"""Videos, decoded by FFmpeg (PyAV): every frame with its time, or the frames at some times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from merton.errors import InputError, require
from merton.perception.image_size import LARGEST_IMAGE_PX
from merton.world.observation import Image

CONTAINERS = {
    ".mp4": "mov",
    ".m4v": "mov",
    ".mov": "mov",
    ".mkv": "matroska",
    ".webm": "matroska",
    ".avi": "avi",
    ".gif": "gif",
}
"""Endings of video files, and FFmpeg's name of the only format that is tried: others, such as playlists, open further
files and addresses."""
USUAL_HZ = 30.0
"""Frames a second where a file does not say."""
STAMP_ERROR_S = 0.001
"""Largest error of a frame's time: Matroska writes whole milliseconds."""
LEAST_MISSING_S, LEAST_MISSING = 0.5, 0.02
"""A video that ends earlier than its file says, by more than both of these seconds and this share, is cut off. Ours."""


@dataclass(frozen=True)
class Frame:
    """One frame of a video.

    Attributes:
        time_s, end_s: since the first frame, when it is shown first and no longer.
        width_px, height_px: with square pixels, before it is turned.
    """

    time_s: float
    end_s: float
    width_px: int
    height_px: int
    _decoded: Any

    @property
    def is_key(self) -> bool:
        """Whether it can be decoded without those before it."""
        return bool(self._decoded.key_frame)

    def image(self, width_px: int | None = None, height_px: int | None = None) -> Image:
        """Its pixels, (height, width, 3) uint8 RGB, turned as the file says; scaled before that if sizes are given."""
        size = {"width": width_px or self.width_px, "height": height_px or self.height_px}
        pixels = self._decoded.to_ndarray(format="rgb24", interpolation="AREA", **size)
        # frame.rotation and rot90 both count against the clock
        return np.ascontiguousarray(np.rot90(pixels, round(self._decoded.rotation / 90)))


@dataclass(frozen=True)
class Video:
    """An open video.

    Attributes:
        rate_hz: mean frames a second, as the file says.
        duration_s: as the file says; 0 where it does not.
        codec: FFmpeg's name of it, such as "h264".
        pixel_format: such as "yuv420p".
        time_base: the unit of times in the file [s].
        frames: every frame of the first picture stream, in the order in which they are shown; to be read once.
    """

    rate_hz: float
    duration_s: float
    codec: str
    pixel_format: str
    time_base: Fraction
    frames: Iterator[Frame]


@contextmanager
def open_video(file: Path, from_s: float = 0.0) -> Iterator[Video]:
    """A video, to be decoded frame by frame.

    Args:
        file: its name ends in one of `CONTAINERS`.
        from_s: since the first frame. The frames begin at or before it, where one can be decoded alone.

    Raises (also while its frames are read):
        InputError: an ending that is not in `CONTAINERS`, not intact, cut off, without pictures, frames too large.
        MissingDependencyError: PyAV is not installed.
    """
    container = CONTAINERS.get(file.suffix.lower())
    if container is None:
        raise InputError(f"{str(file)!r} is no video of a kind that is read; use one of: {', '.join(CONTAINERS)}")
    av = require("av", "people", "reading videos")
    try:
        with av.open(str(file), format=container) as opened:
            if container == "gif" and not _ends_as_a_gif(file):  # it tells neither its length nor its frames
                raise InputError(f"{str(file)!r} is cut off: it does not end as a GIF does")
            if not opened.streams.video:
                raise InputError(f"{str(file)!r} has no pictures in it")
            stream = opened.streams.video[0]
            stream.thread_type = "AUTO"
            rate_hz = float(stream.average_rate or USUAL_HZ)
            duration_s = _duration_s(opened, stream)
            first_s = None
            if from_s > 0 and stream.start_time is not None:
                first_s = float(stream.start_time * stream.time_base)
                opened.seek(max(0, int((first_s + from_s) / stream.time_base) - 1), stream=stream)
            frames = _frames(opened.decode(stream), stream, rate_hz, duration_s, file, first_s)
            codec, pixels = stream.codec_context.codec.canonical_name, stream.codec_context.pix_fmt or ""
            yield Video(rate_hz, duration_s, codec, pixels, stream.time_base or Fraction(1, 1000), frames)
    except InputError:
        raise
    except (av.error.FFmpegError, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{str(file)!r} is no intact video: {reason}") from None


def frames_at(file: Path, times_s: Sequence[float]) -> list[tuple[float, Image]]:
    """The frames that a player shows at some times.

    Args:
        file: its name ends in one of `CONTAINERS`.
        times_s: since the first frame, in any order.

    Returns:
        For each time, in the order given: the frame's own time [s], and its pixels (height, width, 3) uint8 RGB.

    Raises:
        InputError: a time before the first frame or after the end of the last; or as `open_video`.
    """
    shown_s, end_s = _times(file)
    for time_s in times_s:
        if not 0 <= time_s <= end_s + STAMP_ERROR_S:  # false for nan too
            raise InputError(f"{str(file)!r} has no frame at {time_s:g} s: it lasts {end_s:.3f} s")
    return _chosen(file, shown_s, times_s)


def frames_evenly(file: Path, count: int) -> list[tuple[float, Image]]:
    """At most `count` frames at equal distances in time, the first and the last among them; of one the middle.

    At a constant rate these are the frames `floor(linspace(0, last, count))`, as lmms-eval takes them. A frame that is
    shown at several of the times is there once. Result and errors as of `frames_at`.
    """
    if count < 1:
        raise InputError(f"at least one frame is needed, got {count}")
    shown_s, _ = _times(file)
    times_s = np.linspace(0.0, shown_s[-1], count) if count > 1 else np.array([shown_s[-1] / 2])
    return list(dict(_chosen(file, shown_s, times_s.tolist())).items())


def _times(file: Path) -> tuple[list[float], float]:
    """The time of every frame, and the end of the last [s]."""
    with open_video(file) as video:
        frames = [(frame.time_s, frame.end_s) for frame in video.frames]
    return [time_s for time_s, _ in frames], max(frames[-1][1], video.duration_s)


def _chosen(file: Path, shown_s: Sequence[float], times_s: Sequence[float]) -> list[tuple[float, Image]]:
    places = np.searchsorted(np.array(shown_s) - STAMP_ERROR_S, times_s, side="right") - 1
    found: dict[int, Image] = {}
    wanted = {int(place) for place in places}
    with open_video(file) as video:
        for place, frame in enumerate(video.frames):
            if place in wanted:
                found[place] = frame.image()
    return [(shown_s[place], found[place]) for place in places]


def _frames(
    decoded: Iterable[Any], stream: Any, rate_hz: float, duration_s: float, file: Path, first_s: float | None = None
) -> Iterator[Frame]:
    """The frames of a stream; raises InputError for one without any, or that ends too early."""
    aspect = float(stream.sample_aspect_ratio or 1) or 1.0
    time_s = end_s = 0.0
    for index, frame in enumerate(decoded):
        if frame.width * frame.height > LARGEST_IMAGE_PX:
            raise InputError(f"{str(file)!r} has frames of {frame.width} x {frame.height} pixels: too large")
        at_s = index / rate_hz if frame.time is None else frame.time
        first_s = at_s if first_s is None else first_s
        time_s = max(at_s - first_s, time_s)  # a faulty file may step back
        end_s = time_s + (float(frame.duration * frame.time_base) if frame.duration else 1.0 / rate_hz)
        yield Frame(time_s, end_s, max(1, round(frame.width * aspect)), frame.height, frame)
    if first_s is None:
        raise InputError(f"{str(file)!r} has no pictures in it")
    if duration_s - end_s > max(LEAST_MISSING_S, LEAST_MISSING * duration_s):
        raise InputError(f"{str(file)!r} is cut off: its pictures end after {end_s:.1f} s of {duration_s:.1f} s")


def _duration_s(opened: Any, stream: Any) -> float:
    """As the file says [s]; 0 where it does not. Of an AVI file that is cut off only the number of frames is left."""
    counted_s = float(stream.frames / stream.average_rate) if stream.average_rate else 0.0
    if stream.duration and stream.time_base:
        return max(float(stream.duration * stream.time_base), counted_s)
    alone = len(opened.streams) == 1  # else it may be the sound's
    return opened.duration / 1e6 if alone and opened.duration else counted_s


def _ends_as_a_gif(file: Path) -> bool:
    with file.open("rb") as content:
        content.seek(-min(64, file.stat().st_size), 2)
        return content.read().rstrip(b"\0").endswith(b";")
