"""Pictures of an import: copied into the pool under the hash of their bytes, each once."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from merton.curation.pool import MEDIA
from merton.curation.question import Medium
from merton.errors import InfrastructureError, InputError
from merton.files import written_whole
from merton.perception.image_size import check_size

_ENDINGS = {
    b"\x89PNG": ".png",
    b"\xff\xd8": ".jpg",
    b"RIFF": ".webp",
    b"BM": ".bmp",
    b"II*\0": ".tiff",
    b"MM\0*": ".tiff",
}
"""First bytes of a file to its ending; those of anything else that is read are of JPEG 2000."""


class MediaFolder:
    """The folder `media` of a pool that is being made.

    Args:
        out: folder of the pool.
        beside: paths of pictures are relative to it.
    """

    def __init__(self, out: Path, beside: Path) -> None:
        self._out, self._beside = out, beside
        self._files: dict[Path, Medium] = {}

    def add(self, content: bytes, where: str) -> Medium:
        """Keep the bytes of a picture.

        Raises:
            InputError: no picture; the sentence begins with `where`.
            InfrastructureError: the folder cannot be written.
        """
        try:
            check_size(content)
        except InputError as error:
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
            except OSError as error:
                raise InputError(f"{where}: the picture {path!r} cannot be read: {error.strerror}") from None
            self._files[file] = self.add(content, where)
        return self._files[file]

    def add_cell(self, cell: Any, where: str) -> tuple[Medium, ...]:
        """The pictures of a cell: nothing, a path, bytes, {bytes, path} as Hugging Face has it, or a list of those."""
        if cell is None or cell == "":
            return ()
        if isinstance(cell, list | tuple):
            return tuple(medium for part in cell for medium in self.add_cell(part, where))
        if isinstance(cell, dict):
            content, path = cell.get("bytes"), cell.get("path")
            return (self.add(content, where),) if content is not None else self.add_cell(path, where)
        if isinstance(cell, bytes):
            return (self.add(cell, where),)
        if isinstance(cell, str):
            return (self.add_file(cell, where),)
        raise InputError(f"{where}: a picture is a path or the bytes of a file, not {str(cell)[:40]!r}")
