"""Pastes every command of pages into a fresh folder, in order, as a reader does; prints how each ended and how soon.

    python3 tools/paste.py README.md docs/use/tutorials/*.md
    python3 tools/paste.py --prefix /tmp/checkout/.venv docs/use/tutorials/your_vla.md

A block whose first line is "# NAME.ending" is written to that file as it stands. The lines of blocks `bash` and
`console`, and of blocks without a language that call .venv/bin/merton, are commands of one shell. The lines of a block
`text` must appear, in their order, in what was printed since the last such block. A command that serves is interrupted
after `SERVED_S`. Exit code 1 if a command failed or a text did not appear.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w/]+\.\w+)\n")
MARK = re.compile(r"^::(begin|end) (\d+)(?: (\d+))?$")
SERVES = re.compile(r"\b(?:leaderboard serve|merton monitor)\b(?!.*&\s*$)")
SERVED_S = 20
"""A server runs so long, then it gets Ctrl-C [s]."""
INTERRUPTED = (124, 130)
VERDICT = (0, 1, 3)
"""Exit codes of `merton gate` that are a result."""
NEWEST_RUN = '"$(ls -td runs/*/ | head -1)"'
NOT_HERE = {
    "192.0.2.": "needs a robot",
    "merton monitor": "needs a graph that runs",
    "foxglove": "needs a recording of a robot",
    "recording.mcap": "needs a recording of a robot",
    "/merton/.venv/bin/activate": "the shell has it",
    "make ": "sets up",
}
"""Parts of commands that are not pasted, and why."""


@dataclass
class Pasted:
    """A command: its exit code, and when its first line came and it ended, from its start [s]; None if it did not."""

    command: str
    code: int | None = None
    began_s: float | None = None
    first_s: float | None = None
    end_s: float | None = None
    output: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        if "merton gate " in self.command:
            return self.code not in VERDICT
        return self.code != 0 and not (SERVES.search(self.command) and self.code in INTERRUPTED)


@dataclass
class Page:
    """What a page asks for: the script of a shell, its commands, those left out with the reason, and expected texts.

    An expected text is the number of commands before it, and its lines.
    """

    script: str
    commands: list[Pasted]
    left_out: list[tuple[str, str]]
    expected: list[tuple[int, list[str]]]


def read_page(text: str, kinds: Sequence[str]) -> Page:
    """The commands of a page's blocks of some languages, and its files and texts."""
    lines: list[str] = []
    page = Page("", [], [], [])
    for kind, block in BLOCK.findall(text):
        if file := FILE.match(block):
            lines += [f"mkdir -p {Path(file[1]).parent}", f"printf %s {shlex.quote(block)} > {file[1]}"]
        elif kind == "text":
            page.expected.append((len(page.commands), block.splitlines()))
        elif kind in kinds and (kind or ".venv/bin/merton" in block):
            for line in filter(None, block.splitlines()):
                if reason := next((why for part, why in NOT_HERE.items() if part in line), None):
                    page.left_out.append((line, reason))
                    continue
                at = len(page.commands)
                page.commands.append(Pasted(line))
                command = line.replace("runs/<id>", NEWEST_RUN)
                if SERVES.search(line):
                    command = f"timeout --signal=INT {SERVED_S} {command}"
                lines += [f"echo; echo ::begin {at}", command, f"code=$?; echo; echo ::end {at} $code"]
    page.script = "\n".join(lines)
    return page


