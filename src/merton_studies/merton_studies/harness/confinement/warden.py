"""The first process inside a sandbox: lays out the files, starts the program under its limits, hands back its outputs.

Only its text comes in, so it imports the standard library alone. It holds no right that the program has not: when it
ends, or is killed from outside, the kernel kills every process of its namespace.
"""

from __future__ import annotations

import binascii
import ctypes
import fcntl
import json
import os
import resource
import signal
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes as long as the rest
    from typing import Any

ROOT = "/sandbox"
REPORT = 5
"""The descriptor of the report. The program has 3, on which it asks, and 4, on which replies come."""

GO = 8
"""A byte comes here when the guard can end this process, and an end when the guard itself has ended."""
BEGUN = b"+"
"""First byte of the report: the sandbox stands."""


def lay_out(files: dict[str, str]) -> None:
    """Write the files, given in base64, below the folder of the program."""
    for folder in ("code", "out", "tmp"):
        os.mkdir(f"{ROOT}/{folder}")
    for name, content in files.items():
        path = f"{ROOT}/code/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(binascii.a2b_base64(content))


def end_with_guard() -> None:
    """End this process with the guard: its end of the pipe then closes, and the kernel says so by SIGIO."""
    signal.signal(signal.SIGIO, lambda *_: os._exit(1))
    fcntl.fcntl(GO, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(GO, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    try:
        os.read(GO, 1)
        os._exit(1)  # it had ended before
    except BlockingIOError:
        pass


def start(job: dict[str, Any]) -> int:
    """The process id of the program, which has begun."""
    child = os.fork()
    if child:
        return child
    try:
        os.closerange(REPORT, 4096)
        nothing = os.open("/dev/null", os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        for number in (3, 4):
            if job["serves"]:
                os.set_inheritable(number, True)
        os.chdir(f"{ROOT}/out")
        os.setpgid(0, 0)
        for name, soft, hard in job["limits"]:
            kind = getattr(resource, name)
            own = resource.getrlimit(kind)[1]  # nothing may go above it
            most = hard if own == resource.RLIM_INFINITY else min(hard, own)
            resource.setrlimit(kind, (min(soft, most), most))
        os.execve(job["python"], [job["python"], "-E", "-s", "-S", "-B", f"{ROOT}/code/{job['main']}"], job["environ"])
    except BaseException as error:
        os.write(2, f"the program could not be started: {error}\n".encode())
    os._exit(127)


def watch(child: int) -> tuple[int, int]:
    """The wait status of the program, and how many processes it left running; none of them runs any more."""
    status = None
    while status is None:
        ended, code = os.wait()
        status = code if ended == child else None
    left = 0
    while True:
        try:  # noqa: SIM105 - nothing more is imported
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:  # it is alone
            pass
        try:
            _, code = os.wait()
        except ChildProcessError:
            return status, left
        left += os.WIFSIGNALED(code) and os.WTERMSIG(code) == signal.SIGKILL


def regular_files(folder: str) -> list[tuple[str, int]]:
    """Paths and sizes of the regular files below a folder; links are not followed."""
    found, folders = [], [""]
    while folders:
        below = folders.pop()
        try:
            entries = sorted(os.scandir(os.path.join(folder, below)), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            name = os.path.join(below, entry.name)
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif entry.is_file(follow_symlinks=False):
                found.append((name, entry.stat(follow_symlinks=False).st_size))
    return sorted(found)


def report(status: int, left: int, most_bytes: int, most_files: int) -> None:
    """Write a line of JSON, then the contents of the output files one behind the other."""
    files = regular_files(f"{ROOT}/out")
    total = sum(size for _, size in files)
    fits = total <= most_bytes and len(files) <= most_files
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    head = {
        "status": status,
        "left": left,
        "cpu_s": used.ru_utime + used.ru_stime,
        "total": [len(files), total],
        "outputs": files if fits else [],
    }
    with open(REPORT, "wb") as out:
        out.write(json.dumps(head).encode() + b"\n")
        for name, size in files if fits else []:
            number = os.open(f"{ROOT}/out/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(number, "rb") as file:
                content = file.read(size) if stat.S_ISREG(os.fstat(number).st_mode) else b""
            out.write(content.ljust(size, b"\0"))


def main() -> None:
    """Read the job from standard input; end with the program."""
    if not os.read(GO, 1):  # the guard is gone
        os._exit(0)
    # the program may not look into this process, though both have one user
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    with open(0, "rb", closefd=False) as given:
        given.seek(0)
        job = json.load(given)
    os.closerange(REPORT + 1, GO)
    os.closerange(GO + 1, 4096)
    end_with_guard()
    os.set_inheritable(REPORT, False)
    os.write(REPORT, BEGUN)
    lay_out(job["files"])
    child = start(job)
    for number in (1, 3, 4):
        try:  # noqa: SIM105
            os.close(number)
        except OSError:  # it asks nothing
            pass
    status, left = watch(child)
    report(status, left, job["most_bytes"], job["most_files"])
    os._exit(0)


if __name__ == "__main__":
    main()
