"""Runs one command of the set-up and shows in one line what it does, how far it is and how long it may take.

    python3 tools/progress.py --title "[2/5] ROS 2 Jazzy" --log build/setup.log --about-mb 60 -- pip install ...

Understands pip (with `--progress-bar raw`), the makefiles of cmake, compileall, and lines "2/8 what" of anything else.
On a terminal the line is redrawn; elsewhere, as in the log of a CI, a new one is printed every few seconds. The whole
output goes to the log file, the exit code is the command's. Uses the standard library alone: it runs before anything is
installed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

REDRAWN_S = 0.5
"""Time between two drawings of the line on a terminal [s]."""
REPEATED_S = 4.0
"""Time between two lines where there is no terminal [s]."""
MEGA = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}

_FILE = re.compile(r"(?:Downloading|Using cached) (\S+) \(([\d.]+) (bytes|kB|MB|GB)\)")
_LOCAL = re.compile(r"Processing (/\S+)")
_RAW = re.compile(r"Progress (\d+) of (\d+)$")
_PERCENT = re.compile(r"\[ *(\d+)%\]")
_OF = re.compile(r"(\d+)/(\d+) (.+)$")


@dataclass
class Reader:
    """Progress of a command, read from the lines of its output.

    Args:
        about_mb: size of all that pip gets [MB]; 0 if that is not known.
        about_files: files that compileall goes through; 0 if that is not known.
        packages: the folder into which pip installs, or None: then its installed packages are not counted.
        began_s: when the command was started, by `time.time` [s].
    """

    about_mb: float = 0.0
    about_files: int = 0
    packages: Path | None = None
    began_s: float = field(default_factory=time.time)
    _mb: float = 0.0
    _file_mb: float = 0.0
    _part: float = 1.0
    _got: int = 0
    _to_install: set[str] = field(default_factory=set)
    _done: float | None = None
    _what: str = ""
    _compiled: int = 0

    def feed(self, line: str) -> None:
        """Take in one line of the output."""
        line = line.strip()
        if found := _RAW.match(line):
            self._part = int(found[1]) / max(1, int(found[2]))
        elif found := _FILE.match(line):
            if not found[1].endswith(".metadata"):
                self._next(float(found[2]) * MEGA[found[3]], 0.0 if line.startswith("Downloading") else 1.0)
        elif found := _LOCAL.match(line):
            there = Path(found[1]).is_file()
            self._next(Path(found[1]).stat().st_size / 1e6 if there else 0.0, 1.0)
        elif line.startswith("Installing collected packages: "):
            self._part = 1.0
            self._to_install = {_project(name) for name in line.split(": ", 1)[1].split(", ")}
        elif line.startswith("Compiling '"):
            self._compiled += 1
            self._what = f"{self._compiled} files compiled"
            self._done = min(0.99, self._compiled / self.about_files) if self.about_files else None
        elif found := _PERCENT.match(line):
            self._done, self._what = int(found[1]) / 100, f"{found[1]} % compiled"
        elif found := _OF.match(line):
            self._done, self._what = (int(found[1]) - 1) / int(found[2]), f"{found[1]} of {found[2]}: {found[3]}"

    def _next(self, size_mb: float, part: float) -> None:
        """Another file comes: the one before it is here in whole."""
        self._mb += self._file_mb
        self._got += 1
        self._file_mb, self._part = size_mb, part

    def state(self, now_s: float | None = None) -> str:
        """State of the command: the amount done, of how much, and the time left; empty before its first line."""
        elapsed_s = (time.time() if now_s is None else now_s) - self.began_s
        if self._to_install:
            count = len(self._to_install & self._installed())
            mb = self._mb + self._file_mb
            return f"{f'{mb:.0f} MB, ' if mb >= 1 else ''}{count} of {len(self._to_install)} packages installed"
        if self._got:
            here_mb = self._mb + self._file_mb * self._part
            left = max(0.0, self.about_mb - here_mb)
            # the size is that of one Python's packages, others differ by a few per cent
            of = f" of about {self.about_mb:.0f}" if left else ""
            return f"{here_mb:.0f}{of} MB, {self._got} packages{_left(elapsed_s, here_mb, left)}"
        done = self._done or 0.0
        return self._what + (_left(elapsed_s, done, 1 - done) if done >= 0.05 else "")

    def _installed(self) -> set[str]:
        """Names of the packages that were installed since the command began."""
        if self.packages is None or not self.packages.is_dir():
            return set()
        return {
            _project(entry.name.split("-")[0])
            for entry in os.scandir(self.packages)
            if entry.name.endswith(".dist-info") and entry.stat().st_mtime >= self.began_s - 1
        }


def _project(name: str) -> str:
    """A package's name in the spelling that pip compares."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _left(elapsed_s: float, done: float, left: float) -> str:
    """The time left if it goes on as so far; nothing while there is too little to tell from."""
    if elapsed_s < 2 or done <= 0 or left <= 0:
        return ""
    return f", about {duration(elapsed_s * left / done)} left"


