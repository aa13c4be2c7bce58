"""Pictures of an import: copied into the pool under the hash of their bytes, each once; of a video its frames."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from merton.errors import InfrastructureError, InputError
from merton.files import written_whole
from merton.perception.image_size import check_size
from merton.results.text import one_line
from merton_studies.curation.importing.choices import listed
from merton_studies.curation.importing.frames import FRAMES, Frames, is_video
from merton_studies.curation.pool import MEDIA
from merton_studies.curation.question import Medium

_ENDINGS = {
    b"\x89PNG": ".png",
    b"\xff\xd8": ".jpg",
    b"RIFF": ".webp",
    b"BM": ".bmp",
    b"II*\0": ".tiff",
    b"MM\0*": ".tiff",
}
"""First bytes of a file to its ending; those of anything else that is read are of JPEG 2000."""
_IN_BASE64 = (*_ENDINGS, b"\0\0\0\x0cjP  ", b"\xff\x4f\xff\x51", b"GIF8")
"""First bytes of a file that a long text in base64 is taken for: what is read, and GIF, which is refused as such."""
_MATROSKA = b"\x1a\x45\xdf\xa3"
"""First bytes of a Matroska or WebM file."""
_LONGEST_ID = 64
"""A longer text may be a picture in base64, a shorter one the id of a row: VLMEvalKit's own bound."""


class MediaFolder:
    """The folder `media` of a pool that is being made.

    Args:
        out: folder of the pool.
        beside: paths of pictures and videos are relative to it.
        frames: of a video without stamps.
    """

    def __init__(self, out: Path, beside: Path, frames: int = FRAMES) -> None:
        self._out, self._beside = out, beside
        self.frames = Frames(out, frames)
        self._videos: set[tuple[Medium, ...]] = set()
        self._files: dict[Path, Medium] = {}
        self._by_row: dict[tuple[str, str], tuple[Medium, ...]] = {}

    def add(self, content: bytes, where: str) -> Medium:
        """Keep the bytes of a picture.

        Raises:
            InputError: no picture; the sentence begins with `where`.
            InfrastructureError: the folder cannot be written.
        """
        try:
            check_size(content)
        except InputError as error:
            if content.startswith(_MATROSKA) or content[4:8] == b"ftyp" or content[8:12] == b"AVI ":
                raise InputError(f"{where}: holds a video itself; write it to a file, and name its path here") from None
            raise InputError(f"{where}: the picture is {error}") from None
        sha256 = hashlib.sha256(content).hexdigest()
        ending = next((ending for start, ending in _ENDINGS.items() if content.startswith(start)), ".jp2")
        path = f"{MEDIA}/{sha256}{ending}"
        target = self._out / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # a file has its name only when it is whole, so one that is there is right
            if not target.exists():
                with written_whole(target, durable=False) as file:
                    file.write(content)
        except OSError as error:
            raise InfrastructureError(f"cannot write {target}: {error.strerror or error}") from None
        return Medium(path=path, sha256=sha256)

    def add_file(self, path: str, where: str) -> Medium:
        """Keep a copy of a picture's file; raises InputError if it is missing or no picture."""
        file = self._beside / path
        if file not in self._files:
            try:
                content = file.read_bytes()
            except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
                reason = getattr(error, "strerror", None) or error
                raise InputError(f"{where}: the picture {one_line(path, 60)!r} cannot be read: {reason}") from None
            self._files[file] = self.add(content, where)
        return self._files[file]

    def add_path(self, path: str, where: str, stamps_s: Sequence[float] = ()) -> tuple[Medium, ...]:
        """The picture of a path, or the frames of a video: a video file, or a folder of its frames.

        Args:
            path: relative to the folder of the class.
            where: for messages.
            stamps_s: seconds of a video file at which its frames are taken; without them, at equal distances.

        Raises:
            InputError: missing, no picture, no intact video, or stamps of something that is no video file.
            InfrastructureError: the folder cannot be written.
            MissingDependencyError: a video, and PyAV is not installed.
        """
        file = self._beside / path
        if is_video(file):
            found = self.frames.of_file(file, stamps_s, where, self.add)
        elif stamps_s:
            raise InputError(f"{where}: has stamps, and {one_line(path, 60)!r} is no video file")
        elif os.path.isdir(file):  # False, too, for a text that is no path
            pictures = self.frames.of_folder(file, where)
            found = tuple(self.add_file(str(picture.absolute()), where) for picture in pictures)
        else:
            return (self.add_file(path, where),)
        self._videos.add(found)
        return found

    def is_one_video(self, media: Sequence[Medium]) -> bool:
        """Whether pictures are the frames of one video, in their order."""
        return tuple(media) in self._videos

    def add_cell(
        self, cell: Any, where: str, column: str = "", row: str = "", stamps_s: Sequence[float] = ()
    ) -> tuple[Medium, ...]:
        """The pictures of a cell.

        Args:
            cell: nothing, a path of a picture, of a video or of a folder of its frames, bytes, a picture's file in
                base64 or as a data: address, {bytes, path} as Hugging Face has it, or a list of those, also as JSON or
                as Python writes it; or the id of an earlier row, whose pictures in the same column it shares, as in
                VLMEvalKit's tables.
            where: for messages.
            column: of the cell.
            row: id of the row; "" where none may refer to it.
            stamps_s: as of `add_path`.

        Raises:
            InputError: another value, no picture, or as `add_path`.
            InfrastructureError: the folder cannot be written.
        """
        if isinstance(cell, str):
            shared = self._by_row.get((column, cell)) if len(cell) <= _LONGEST_ID else None
            if shared and not (self._beside / cell).exists():
                return self._by_row.setdefault((column, row), shared) if row else shared
            cell = listed(cell) if cell.startswith("[") else cell
        found = tuple(self._media(cell, where, stamps_s))
        if row and found and isinstance(cell, str | list):
            self._by_row.setdefault((column, row), found)
        return found

    def _media(self, cell: Any, where: str, stamps_s: Sequence[float]) -> Iterator[Medium]:
        if cell is None or cell == "":
            return
        if isinstance(cell, list | tuple):
            for part in cell:
                yield from self._media(part, where, stamps_s)
        elif isinstance(cell, dict):
            content = cell.get("bytes")
            yield from self._media(cell.get("path") if content is None else content, where, stamps_s)
        elif isinstance(cell, bytes):
            yield self.add(cell, where)
        elif isinstance(cell, str):
            content = _from_base64(cell)
            if content is None:
                yield from self.add_path(cell, where, stamps_s)
            else:
                yield self.add(content, where)
        else:
            shown = one_line(repr(cell), 40)
            raise InputError(f"{where}: a picture is a path, the bytes of a file or these in base64, not {shown}")


def _from_base64(text: str) -> bytes | None:
    """The file of a picture that a text is in base64, alone or as a data: address; None for another text."""
    data = text.partition(",")[2] if text.startswith("data:") else text
    if not text.startswith("data:") and len(data) <= _LONGEST_ID:
        return None
    try:
        content = base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        return None
    return content if text.startswith("data:") or content.startswith(_IN_BASE64) else None
