"""Hostile archives are refused with a sentence, quickly, and nothing is written anywhere."""

from __future__ import annotations

import io
import os
import random
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merton.errors import InputError
from merton.leaderboard.submissions import archive
from merton.leaderboard.submissions.archive import MAX_BYTES, MAX_FILES, TooLargeError, pack, read, unpack

FILES = {"manifest.yaml": b"format: 1\n", "scores.csv": b"item,score\na,0.5\n"}
QUICK_S = 5.0


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as target:
        for name, content in files.items():
            target.writestr(name, content)
    return data.getvalue()


def short(value: object) -> str | None:
    """Names for tests that are given bytes: pages of zeros help no reader."""
    return f"{len(value)}_bytes" if isinstance(value, bytes) else None


def zip_special(name: str, kind: int, content: str) -> bytes:
    """A zip with one entry that is not a regular file."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as made:
        entry = zipfile.ZipInfo(name)
        entry.create_system, entry.external_attr = 3, (kind | 0o777) << 16
        made.writestr(entry, content)
    return data.getvalue()


@pytest.fixture(autouse=True)
def nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The working directory, the one above and the temporary folder stay as they were."""
    inside = tmp_path / "above" / "here"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield
    assert sorted(path.name for path in (tmp_path / "above").rglob("*")) == ["here"]


@pytest.mark.parametrize(
    "make",
    [
        zipped,
        lambda files: zipped(files, zipfile.ZIP_STORED),
        pack,
    ],
)
def test_every_way_to_pack_gives_the_same_files(make: Callable[[dict[str, bytes]], bytes]) -> None:
    files = {
        **FILES,
        "long" * 12 + "/" + "long" * 20 + ".txt": b"x" * 700,
        "notes/Zürich.txt": b"",
        "inner.zip": zipped(FILES),
    }
    assert unpack(make(files)).files == files


def test_a_folder_counts_as_the_archive_that_is_packed_of_it(tmp_path: Path) -> None:
    (tmp_path / "mine" / "sub").mkdir(parents=True)
    for name, content in FILES.items():
        (tmp_path / "mine" / "sub" / name).write_bytes(content)
    (tmp_path / "mine.zip").write_bytes(pack({f"sub/{name}": content for name, content in FILES.items()}))
    assert read(tmp_path / "mine") == read(str(tmp_path / "mine.zip"))
    with (tmp_path / "mine.zip").open("rb") as file:
        assert read(file) == read(tmp_path / "mine")


def test_packing_does_not_depend_on_order() -> None:
    assert pack(FILES) == pack(dict(reversed(FILES.items())))


def test_folders_in_a_zip_are_passed_over() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as made:
        made.writestr("sub/", b"")
        made.writestr("sub/a.txt", b"a")
    assert unpack(data.getvalue()).files == {"sub/a.txt": b"a"}


BAD_NAMES = [
    "../evil", "a/../../evil", "/etc/passwd", "a//b", "a/./b", "..\\evil", "C:\\evil", "c:evil", "\\\\host\\share",
    "a/ ", "dot.", "a" * 300, "/".join("abcdefghij"), "evil\u202etxt.exe", "line\nfeed", "bell\x07",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_lead_anywhere_else_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="name") as caught:
        unpack(zipped({**FILES, name: b"evil"}))
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


def test_folders_are_held_to_the_same_rules() -> None:
    with pytest.raises(InputError, match="not allowed"):
        unpack(zipped({"../evil/": b""}))


@pytest.mark.parametrize(
    "files",
    [
        [("a", b"1"), ("a", b"2")],
        [("Scores.csv", b"1"), ("scores.CSV", b"2")],
        [("ﬁle", b"1"), ("file", b"2")],  # a ligature, which some file systems take apart
        [("a", b"1"), ("a/b", b"2")],
        [("a/b", b"1"), ("A", b"2")],
    ],
)
def test_names_that_stand_twice_are_refused(files: list[tuple[str, bytes]]) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as target:
        for name, content in files:
            if name not in target.namelist():
                target.writestr(name, content)
            else:
                with pytest.warns(UserWarning, match="Duplicate"):
                    target.writestr(name, content)
    with pytest.raises(InputError, match="stands twice"):
        unpack(data.getvalue())


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices_are_refused(kind: int) -> None:
    with pytest.raises(InputError, match="link or a device"):
        unpack(zip_special("link", kind, "/etc/passwd"))


def test_links_and_pipes_in_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    for number, make in enumerate((lambda path: path.symlink_to(tmp_path / "secret"), os.mkfifo)):
        folder = tmp_path / f"mine{number}"
        folder.mkdir()
        make(folder / "scores.csv")
        with pytest.raises(InputError, match=r"is a link|not a regular file"):
            read(folder)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InputError, match="not a regular file"):
            read(path)
    with pytest.raises(InputError, match="there is no file"):
        read(tmp_path / "absent.zip")


