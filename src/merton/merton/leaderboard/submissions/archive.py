"""Reading an archive from an untrusted sender, in memory only; dangerous members and names are refused.

Nothing is written to the disk, so no name in an archive can lead outside a folder. Bad names are refused all the same,
because others may unpack the archive. Archives inside archives are plain files and are never opened.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from merton.errors import InfrastructureError, InputError
from merton.results.text import one_line

MAX_ARCHIVE_BYTES = 16 * 2**20
"""Of the .zip; 100,000 scores are some 3 MB before they are compressed."""
MAX_BYTES = 32 * 2**20
"""Of all its files, unpacked."""
MAX_FILES = 100
MAX_RATIO = 200
"""Unpacked to packed bytes, beyond the first `FREE_BYTES`; a table of 100,000 equal scores reaches 70."""
FREE_BYTES = 2**20
MAX_PATH = 200
"""Characters in a name with its folders."""
MAX_DEPTH = 8
FORMATS = "a .zip or a folder"

Source = Path | str | BinaryIO
"""A folder, a .zip, or an open .zip, which is read from its current position."""

_CHUNK = 2**16
_ZIP_END = struct.Struct("<4s4H2LH")
_MAX_DIRECTORY = 2 * MAX_FILES * (46 + 2 * 4 * MAX_PATH)  # of a zip: so many entries with names and extra fields


class TooLargeError(InputError):
    """An archive is larger than the rules allow, packed or unpacked."""


@dataclass(frozen=True)
class Unpacked:
    """The files of an archive.

    Attributes:
        files: name with "/" between folders, such as "mine/manifest.yaml", to content.
        sha256: of the .zip; for a folder, of the .zip that `pack` makes of it.
    """

    files: Mapping[str, bytes]
    sha256: str


def read(source: Source) -> Unpacked:
    """The files in a .zip or a folder.

    Raises:
        TooLargeError: more than `MAX_ARCHIVE_BYTES`, `MAX_BYTES`, `MAX_FILES` or `MAX_RATIO`.
        InputError: no .zip, torn, encrypted, or with a link, a device, or a name that leads out of the folder, stands
            twice (upper and lower case count as the same) or cannot be shown.
        InfrastructureError: the disk fails while it is read.
    """
    return unpack(fetch(source))


def fetch(source: Source) -> bytes:
    """The bytes of a .zip, or of the one that `pack` makes of a folder.

    Raises:
        TooLargeError: more than `MAX_ARCHIVE_BYTES`.
        InputError: there is no such file, it is a pipe or a device, or a folder holds a file that `read` refuses.
        InfrastructureError: the disk fails.
    """
    try:
        if not isinstance(source, (str, Path)):
            data = source.read(MAX_ARCHIVE_BYTES + 1)
        elif Path(source).is_dir():
            data = pack(_checked(_from_folder(Path(source))))
        else:
            with _open_regular(Path(source)) as file:
                data = file.read(MAX_ARCHIVE_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"there is no file {source}") from None
    except OSError as error:
        raise InfrastructureError(f"cannot read the archive: {error.strerror or error}") from None
    if len(data) > MAX_ARCHIVE_BYTES:
        raise TooLargeError(f"the archive is larger than {MAX_ARCHIVE_BYTES // 2**20} MiB")
    return data


def unpack(data: bytes) -> Unpacked:
    """The files in the bytes of a .zip; raises as `read` does."""
    return Unpacked(_checked(_from_zip(data)), hashlib.sha256(data).hexdigest())


def pack(files: Mapping[str, bytes]) -> bytes:
    """A .zip of these files: sorted, without compression or times, so that equal files give equal bytes anywhere."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, files[name])
    return packed.getvalue()


def _checked(members: Iterator[tuple[str, bytes]]) -> dict[str, bytes]:
    """The members as a mapping; names, number and total size are checked one by one, before the next is unpacked."""
    files: dict[str, bytes] = {}
    taken: dict[str, str] = {}  # names of files and of their folders, as on a file system that ignores case
    total = 0
    for name, content in members:
        _check_name(name)
        key = folded(name)
        folders = [key[:end] for end, character in enumerate(key) if character == "/"]
        if key in taken or any(taken.get(folder) == "file" for folder in folders):
            raise InputError(f"the name {_shown(name)} stands twice in the archive; upper and lower case count as one")
        taken.update({key: "file", **dict.fromkeys(folders, "folder")})
        total += len(content)
        if total > MAX_BYTES:
            raise _too_much()
        if len(files) == MAX_FILES:
            raise TooLargeError(f"the archive has more than {MAX_FILES} files")
        files[name] = content
    return files