def duration(seconds: float) -> str:
    """A time as people read it, such as "45 s" or "2 min 5 s"."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


class Line:
    """The line that is shown: redrawn on a terminal, repeated every few seconds elsewhere, or kept in a file.

    Args:
        title: what the step is.
        screen: where the line is shown.
        status: a file that gets the state instead: another process shows it.
        beside: the file in which such another process keeps its state.
    """

    def __init__(self, title: str, screen: TextIO, status: Path | None, beside: Path | None) -> None:
        self.title, self._screen, self._status, self._beside = title, screen, status, beside
        self._live = screen.isatty() and os.environ.get("TERM") != "dumb"
        self._shown_s = -1e9

    def show(self, state: str, elapsed_s: float) -> None:
        """Show the state, unless the last one was shown just now."""
        if elapsed_s - self._shown_s < (REDRAWN_S if self._live else REPEATED_S):
            return
        self._shown_s = elapsed_s
        if self._status is not None:
            self._status.write_text(f"{self.title}: {state or duration(elapsed_s)}", encoding="utf-8")
            return
        text = f"{self.title}: {state + ' (' if state else ''}{duration(elapsed_s)}{')' if state else ''}"
        if self._beside is not None and self._beside.is_file():
            text += f"; {self._beside.read_text(encoding='utf-8')}"
        if self._live:
            text = text[: shutil.get_terminal_size().columns - 1]
            self._screen.write(f"\r\x1b[K{text}")
        else:
            self._screen.write(text + "\n")
        self._screen.flush()

    def end(self, elapsed_s: float, failed: bool) -> None:
        """Leave the title and how long it took, or that it failed."""
        if self._status is not None:
            self._status.unlink(missing_ok=True)
        clear = "\r\x1b[K" if self._live else ""
        self._screen.write(f"{clear}{self.title} ... {'failed' if failed else duration(elapsed_s)}\n")
        self._screen.flush()


def run(command: list[str], reader: Reader, line: Line, log: Path) -> int:
    """Run the command to its end; its exit code. Its output goes to `log`, without pip's steps within one file."""
    began_s = time.monotonic()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with log.open("w", encoding="utf-8") as output:
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
        )
        # Ctrl-C reaches the command too; what ends this program must end it as well
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())

        def read() -> None:
            assert child.stdout is not None
            for text in child.stdout:
                reader.feed(text)
                if not _RAW.match(text.strip()):
                    output.write(text)

        reading = threading.Thread(target=read)
        reading.start()
        try:
            while reading.is_alive():
                line.show(reader.state(), time.monotonic() - began_s)
                reading.join(REDRAWN_S / 2)
            code = child.wait()
        except KeyboardInterrupt:
            child.terminate()
            child.wait()
            code = 128 + signal.SIGINT
    line.end(time.monotonic() - began_s, failed=code != 0)
    return code if code >= 0 else 128 - code


def main() -> None:
    """Read the options and run the command."""
    options = argparse.ArgumentParser(description="Runs a command of the set-up and shows its progress.")
    options.add_argument("--title", required=True)
    options.add_argument("--log", type=Path, required=True, help="gets the command's whole output")
    options.add_argument("--about-mb", type=float, default=0.0, help="what pip gets in all")
    options.add_argument("--about-files", type=int, default=0, help="how many files compileall goes through")
    options.add_argument("--packages", type=Path, help="the folder into which pip installs")
    options.add_argument("--status", type=Path, help="keep the state in this file: another one shows it")
    options.add_argument("--beside", type=Path, help="show the state in this file too")
    options.add_argument("command", nargs="+")
    chosen = options.parse_args()
    reader = Reader(chosen.about_mb, chosen.about_files, chosen.packages)
    line = Line(chosen.title, sys.stderr, chosen.status, chosen.beside)
    sys.exit(run(chosen.command, reader, line, chosen.log))


if __name__ == "__main__":
    main()
