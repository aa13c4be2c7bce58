"""SDF in tests: libsdformat's own tool, and the numbers in an element."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def sdformat(option: str, file: Path) -> str:
    """The output of `gz sdf` (of Harmonic) or `ign sdf` (of Debian), which must not complain; skips without them."""
    tool = shutil.which("gz") or shutil.which("ign")
    if tool is None:
        pytest.skip("neither `gz` nor `ign`: apt install ignition-tools libsdformat-dev")
    ran = subprocess.run([tool, "sdf", option, str(file)], capture_output=True, text=True, timeout=60)
    about_the_tool = "libignition-tools-backward.so"  # Debian does not ship its nicer backtraces
    complaints = [line for line in ran.stderr.splitlines() if line and about_the_tool not in line]
    assert (ran.returncode, complaints) == (0, [])
    return ran.stdout


def numbers(text: str | None) -> list[float]:
    """The numbers of a text such as that of <size>; none without a text."""
    return [float(part) for part in (text or "").split()]
