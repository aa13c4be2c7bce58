"""Media of items, prepared for the browser; a medium gets its role where an item is made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from merton.errors import InputError
from merton.perception.videos import CONTAINERS
from merton.progress import OnProgress
from merton_studies.people.item import Medium
from merton_studies.people.media.image import in_parallel, prepare_image
from merton_studies.people.media.reel import reel_of_pictures
from merton_studies.people.media.video import reel_of_video

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff")
"""Endings of files of pictures."""
FOLDER_HZ = 10.0
"""Frames a second of a video that is a folder of pictures."""

Prepared = Callable[[str], Medium]
"""Role to medium."""


def images_prepared(files: Sequence[Path], folder: Path, on_progress: OnProgress) -> list[Prepared]:
    """The medium of each picture, prepared on all cores."""
    return in_parallel(partial(image_prepared, folder=folder), files, on_progress)


def image_prepared(file: Path, folder: Path) -> Prepared:
    """The medium of a picture; raises InputError if the file is none."""
    prepared, width, height = prepare_image(file, folder)
    return lambda role: Medium(role, "image", prepared, width, height)


def reel_prepared(pictures: Sequence[Path], rate_hz: float, folder: Path) -> Prepared:
    """The medium of pictures in their order, at so many a second."""
    return reel_of_pictures(pictures, rate_hz, folder).medium


def video_prepared(video: Path, folder: Path) -> Prepared:
    """The medium of a video: a file, a folder of pictures in the order of their names, or a single picture.

    Raises:
        InputError: there is no such file, or it is none of these.
    """
    if video.is_dir():
        pictures = pictures_in(video)
        if not pictures:
            raise InputError(f"the folder {str(video)!r} has no pictures, so it is no video")
        return reel_prepared(pictures, FOLDER_HZ, folder)
    if video.suffix.lower() in ENDINGS:
        return reel_prepared([video], FOLDER_HZ, folder)
    return reel_of_video(video, folder).medium


def is_video(path: Path) -> bool:
    """Whether `video_prepared` would take a file or folder, by its name."""
    return path.suffix.lower() in (*ENDINGS, *CONTAINERS) if path.is_file() else bool(pictures_in(path))


def pictures_in(folder: Path) -> list[Path]:
    """The pictures directly in a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS and path.is_file())
