"""Videos as reels: their frames at an even rate, decoded by FFmpeg (PyAV), with nothing else of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from merton.errors import InputError, require
from merton.perception.image_size import LARGEST_IMAGE_PX
from merton.world.observation import Image
from merton_studies.people.media.image import hash_of, read_bytes
from merton_studies.people.media.reel import FORMAT, Reel, fitted_size, kept_reel, write_reel

CONTAINERS = {".mp4": "mov", ".m4v": "mov", ".mov": "mov", ".mkv": "matroska", ".webm": "matroska", ".avi": "avi"}
"""Endings of video files, and FFmpeg's name of the only format that is tried: others, such as playlists, open further
files and addresses."""
MOST_HZ = 30.0
"""Frames a second of a reel; a video with more of them is thinned out."""


def reel_of_video(file: Path, folder: Path) -> Reel:
    """A reel of a video's first picture stream; prepared once, named by a hash of the file's content.

    Frames are turned as the file says, get square pixels, and are shown at the even rate of the file, at most
    `MOST_HZ`.

    Args:
        file: its name ends in one of `CONTAINERS`.
        folder: of the project's prepared media.

    Raises:
        InputError: another ending, not intact, no pictures in it, or as `write_reel`.
        InfrastructureError: the folder cannot be written.
        MissingDependencyError: PyAV is not installed.
    """
    container = CONTAINERS.get(file.suffix.lower())
    if container is None:
        raise InputError(f"{str(file)!r} is no video of a kind that is read; use one of: {', '.join(CONTAINERS)}")
    reel = folder / f"{hash_of(FORMAT, b'video', read_bytes(file))}.reel"
    kept = kept_reel(reel)
    if kept is not None:
        return kept
    av = require("av", "people", "reading videos")
    try:
        with av.open(str(file), format=container) as opened:
            if not opened.streams.video:
                raise InputError(f"{str(file)!r} has no pictures in it")
            stream = opened.streams.video[0]
            stream.thread_type = "AUTO"
            rate_hz = min(float(stream.average_rate or MOST_HZ), MOST_HZ)
            return write_reel(reel, evenly(_pictures(opened, stream, file), rate_hz), rate_hz, repr(str(file)))
    except InputError:
        raise
    except (av.error.FFmpegError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{str(file)!r} is no intact video: {reason}") from None


def evenly(timed: Iterable[tuple[float, Image]], rate_hz: float) -> Iterator[Image]:
    """Pictures taken at uneven times, at an even rate: at each tick the last one taken up to half a tick later.

    Args:
        timed: time of each picture [s], rising, and the picture.
        rate_hz: of the result, which begins with the first picture and ends with the last.
    """
    first_s: float | None = None
    ticks = 0
    before: Image | None = None
    for time_s, picture in timed:
        first_s = time_s if first_s is None else first_s
        due = round((time_s - first_s) * rate_hz)  # the tick at which this picture is shown first
        while before is not None and ticks < due:
            yield before
            ticks += 1
        before = picture
    if before is not None:
        yield before


def _pictures(opened: Any, stream: Any, file: Path) -> Iterator[tuple[float, Image]]:
    """Time [s] and pixels of each frame, turned, with square pixels, at most `reel.LONGEST_PX` long."""
    for index, frame in enumerate(opened.decode(stream)):
        if frame.width * frame.height > LARGEST_IMAGE_PX:
            raise InputError(f"{str(file)!r} has frames of {frame.width} x {frame.height} pixels: too large")
        aspect = float(stream.sample_aspect_ratio or 1) or 1.0
        height, width = fitted_size(frame.height, max(1, round(frame.width * aspect)))
        pixels = frame.to_ndarray(format="rgb24", width=width, height=height, interpolation="AREA")
        turned = np.rot90(pixels, round(frame.rotation / 90))  # both count against the clock
        yield index / MOST_HZ if frame.time is None else frame.time, np.ascontiguousarray(turned)
