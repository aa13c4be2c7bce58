"""Videos as reels: their frames at an even rate, with nothing else of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from merton.errors import InputError
from merton.perception.videos import CONTAINERS, Video, open_video
from merton.world.observation import Image
from merton_studies.people.media.image import hash_of, read_bytes
from merton_studies.people.media.reel import FORMAT, Reel, fitted_size, kept_reel, write_reel

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
        InputError: as `open_video` and `write_reel`.
        InfrastructureError: the folder cannot be written.
        MissingDependencyError: PyAV is not installed.
    """
    if file.suffix.lower() not in CONTAINERS:
        raise InputError(f"{str(file)!r} is no video of a kind that is read; use one of: {', '.join(CONTAINERS)}")
    reel = folder / f"{hash_of(FORMAT, b'video', read_bytes(file))}.reel"
    kept = kept_reel(reel)
    if kept is not None:
        return kept
    with open_video(file) as video:
        rate_hz = min(video.rate_hz, MOST_HZ)
        return write_reel(reel, evenly(_pictures(video), rate_hz), rate_hz, repr(str(file)))


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


def _pictures(video: Video) -> Iterator[tuple[float, Image]]:
    """Time [s] and pixels of each frame, turned, with square pixels, at most `reel.LONGEST_PX` long."""
    for frame in video.frames:
        height, width = fitted_size(frame.height_px, frame.width_px)
        yield frame.time_s, frame.image(width, height)
