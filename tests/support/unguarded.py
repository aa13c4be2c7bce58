"""A stand-in for the sandbox: the same pipes and files, without the walls. For code that the tests themselves wrote."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ASKING = """
import json
requests, replies = open(3, "wb", buffering=0), open(4, "rb")
def ask(value):
    requests.write(json.dumps(value).encode() + b"\\n")
    return json.loads(replies.readline())
"""


@dataclass(frozen=True)
class Ended:
    exit_code: int
    stderr: str
    seconds: float
    reason: str = ""


@dataclass
class Unguarded:
    """Keeps every file that a program was given, to be read by tests."""

    given: list[Mapping[str, bytes | str]] = field(default_factory=list)
    runs: int = 0

    def run(
        self,
        files: Mapping[str, bytes | str],
        main: str,
        inputs: Mapping[str, Path] | None = None,
        serve: Callable[[bytes], bytes] | None = None,
    ) -> Ended:
        assert serve is not None
        self.given.append(files)
        self.runs += 1
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
            for name, content in {**files, "asking.py": ASKING}.items():
                (Path(folder) / name).write_bytes(content.encode() if isinstance(content, str) else content)
            asks, asked = os.pipe()
            replied, replies = os.pipe()
            shell = f'exec "$0" -S -B "$1" 3>&{asked} 4<&{replied}'
            process = subprocess.Popen(
                ["/bin/bash", "-c", shell, sys.executable, str(Path(folder) / main)],
                pass_fds=(asked, replied),
                stdout=subprocess.DEVNULL,
                stderr=said,
                cwd=folder,
            )
            os.close(asked)
            os.close(replied)
            with open(asks, "rb") as lines, open(replies, "wb", buffering=0) as answers:
                for line in lines:
                    answers.write(serve(line) + b"\n")
            code = process.wait()
            said.seek(0)
            return Ended(code, said.read().decode(), time.monotonic() - began_s)