def nested_quotes() -> bytes:
    """Many entries of one zip that share the same packed megabyte: small, and huge once unpacked."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("0", os.urandom(2**20))
        first = target.infolist()[0]
        for number in range(1, 60):
            entry = zipfile.ZipInfo(str(number))
            for field in ("CRC", "compress_size", "file_size", "header_offset", "compress_type"):
                setattr(entry, field, getattr(first, field))
            target.filelist.append(entry)
            target.NameToInfo[entry.filename] = entry
    return data.getvalue()


@pytest.mark.parametrize(
    "make",
    [
        lambda: zipped({"bomb": bytes(40 * 2**20)}),
        lambda: zipped({str(number): bytes(2**20) for number in range(40)}),
        lambda: zipped({"bomb": bytes(8 * 2**20)}),  # below the total, but a thousandfold
        lambda: bytes(archive.MAX_ARCHIVE_BYTES + 1),
        lambda: zipped({str(number): b"" for number in range(MAX_FILES + 1)}),
        lambda: zipped({f"{number}/": b"" for number in range(20_000)}),
    ],
)
def test_bombs_are_refused_quickly(make: Callable[[], bytes]) -> None:
    data = make()
    started = time.process_time()
    with pytest.raises(TooLargeError):
        read(io.BytesIO(data))
    assert time.process_time() - started < QUICK_S


def test_entries_that_share_their_bytes_are_refused() -> None:
    started = time.process_time()
    with pytest.raises(InputError):
        unpack(nested_quotes())
    assert time.process_time() - started < QUICK_S


def test_a_size_that_is_a_lie_changes_nothing() -> None:
    data = bytearray(zipped({"bomb": bytes(40 * 2**20)}))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.index(signature) + offset
        data[start : start + 4] = (100).to_bytes(4, "little")
    with pytest.raises(InputError):
        unpack(bytes(data))


def with_password(data: bytes) -> bytes:
    changed = bytearray(data)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        changed[changed.index(signature) + offset] |= 1
    return bytes(changed)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"MZ" + bytes(600), "no .zip"),
        (b"format: 1\n", "no .zip"),
        (zipped(FILES) + b"more", "cut off, or has a comment, or bytes after"),
        (b"PK\x03\x04#!/bin/sh\n" + zipped(FILES), "bytes before"),
        (zipped(FILES)[:-30], "cut off"),
        (with_password(zipped(FILES)), "encrypted"),
        (zipped(FILES, zipfile.ZIP_LZMA), "unusual"),
        (zipped(FILES, zipfile.ZIP_BZIP2), "unusual"),
    ],
    ids=short,
)
def test_an_incomplete_or_foreign_archive_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        unpack(data)


def test_a_directory_of_another_zip_cannot_be_smuggled_in() -> None:
    """The comment of the last entry looks like the locator of a 64-bit directory, which zipfile would follow."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as target:
        entry = zipfile.ZipInfo("a")
        entry.comment = b"PK\x06\x07" + bytes(16)
        target.writestr(entry, b"a")
    with pytest.raises(InputError, match="64-bit"):
        unpack(data.getvalue())


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_a_tar_is_refused_with_a_sentence_that_names_the_formats(mode: str) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as target:  # type: ignore[call-overload]
        target.addfile(tarfile.TarInfo("manifest.yaml"))
    with pytest.raises(InputError, match=r"^this is no \.zip; send a \.zip or a folder$"):
        unpack(data.getvalue())


WHOLE = [zipped(FILES), zipped(FILES, zipfile.ZIP_STORED), pack({**FILES, "notes/inner.zip": zipped(FILES)})]


@settings(
    max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(WHOLE), st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_torn_and_changed_archives_give_files_or_a_sentence(data: bytes, seed: int, changes: int) -> None:
    rng = random.Random(seed)
    changed = bytearray(data)
    for _ in range(changes):
        where = rng.randrange(len(changed))
        kind = rng.randrange(4)
        if kind == 0:
            changed[where] = rng.randrange(256)
        elif kind == 1:
            del changed[where : where + rng.randrange(1, 64)]
        elif kind == 2:
            changed[where:where] = rng.randbytes(rng.randrange(1, 16))
        else:
            changed[where : where + 4] = b"\xff\xff\xff\xff"
        changed = changed or bytearray(b"\0")
    refused, files = "", {}
    try:
        files = dict(unpack(bytes(changed)).files)
    except InputError as error:
        refused = str(error)
    assert refused.isprintable()
    assert sum(map(len, files.values())) <= MAX_BYTES
    assert all(name.isprintable() and ".." not in name.split("/") for name in files)
