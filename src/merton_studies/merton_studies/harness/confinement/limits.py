"""The limits of a run of a sandbox, and the result of a run that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from merton.errors import InputError

ROOM = "/sandbox"
"""The one folder inside that can be written: code, out and tmp lie in it."""


@dataclass(frozen=True)
class Limits:
    """Limits of one run. Sizes in bytes, times in seconds. All defaults are ours: ample for a batch of 100 cases."""

    cpu_s: float = 60.0
    """Processor time of all processes together."""
    wall_s: float = 120.0
    """Time from start to end, without the time that `serve` takes."""
    memory: int = 1 << 30
    """Address space of each process, and resident memory of all together."""
    processes: int = 32
    """Number of processes and threads."""
    file_size: int = 16 << 20
    """Size of one file."""
    room: int = 64 << 20
    """All files together: code, output and temporary ones."""
    files: int = 4096
    """Number of files and folders in the room."""
    open_files: int = 64
    kept: int = 64 << 10
    """Bytes that are kept of standard output, and of standard error; the rest is read and thrown away."""
    printed: int = 16 << 20
    """A program that prints more to either is ended."""
    request: int = 1 << 20
    """Bytes of one line that the program asks."""
    requests: int = 100_000
    """Number of lines that the program asks."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise InputError(f"the limit {name} of a sandbox is {value}; it must be above 0")


@dataclass(frozen=True)
class Ended:
    """The result of a run that has ended."""

    exit_code: int
    """Exit code of the program; minus the number of the signal that ended it."""
    reason: str
    """Empty when it ended well, else one sentence that names why: which limit, which signal, which error."""
    stdout: str
    """The first `Limits.kept` bytes; what is no UTF-8 is replaced."""
    stderr: str
    seconds: float
    """Time from start to end, with the time that `serve` took."""
    cpu_s: float = 0.0
    """Processor time of all its processes."""
    outputs: Mapping[str, bytes] = field(default_factory=dict)
    """Files that it left in its working folder, by path relative to it. Links and empty folders do not come back."""
