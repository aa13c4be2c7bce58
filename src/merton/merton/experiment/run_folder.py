"""The folder of a new run, which appears whole or not at all."""

from __future__ import annotations

import errno
import json
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.files import UNFINISHED

_NAME = re.compile(r"^[a-z0-9][a-z0-9_.-]{0,127}$")


def name_of_new_run(name: str | None, of: str) -> str:
    """The name of a new run: the given one, or `of` (its experiment or design) with the time.

    Raises:
        InputError: it is not a plain name.
    """
    name = name or f"{of}-{datetime.now():%Y%m%d-%H%M%S}"
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} cannot name a run: use lower-case letters, digits, '.', '_' and '-'")
    return name


@contextmanager
def new_run(runs: Path, name: str) -> Iterator[Path]:
    """A draft for the files of a run, which is `runs`/`name` from the end of the block on; an error leaves nothing.

    Args:
        runs: made if need be.
        name: of `name_of_new_run`.

    Raises:
        InputError: the name is taken, or the folder cannot be written.
    """
    path = runs / name
    taken = f"the run {path} exists; continue it with --resume, or choose another name"
    # a kill leaves a folder that no list of runs has; its name is random, as processes of containers share ids
    draft = runs / f".{name}.{secrets.token_hex(8)}{UNFINISHED}"
    try:
        runs.mkdir(parents=True, exist_ok=True)
        if path.exists():
            raise InputError(taken)
        draft.mkdir()
        yield draft
        draft.rename(path)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY) and path.is_dir():  # made at the same moment
            raise InputError(taken) from None
        raise InputError(f"cannot create the run {path}: {error.strerror}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def json_bytes(content: Any) -> bytes:
    """A value as the JSON files of a run have it."""
    return f"{json.dumps(content, indent=1, allow_nan=False)}\n".encode()
