"""Reels: moving pictures that a browser shows frame by frame, in both directions, and several of them in step.

A video element of a browser neither steps by frames nor keeps two videos together, and which videos it plays depends on
the browser. A reel is one file (ours) that any browser with a canvas can show:

    8 bytes   "MERTREEL"
    4 bytes   length of the header [bytes], unsigned, little end first
    header    JSON: {"version": 1, "width": px, "height": px, "rate_hz": frames a second,
                     "frames": [[start, length], ...]}, in bytes from the end of the header
    frames    JPEG files; a frame that is shown twice is stored once
    zeros     see `merton_studies.people.media.sizes`
"""

from __future__ import annotations

import json
import os
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cv2

from merton.errors import InputError
from merton.files import write_file
from merton.perception.images import encode_image
from merton.processes import usable_cores
from merton.world.observation import Image
from merton_studies.people.item import Medium
from merton_studies.people.media.image import decoded, hash_of, make_folder, read_bytes
from merton_studies.people.media.sizes import padded

MAGIC = b"MERTREEL"
FORMAT = b"merton reel 1"
"""Part of the hash in the name of a reel: another way of preparing them needs another number."""
JPEG_QUALITY = 90
"""JPEG quality of all frames, 0..100: the copy must not add defects of its own to the picture."""
LONGEST_PX = 1280
"""Greatest length of the longer side of a frame; larger ones are made smaller."""
MOST_FRAMES = 3600
"""Most frames of a reel: two minutes at 30 Hz."""
MOST_BYTES = 256 * 1024**2
"""Greatest size of a reel: a phone must hold it."""


@dataclass(frozen=True)
class Reel:
    """A reel on disk.

    Attributes:
        file: the file.
        width_px, height_px: of each frame.
        frames: their number, at least 1.
        rate_hz: frames a second, > 0.
    """

    file: Path
    width_px: int
    height_px: int
    frames: int
    rate_hz: float

    def medium(self, role: str) -> Medium:
        """The reel as a medium of an item."""
        return Medium(role, "reel", self.file, self.width_px, self.height_px, self.frames, self.rate_hz)


def write_reel(file: Path, pictures: Iterable[Image], rate_hz: float, source: str) -> Reel:
    """Write pictures as a reel, whole or not at all, encoded on all cores. Equal pictures give equal bytes.

    Args:
        file: to be written; its folder is made if need be.
        pictures: (height, width, 3) uint8 RGB of one size; one that is the same object as that before it is stored
            once.
        rate_hz: frames a second, > 0.
        source: where the pictures come from, for messages.

    Raises:
        InputError: no pictures, pictures of several sizes, more than `MOST_FRAMES`, or more than `MOST_BYTES`.
        InfrastructureError: the file cannot be written.
    """
    body, table = bytearray(), list[tuple[int, int]]()
    shape: tuple[int, ...] | None = None
    for count, (picture, content) in enumerate(_encoded(pictures), start=1):
        shape = shape or picture.shape
        if picture.shape != shape:
            raise InputError(
                f"{source}: picture {count} has {picture.shape[1]} x {picture.shape[0]} pixels, those before it "
                f"{shape[1]} x {shape[0]}; all pictures of a reel have one size"
            )
        if count > MOST_FRAMES:
            raise InputError(f"{source}: more than {MOST_FRAMES} frames at {rate_hz:g} Hz; cut it into shorter ones")
        if content is None:
            table.append(table[-1])
        else:
            table.append((len(body), len(content)))
            body += content
        if len(body) > MOST_BYTES:
            raise InputError(f"{source}: more than {MOST_BYTES // 1024**2} MB as a reel; make it shorter or smaller")
    if shape is None:
        raise InputError(f"{source}: there are no pictures in it")
    height, width = shape[:2]
    header = json.dumps(
        {"version": 1, "width": width, "height": height, "rate_hz": rate_hz, "frames": table}, separators=(",", ":")
    ).encode()
    make_folder(file.parent)
    write_file(file, padded(MAGIC + struct.pack("<I", len(header)) + header + body))
    return Reel(file, width, height, len(table), rate_hz)