def paste(
    path: Path,
    folder: Path,
    prefix: Path,
    kinds: Sequence[str] = ("", "bash", "console"),
    limit_s: float = 1800,
    **variables: str,
) -> Page:
    """Run a page in a folder with the programs of a virtual environment; all that it started is ended with it.

    Args:
        path: the page.
        folder: where its shell begins; also the home.
        prefix: the virtual environment.
        kinds: languages of the blocks that hold commands.
        limit_s: for the whole page [s].
        variables: of the environment.
    """
    text = re.sub(r"\b(8001|8080)\b", str(free_port()), path.read_text(encoding="utf-8"))
    page = read_page(text, kinds)
    if not (folder / ".venv").exists():
        (folder / ".venv").symlink_to(prefix)
        (folder / "requirements").symlink_to(ROOT / "requirements")
    programs = f"{prefix / 'bin'}{os.pathsep}{os.environ['PATH']}"
    own = {**os.environ, "HOME": str(folder), "PATH": programs, "COLUMNS": "120", "PYTHONUNBUFFERED": "1", **variables}
    shell = subprocess.Popen(
        ["bash", "-c", page.script],
        cwd=folder,
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        for now_s, line in lines_of(shell, limit_s):
            note(page.commands, now_s, line)
    finally:
        with suppress(ProcessLookupError):  # nothing is left of it
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    return page


def lines_of(shell: subprocess.Popen[bytes], limit_s: float) -> Iterator[tuple[float, str]]:
    """Each line that is printed, with its time [s], until the shell has ended; a server in the background may go on."""
    assert shell.stdout is not None
    os.set_blocking(shell.stdout.fileno(), False)
    left, end_s = b"", time.monotonic() + limit_s
    while time.monotonic() < end_s:
        ended = shell.poll() is not None
        chunk = shell.stdout.read() or b""
        *whole, left = (left + chunk).split(b"\n")
        for line in whole:
            yield time.monotonic(), line.decode("utf-8", "replace")
        if ended and not chunk:
            return
        time.sleep(0.02)


def note(commands: Sequence[Pasted], now_s: float, line: str) -> None:
    """Take a line into the command that prints it; times are from the command's start."""
    running = next((one for one in commands if one.began_s is not None and one.end_s is None), None)
    if mark := MARK.match(line):
        one = commands[int(mark[2])]
        if mark[1] == "begin":
            one.began_s = now_s
        else:
            one.code, one.end_s = int(mark[3]), now_s - (one.began_s or now_s)
    elif running and running.began_s and line.strip():
        if running.first_s is None:
            running.first_s = now_s - running.began_s
        running.output.append(line)


def faults(page: Page) -> list[str]:
    """A sentence for each command that failed and each expected line that did not appear."""
    found = [
        f"{one.command}: exit code {one.code}: {' / '.join(one.output[-3:])}" for one in page.commands if one.failed
    ]
    before = 0
    for count, lines in page.expected:
        printed = iter([line for one in page.commands[before:count] for line in one.output])
        found += [f"{line!r} was not printed" for line in lines if not any(line in other for other in printed)]
        before = count
    return found


def free_port() -> int:
    """A TCP port of this machine that no process uses."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Paste every command of pages into a fresh folder.")
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--prefix", type=Path, default=ROOT / ".venv", help="the virtual environment of the commands")
    asked = parser.parse_args()
    bad = 0
    for path in asked.pages:
        folder = Path(tempfile.mkdtemp(prefix="merton_paste_"))
        variables = {}
        if "in a copy" in path.read_text(encoding="utf-8"):  # the page changes the checkout
            for name in ("src", "tests", "tools", "config", "launch"):
                shutil.copytree(ROOT / name, folder / name)
            shutil.copy(ROOT / "pyproject.toml", folder)
            (folder / "docs").symlink_to(ROOT / "docs")
            variables["PYTHONPATH"] = str(folder / "src" / "merton")
        print(f"{path}: {folder}\n{'rc':>3} {'first [s]':>9} {'end [s]':>8}", flush=True)
        page = paste(path, folder, asked.prefix.resolve(), **variables)
        for one in page.commands:
            first, end = (f"{number:.1f}" if number is not None else "-" for number in (one.first_s, one.end_s))
            print(f"{one.code!s:>3} {first:>9} {end:>8}  {one.command}")
        for line, reason in page.left_out:
            print(f"  -         -        -  {line} ({reason})")
        wrong = faults(page)
        print("".join(f"FAULT {sentence}\n" for sentence in wrong), end="", flush=True)
        bad += len(wrong)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
