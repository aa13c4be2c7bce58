"""Files and folders: Merton's resources, files written whole or not at all, folders locked for one process.

Robot description, launch files and configuration are under `share/<package>` of a prefix where colcon installed them;
in a checkout they are at its top, in a package that pip installed under `share` within it.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO

from merton.errors import FileError, InfrastructureError, InputError, MissingDependencyError

UNFINISHED = ".unfinished"
"""Ending of the drafts of `written_whole`, `made_once` and `swapped_folder`; only a kill leaves one behind."""

_DRAFTS = itertools.count()
_FOLDERS = {"merton_description": ("urdf",), "merton_bringup": ("config", "launch")}
_CHECKOUT = Path(__file__).resolve().parents[3]
_SHARE = Path(__file__).resolve().parent / "share"  # a wheel's: see pyproject.toml


def resource(package: str, relative: str) -> Path:
    """The absolute path of a file or folder that `package` installs, such as ("merton_bringup", "config/cell.yaml").

    The prefixes in AMENT_PREFIX_PATH come first, in their order, then the checkout or the package that this file is in.

    Raises:
        InputError: not a package of Merton's that has such files.
        MissingDependencyError: the file is in none of those places.
    """
    if package not in _FOLDERS:
        raise InputError(f"package {package!r} has no resources; choose one of: {', '.join(_FOLDERS)}")
    if Path(relative).parts[:1] not in [(folder,) for folder in _FOLDERS[package]]:
        raise InputError(f"{package} installs only {' and '.join(_FOLDERS[package])}, not {relative!r}")
    prefixes = [Path(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    installed = [prefix / "share" / package / relative for prefix in prefixes]
    for candidate in [*installed, _CHECKOUT / relative, _SHARE / relative]:
        if candidate.exists():
            return candidate.resolve()
    raise MissingDependencyError(
        f"{package} is not installed ({relative} was not found): source the workspace's install/setup.bash, "
        "or run Merton from its checkout"
    )


@contextmanager
def written_whole(path: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` when the block ends: the old content or all of the new.

    The draft lies beside `path`. If the block raises, the draft is removed and `path` stays as it was.

    Args:
        path: the file to write; its folder must exist.
        durable: the content is on the disk before it gets its name, so a loss of power cannot leave an empty file.
            False for many files whose hashes are checked before they are used.

    Raises:
        OSError: the file cannot be written.
    """
    draft = _draft_of(path)
    try:
        with draft.open("wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def _draft_of(path: Path) -> Path:
    """A name beside `path`; not its own with an ending, which may be as long as a name can be."""
    return path.with_name(f".{os.getpid()}.{next(_DRAFTS)}{UNFINISHED}")


def made_once(path: Path, make: Callable[[Path], object]) -> None:
    """Put a file at a path, whole or not at all, unless there is one: of several writers the first has made it.

    Args:
        path: where the file is to be; its folder must exist.
        make: makes it at the path that it is given, beside `path`, and leaves nothing else there.

    Raises:
        OSError: the file cannot be put there; and what `make` raises.
    """
    draft = _draft_of(path)
    try:
        draft.unlink(missing_ok=True)  # of a killed process that had this number
        make(draft)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def swapped_folder(folder: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `folder` when the block ends: the old content or all of the new.

    The new one lies beside it, under a hidden name that ends in `UNFINISHED`. The old one is moved to such a name, and
    removed when the new one stands in its place: a process that is killed between the two loses neither. If the block
    raises, `folder` stays as it was.

    Args:
        folder: need not exist; the folders that it lies in are made.

    Raises:
        OSError: the new folder cannot be made, or put there.
    """
    token = token_hex(8)  # a process of another container may have this one's id
    draft, old = (folder.absolute().with_name(f".{token}.{which}{UNFINISHED}") for which in ("new", "old"))
    try:
        draft.mkdir(parents=True)
        yield draft
        had_one = folder.exists()
        if had_one:
            os.rename(folder, old)
        try:
            os.rename(draft, folder)
        except OSError:
            if had_one:
                os.rename(old, folder)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def refuse_overwriting(out: Path, inputs: Iterable[Path]) -> None:
    """Raises InputError if a file that is to be written is one of those that are read, by another name, too."""
    for file in inputs:
        if out.exists() and file.exists() and out.samefile(file):
            raise InputError(f"{out} is read and would be overwritten: choose another name for the result")


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, durably, as `written_whole`; its folder must exist.

    Raises:
        InfrastructureError: it cannot be written; the sentence names the file and the reason.
    """
    try:
        with written_whole(path) as file:
            file.write(content)
    except OSError as error:
        raise InfrastructureError(f"cannot write {path}: {error.strerror or error}") from None


def whole_lines(file: Path) -> list[bytes]:
    """The lines of a file that is appended to, none if it is missing; a last one that a kill left torn is cut off it.

    Raises:
        InfrastructureError: the file cannot be read or cut.
    """
    try:
        content = file.read_bytes() if file.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            os.truncate(file, len(whole))
    except OSError as error:
        raise InfrastructureError(f"cannot read {file}: {error.strerror or error}") from None
    return whole.splitlines()


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits; it may be larger than memory."""
    found = hashlib.sha256()
    with path.open("rb") as content:
        while block := content.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def claim(file: Path, settings: Mapping[str, Any], work: str) -> None:
    """Keep the settings of the work that is done in a folder, or refuse a folder where it was begun with others.

    Args:
        file: in the folder of the work; may hold more than the settings.
        settings: JSON values.
        work: for the message, such as "a dataset".

    Raises:
        InputError: the folder's work has other settings.
        InfrastructureError: the file cannot be written.
    """
    content = json.dumps(settings, indent=1, sort_keys=True)
    if not file.exists():
        write_file(file, f"{content}\n".encode())
        return
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        found = None
    plain = json.loads(content)
    different = [name for name in settings if not isinstance(found, dict) or found.get(name) != plain[name]]
    if different:
        raise InputError(
            f"{str(file.parent)!r} holds {work} with other {' and '.join(different)}; choose another folder"
        )


def claim_folder(file: Path, settings: Mapping[str, Any], work: str) -> None:
    """As `claim`, in a folder for this work alone: one that holds something else is refused, too."""
    if not file.is_file() and any(file.parent.iterdir()):
        raise InputError(f"{str(file.parent)!r} is neither empty nor {work}; choose another folder")
    claim(file, settings, work)


def refuse_filled(folder: Path) -> None:
    """Raises InputError if a folder that is to be filled anew is a file, or holds something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{str(folder)!r} is not an empty folder; choose another one")


def refuse_folder(path: Path, ending: str = "") -> None:
    """Raises FileError if a file that is to be read is a folder; the sentence names a file in it that may be meant."""
    if path.is_dir():
        there = sorted(one.name for one in path.glob(f"*{ending}") if one.is_file())
        meant = f"name the file in it, such as {path / there[0]}" if there else "name a file"
        raise FileError(f"{path} is a folder: {meant}")


def refuse_file(folder: Path) -> None:
    """Raises InputError if a folder that is to be written is a file, or lies in one."""
    if any(part.exists() and not part.is_dir() for part in (folder, *folder.parents)):
        raise InputError(f"{str(folder)!r} is a file or lies in one: choose a folder")


def make_folder(folder: Path) -> None:
    """Make a folder and those that it lies in, if need be.

    Raises:
        InputError: it is a file, or lies in one.
        InfrastructureError: it cannot be made.
    """
    refuse_file(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from None


def identity(file: Path) -> tuple[int, int] | None:
    """Device and inode of a file: another one of the same name has others. None if it is not there."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def locked_file(file: Path, until: ExitStack) -> bool:
    """Make an empty file and lock it; both end with `until`, and the lock with the process.

    A file system without locks keeps no other process out.

    Returns:
        False if another has it.

    Raises:
        InfrastructureError: the file cannot be made.
    """
    while True:
        try:
            opened = os.open(file, os.O_RDONLY | os.O_CREAT, 0o666)
        except OSError as error:
            raise InfrastructureError(f"cannot make {file}: {error.strerror}") from None
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(opened)
            return False
        except OSError:  # locks nothing
            pass
        found = os.fstat(opened)
        if identity(file) == (found.st_dev, found.st_ino):
            break
        os.close(opened)  # its owner removed it between the two calls

    def end() -> None:
        with suppress(OSError):
            file.unlink()
        os.close(opened)

    until.callback(end)
    return True


@contextmanager
def locked_folder(folder: Path, work: str) -> Iterator[None]:
    """Make the folder if need be and lock it for this kind of work until the block, or the process, ends.

    A file system without locks on folders, such as some network ones, does not keep other processes out.

    Args:
        folder: where the work is done.
        work: the name of the work for the message to a second process, such as "merton run".

    Raises:
        InputError: another process is at work there, or it is a file.
        InfrastructureError: the folder cannot be made.
    """
    make_folder(folder)
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InfrastructureError(f"cannot write into {str(folder)!r}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another {work} is at work in {str(folder)!r}; wait for it, or choose another folder"
            ) from None
        except OSError:  # locks no folders
            pass
        yield
    finally:
        os.close(opened)