def read_reel(file: Path) -> Reel:
    """The reel of a file, as its header describes it; raises InputError if the file is none."""
    header, _ = _header(file)
    return Reel(file, header["width"], header["height"], len(header["frames"]), header["rate_hz"])


def frames_of(file: Path) -> Iterator[bytes]:
    """The JPEG files in a reel, in their order; raises InputError if the file is none."""
    header, start = _header(file)
    content = read_bytes(file)
    for at, length in header["frames"]:
        yield content[start + at : start + at + length]


def reel_of_pictures(pictures: Sequence[Path] | Sequence[Image], rate_hz: float, folder: Path) -> Reel:
    """A reel of single pictures, such as the frames that a trial kept; prepared once, named by a hash of its content.

    Args:
        pictures: files as `prepare_image` reads them, or pixels (height, width, 3) uint8 RGB; all of one size.
        rate_hz: frames a second, > 0.
        folder: of the project's prepared media.

    Raises:
        InputError: no pictures, one that cannot be read, or as `write_reel`.
        InfrastructureError: the folder cannot be written.
    """
    parts = [FORMAT, repr(float(rate_hz)).encode()]
    named = [item for item in pictures if isinstance(item, Path)]
    source = f"{str(named[0].parent)!r}" if named else "the list of pictures"
    for item in pictures:
        parts += [read_bytes(item)] if isinstance(item, Path) else [repr(item.shape).encode(), item.tobytes()]
    file = folder / f"{hash_of(*parts)}.reel"
    images = (fitted(item if not isinstance(item, Path) else decoded(item, read_bytes(item))) for item in pictures)
    return kept_reel(file) or write_reel(file, images, float(rate_hz), source)


def kept_reel(file: Path) -> Reel | None:
    """The reel that was prepared before; None if there is none, or it is damaged."""
    try:
        return read_reel(file)
    except InputError:
        return None


def fitted(image: Image) -> Image:
    """A picture whose longer side is at most `LONGEST_PX`."""
    height, width = fitted_size(image.shape[0], image.shape[1])
    if (height, width) == image.shape[:2]:
        return image
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA).astype(image.dtype)


def fitted_size(height_px: int, width_px: int) -> tuple[int, int]:
    """Height and width at which the longer side is at most `LONGEST_PX`."""
    scale = min(1.0, LONGEST_PX / max(height_px, width_px))
    return max(1, round(height_px * scale)), max(1, round(width_px * scale))


def _encoded(pictures: Iterable[Image]) -> Iterator[tuple[Image, bytes | None]]:
    """Each picture with its JPEG; None for one that is the same object as that before it."""
    cores = usable_cores()
    waiting = deque[tuple[Image, "Future[bytes] | None"]]()
    before: Image | None = None
    with ThreadPoolExecutor(cores) as pool:
        for picture in pictures:
            same = picture is before
            waiting.append((picture, None if same else pool.submit(encode_image, picture, ".jpg", JPEG_QUALITY)))
            before = picture
            if len(waiting) > 2 * cores:  # so few are held decoded at a time
                first, job = waiting.popleft()
                yield first, None if job is None else job.result()
        for first, job in waiting:
            yield first, None if job is None else job.result()


def _header(file: Path) -> tuple[dict, int]:
    """The header of a reel, and where it ends [bytes]."""
    try:
        with file.open("rb") as stream:
            start = stream.read(12)
            length = struct.unpack("<I", start[8:])[0] if len(start) == 12 and start[:8] == MAGIC else 0
            header = json.loads(stream.read(length)) if 0 < length <= MOST_BYTES else None
            size = os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise InputError(f"cannot read {str(file)!r}: {error.strerror}") from None
    except ValueError:
        header = None
    if header is None or header.get("version") != 1:
        raise InputError(f"{str(file)!r} is no reel")
    if max(at + length for at, length in header["frames"]) > size - 12 - length:
        raise InputError(f"{str(file)!r} is a reel that is cut off")
    return header, 12 + length
