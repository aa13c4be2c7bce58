"""Folders that one process at a time may write into."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from merton.errors import InfrastructureError, InputError


@contextmanager
def alone(folder: Path, work: str) -> Iterator[None]:
    """Make the folder if need be and keep others of the same work out of it; ends with this process, however it ends.

    A file system that locks no folders, such as some network ones, keeps nobody out.

    Args:
        folder: where the work is done.
        work: what it is called, for the sentence that the other one gets: "merton run".

    Raises:
        InputError: another process is at work there.
        InfrastructureError: there can be no such folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
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
