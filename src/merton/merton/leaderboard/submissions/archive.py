"""Reading an archive that a stranger sent: everything stays in memory, and whatever could do harm is refused.

Nothing is written to the disk, so no name in an archive can lead anywhere; names are refused all the same, because
others will unpack what is kept. Archives inside archives are files like any other and are never opened.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import stat
import struct
import tarfile
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
"""Of the file that is sent; 100,000 scores are some 3 MB before they are compressed."""
MAX_BYTES = 32 * 2**20
"""Of everything in it, unpacked."""
MAX_FILES = 100
MAX_RATIO = 200
"""Unpacked to packed bytes, beyond the first `FREE_BYTES`; a table of 100,000 equal scores reaches 70."""
FREE_BYTES = 2**20
MAX_NAME = 200
"""Characters in a name with its folders."""
MAX_DEPTH = 8
FORMATS = "a directory, .zip, .tar, .tar.gz or .tar.xz"

Source = Path | str | BinaryIO
"""A directory, a file, or an open file that is read from where it stands."""

_CHUNK = 2**16
_ZIP_END = struct.Struct("<4s4H2LH")
_MAX_DIRECTORY = 2 * MAX_FILES * (46 + 2 * 4 * MAX_NAME)  # of a zip: so many entries with names and extra fields
_XZ_MEMORY = 128 * 2**20  # xz -9 needs 65 MiB; a stream may ask for gigabytes
_TAR_NOTES = {b"x": "path", b"L": "name"}


class TooLargeError(InputError):
    """An archive is larger than the rules allow, packed or unpacked."""


@dataclass(frozen=True)
class Contents:
    """The files of an archive.

    Attributes:
        files: name with "/" between folders, such as "mine/manifest.yaml", to content.
        sha256: of the archive's bytes; of a directory, of those that `pack` makes of it.
    """

    files: Mapping[str, bytes]
    sha256: str


def read(source: Source) -> Contents:
    """The files in a directory, .zip, .tar, .tar.gz or .tar.xz; which of them it is, the content tells.

    Raises:
        TooLargeError: more than `MAX_ARCHIVE_BYTES`, `MAX_BYTES`, `MAX_FILES` or `MAX_RATIO`.
        InputError: none of these formats, torn, encrypted, or with a link, a device, or a name that leads out of the
            folder, stands twice (upper and lower case count as the same) or cannot be shown.
        InfrastructureError: the disk fails while it is read.
    """
    return unpack(fetch(source))


def fetch(source: Source) -> bytes:
    """The bytes of an archive, or of the one that `pack` makes of a directory.

    Raises:
        TooLargeError: more than `MAX_ARCHIVE_BYTES`.
        InputError: there is no such file, it is a pipe or a device, or a directory has in it what `read` refuses.
        InfrastructureError: the disk fails.
    """
    try:
        if not isinstance(source, (str, Path)):
            data = source.read(MAX_ARCHIVE_BYTES + 1)
        elif Path(source).is_dir():
            data = pack(_checked(_from_directory(Path(source))))
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


def unpack(data: bytes) -> Contents:
    """The files in an archive's bytes; raises as `read` does."""
    return Contents(_checked(_members(data)), hashlib.sha256(data).hexdigest())


def pack(files: Mapping[str, bytes]) -> bytes:
    """A .zip of these files: sorted, without compression or times, so that equal files give equal bytes anywhere."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, files[name])
    return packed.getvalue()


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file; which format it is stands in the first bytes."""
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _from_zip(data)
    if data.startswith(b"\x1f\x8b"):
        return _from_tar(_unpacked(data, zlib.decompressobj(wbits=31)))
    if data.startswith(b"\xfd7zXZ\x00"):
        return _from_tar(_unpacked(data, lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)))
    if data[257:262] == b"ustar":
        return _from_tar(data)
    raise InputError(f"this is no archive; send {FORMATS}" if data else "the file is empty")


def _checked(members: Iterator[tuple[str, bytes]]) -> dict[str, bytes]:
    """The members as a mapping; names, number and total size are checked one by one, before the next is unpacked."""
    files: dict[str, bytes] = {}
    taken: dict[str, str] = {}  # what a file system that ignores case would see: files, and the folders they are in
    total = 0
    for name, content in members:
        _check_name(name)
        key = _folded(name)
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
    if len(name) > MAX_NAME or len(parts) > MAX_DEPTH:
        raise InputError(
            f"the name {_shown(name)} is too long: at most {MAX_NAME} characters and {MAX_DEPTH - 1} folders"
        )
    if not name.isprintable():
        raise InputError(f"the name {_shown(name)} has characters that cannot be shown")
    if "\\" in name or ":" in name or any(part.strip(". ") == "" or part.endswith((".", " ")) for part in parts):
        raise InputError(
            f"the name {_shown(name)} is not allowed: names are relative, with '/' between folders, without '..', "
            "':' or '\\', and no part ends with a dot or a space"
        )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _from_directory(folder: Path) -> Iterator[tuple[str, bytes]]:
    waiting, seen = [folder], 0
    while waiting:
        for entry in sorted(os.scandir(waiting.pop()), key=lambda item: item.name):
            name = Path(entry.path).relative_to(folder).as_posix()
            _check_name(name)
            seen += 1
            if seen > 2 * MAX_FILES:
                raise TooLargeError(f"the directory has more than {MAX_FILES} files")
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
        raise InputError(f"{_shown(inside or str(path))} is no regular file; send {FORMATS}")
    return os.fdopen(descriptor, "rb")