def _check_name(name: str) -> None:
    parts = name.split("/")
    if len(name) > MAX_PATH or len(parts) > MAX_DEPTH:
        raise InputError(
            f"the name {_shown(name)} is too long: at most {MAX_PATH} characters and {MAX_DEPTH - 1} folders"
        )
    if not name.isprintable():
        raise InputError(f"the name {_shown(name)} has characters that cannot be shown")
    if "\\" in name or ":" in name or any(part.strip(". ") == "" or part.endswith((".", " ")) for part in parts):
        raise InputError(
            f"the name {_shown(name)} is not allowed: names are relative, with '/' between folders, without '..', "
            "':' or '\\', and no part ends with a dot or a space"
        )


def folded(name: str) -> str:
    """A name without differences of case and of Unicode's equivalent forms (NFKC)."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _from_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    waiting, count = [folder], 0
    while waiting:
        for entry in sorted(os.scandir(waiting.pop()), key=lambda item: item.name):
            name = Path(entry.path).relative_to(folder).as_posix()
            _check_name(name)
            count += 1
            if count > 2 * MAX_FILES:
                raise TooLargeError(f"the folder has more than {MAX_FILES} files")
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
                continue
            with _open_regular(Path(entry.path), name) as file:
                yield name, file.read(MAX_BYTES + 1)


def _open_regular(path: Path, inside: str = "") -> BinaryIO:
    """The file, if it is one; no link is followed inside a directory, and no pipe is waited for."""
    if inside and path.is_symlink():
        raise InputError(f"{_shown(inside)} is a link; send the file itself")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (os.O_NOFOLLOW if inside else 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"{_shown(inside or str(path))} is not a regular file; send {FORMATS}")
    return os.fdopen(descriptor, "rb")


def _from_zip(data: bytes) -> Iterator[tuple[str, bytes]]:
    _check_zip_end(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            left = min(MAX_BYTES, FREE_BYTES + MAX_RATIO * len(data))  # counted, since the sizes it states may be wrong
            for entry in archive.infolist():
                if entry.filename.endswith("/"):
                    _check_name(entry.filename.rstrip("/"))
                    continue
                _check_zip_entry(entry)
                content = bytearray()
                with archive.open(entry) as file:
                    while chunk := file.read(_CHUNK):
                        left -= len(chunk)
                        if left < 0:
                            raise _too_much()
                        content += chunk
                yield entry.filename, bytes(content)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, struct.error, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the .zip is broken: {one_line(error)}") from None


def _check_zip_end(data: bytes) -> None:
    """Refuse archives that `zipfile` would misread, or read at length before their entries can be counted.

    It reads a directory of any size as a whole, passes over bytes before the first file and after the end, and follows
    the locator of a 64-bit directory wherever it finds one.
    """
    if not data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        raise InputError(f"this is no .zip; send {FORMATS}" if data else "the file is empty")
    tail = data[-_ZIP_END.size :]
    if len(tail) < _ZIP_END.size or tail[:4] != b"PK\x05\x06":
        raise InputError("the .zip is cut off, or has a comment, or bytes after its end")
    _, disk, first_disk, _, entries, size, offset, comment = _ZIP_END.unpack(tail)
    is_64_bit = data[-_ZIP_END.size - 20 :].startswith(b"PK\x06\x07")
    if disk or first_disk or comment or is_64_bit or offset + size != len(data) - _ZIP_END.size:
        raise InputError("the .zip has several parts, or bytes before or after it, or is of the 64-bit kind")
    if size > _MAX_DIRECTORY or entries > 2 * MAX_FILES:
        raise TooLargeError(f"the archive has more than {MAX_FILES} files")


def _check_zip_entry(entry: zipfile.ZipInfo) -> None:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if entry.orig_filename != entry.filename:  # zipfile cuts a name at a zero byte
        raise InputError(f"the name {_shown(entry.orig_filename)} has characters that cannot be shown")
    if entry.flag_bits & 1:
        raise InputError(f"{_shown(entry.filename)} is encrypted; send it without a password")
    if kind not in (0, stat.S_IFREG):
        raise InputError(f"{_shown(entry.filename)} is a link or a device; only files and folders are allowed")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{_shown(entry.filename)} is packed in an unusual way; zip it with 'deflate' or 'store'")


def _too_much() -> TooLargeError:
    return TooLargeError(
        f"the archive unpacks to more than {MAX_BYTES // 2**20} MiB, or to more than {MAX_RATIO} times its own size"
    )


def _shown(name: str) -> str:
    return repr(one_line(name))
