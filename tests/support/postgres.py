"""A PostgreSQL server for the tests: own data, a socket in its own folder and no port, gone when the tests are."""

from __future__ import annotations

import atexit
import ctypes
import functools
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patience import Limit, stretched

START_S = 60.0
_numbers = itertools.count()
_PR_SET_PDEATHSIG = 1


def new_database() -> str:
    """URL of an empty place on the tests' server; skips the test, with the reason, where none can be started.

    A schema of one database: a database of its own would be 300 files, which a crash has to bring to the disk.
    """
    psycopg = pytest.importorskip("psycopg", reason="PostgreSQL's client is not installed (the extra postgres)")
    folder = _server()
    if isinstance(folder, str):
        pytest.skip(folder)
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(f"host={folder} user=merton dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"postgresql://merton@/postgres?host={folder}&connect_timeout=60&options=-csearch_path%3D{name}"


@functools.cache
def _server() -> Path | str:
    """The folder of the running server's socket, or why there is none. One server for all tests of this process."""
    programs = _programs()
    if programs is None:
        return "there is no PostgreSQL server on this machine: apt install postgresql"
    folder = Path(tempfile.mkdtemp(prefix="merton_postgres_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rights: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to serve as root
        user = _other_user()
        os.chown(folder, user.pw_uid, user.pw_gid)
        rights = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    data = folder / "data"
    initialise = [programs / "initdb", "-D", data, "-U", "merton", "-A", "trust", "-E", "UTF8", "--no-sync"]
    # Preferably in a language that sorts unlike code points do, so that the tests of order can fail.
    for language in (["--locale=C", "--locale-provider=icu", "--icu-locale=en-US"], ["--locale=C"]):
        done = subprocess.run([*initialise, *language], cwd=folder, capture_output=True, text=True, **rights)
        if done.returncode == 0:
            break
    else:
        return f"initdb failed: {done.stderr.strip()}"
    log = folder / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "max_connections=100"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=_end_with_parent(), **rights,
        )  # fmt: skip
    atexit.register(_stop, server, os.getpid())
    return folder if _answers(server, folder) else f"PostgreSQL did not start: {log.read_text()[-500:]}"


def _programs() -> Path | None:
    """The folder of the server's programs, the newest of them."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    found = shutil.which("initdb")
    folders = [*([Path(found).resolve().parent] if found else []), *reversed(installed)]
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


def _other_user() -> pwd.struct_passwd:
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def _end_with_parent() -> Callable[[], None]:
    libc = ctypes.CDLL(None)  # loaded here: a child between fork and exec should not
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _answers(server: subprocess.Popen[bytes], folder: Path) -> bool:
    import psycopg

    limit = Limit(START_S)
    while server.poll() is None and not limit.is_over():
        try:
            psycopg.connect(f"host={folder} user=merton dbname=postgres").close()
            return True
        except psycopg.OperationalError:
            time.sleep(0.02)
    return False


def _stop(server: subprocess.Popen[bytes], starter: int) -> None:
    if os.getpid() == starter:  # not in a child that a test forked
        server.send_signal(signal.SIGQUIT)  # at once: its unwritten data is not needed
        server.wait(stretched(30))