def _from_zip(data: bytes) -> Iterator[tuple[str, bytes]]:
    # The directory of a zip is read as a whole, so its size is looked at first. That needs its end to be the end.
    tail = data[-_ZIP_END.size :]
    if len(tail) < _ZIP_END.size or tail[:4] != b"PK\x05\x06":
        raise InputError("the zip archive is cut off, or has a comment, or bytes after its end")
    _, disk, first_disk, _, entries, size, offset, comment = _ZIP_END.unpack(tail)
    is_64_bit = data[-_ZIP_END.size - 20 :].startswith(b"PK\x06\x07")  # zipfile would read another directory then
    if disk or first_disk or comment or is_64_bit or offset + size != len(data) - _ZIP_END.size:
        raise InputError("the zip archive has several parts, or bytes before or after it, or is of the 64-bit kind")
    if size > _MAX_DIRECTORY or entries > 2 * MAX_FILES:
        raise TooLargeError(f"the archive has more than {MAX_FILES} files")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            budget = _Budget(len(data))
            for entry in archive.infolist():
                if entry.filename.endswith("/"):
                    _check_name(entry.filename.rstrip("/"))
                    continue
                _check_zip_entry(entry)
                content = bytearray()
                with archive.open(entry) as file:
                    while chunk := file.read(_CHUNK):
                        budget.take(len(chunk))
                        content += chunk
                yield entry.filename, bytes(content)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, struct.error, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the zip archive is broken: {one_line(error)}") from None


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


class _Budget:
    """How much may still be unpacked; counted chunk by chunk, since what an archive says of itself may be a lie."""

    def __init__(self, packed: int, maximum: int = MAX_BYTES) -> None:
        self._left, self._maximum = min(maximum, FREE_BYTES + MAX_RATIO * packed), maximum

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _too_much()


def _unpacked(data: bytes, decompressor: zlib._Decompress | lzma.LZMADecompressor) -> bytes:
    """A whole compressed stream; one stream alone, with nothing after it."""
    budget = _Budget(len(data), MAX_BYTES + 4 * 512 * MAX_FILES)
    unpacked = bytearray()
    waiting = data
    try:
        while not decompressor.eof:
            chunk = decompressor.decompress(waiting, _CHUNK)
            if isinstance(decompressor, lzma.LZMADecompressor):  # it keeps what it has not used
                waiting = b""
                ended = not chunk and decompressor.needs_input
            else:
                waiting = decompressor.unconsumed_tail
                ended = not chunk and not waiting
            if ended and not decompressor.eof:
                raise InputError("the archive is cut off")
            budget.take(len(chunk))
            unpacked += chunk
    except (zlib.error, lzma.LZMAError) as error:
        raise InputError(f"the archive is broken: {one_line(error)}") from None
    if decompressor.unused_data:
        raise InputError("the archive has bytes after its end")
    return bytes(unpacked)


def _from_tar(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The files of a tar archive.

    Only its headers are read by `tarfile`, block by block: the whole reader believes sizes that extended headers
    claim, and older ones search those headers in quadratic time (CVE-2024-6232).
    """
    position, name, entries = 0, "", 0
    while (block := data[position : position + 512]).strip(b"\0"):
        if len(block) < 512:
            raise InputError("the tar archive is cut off")
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError) as error:
            raise InputError(f"the tar archive is broken: {one_line(error)}") from None
        start, end = position + 512, position + 512 + header.size
        if header.size < 0 or end > len(data):
            raise InputError("the tar archive is cut off")
        position = -(-end // 512) * 512
        entries += 1
        if entries > 4 * MAX_FILES:
            raise TooLargeError(f"the archive has more than {MAX_FILES} files")
        if header.type in _TAR_NOTES:
            name = _noted_name(header.type, data[start:end]) or name
            continue
        if header.type == b"g":  # notes on the archive itself, such as the commit it was made of
            continue
        name, entry = "", name or header.name
        if header.isdir():
            if entry.strip("/") != ".":  # how `tar c .` names the top
                _check_name(entry.rstrip("/").removeprefix("./"))
        elif header.type in (tarfile.REGTYPE, tarfile.AREGTYPE):
            yield entry.removeprefix("./"), data[start:end]
        else:
            raise InputError(f"{_shown(entry)} is a link or a device; only files and folders are allowed")
    if data[position:].strip(b"\0"):
        raise InputError("the tar archive has bytes after its end")
    if len(data) < position + 512:
        raise InputError("the tar archive is cut off")


def _noted_name(kind: bytes, note: bytes) -> str:
    """The name in an extended header of the next file: GNU's long name, or "path" of the POSIX kind."""
    if len(note) > 8 * MAX_NAME + 4096:
        raise InputError("the tar archive has an extended header that is too long")
    try:
        if kind == b"L":
            return note.rstrip(b"\0").decode("utf-8")
        name = ""
        while note:
            digits, _, _ = note.partition(b" ")
            if not digits.isdigit() or len(digits) > 5 or not len(digits) + 2 < int(digits) <= len(note):
                raise InputError("the tar archive is broken: an extended header is not as POSIX says")
            key, _, value = note[len(digits) + 1 : int(digits) - 1].partition(b"=")
            if key in (b"size", b"linkpath") or key.startswith(b"GNU.sparse"):
                raise InputError("the tar archive has a link, or a file with holes or of an unusual size")
            name = value.decode("utf-8") if key == b"path" else name
            note = note[int(digits) :]
        return name
    except UnicodeDecodeError:
        raise InputError("the tar archive has a name that is not UTF-8") from None


def _too_much() -> TooLargeError:
    return TooLargeError(
        f"the archive unpacks to more than {MAX_BYTES // 2**20} MiB, or to more than {MAX_RATIO} times its own size"
    )


def _shown(name: str) -> str:
    return repr(one_line(name))
