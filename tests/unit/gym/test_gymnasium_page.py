"""The programs of docs/use/gymnasium.md run as they stand and print what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sources import ROOT

PAGE = ROOT / "docs/use/gymnasium.md"


def test_the_programs_of_the_page_print_what_it_says(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium", minversion="1.1", reason="gymnasium 1.1 or later is not installed (the extra gym)")
    pairs = re.findall(r"```python\n# (\w+\.py)\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert [name for name, _, _ in pairs] == ["distorted_env.py", "recorded_env.py"]
    for name, content, _ in pairs:
        (tmp_path / name).write_text(content, encoding="utf-8")
    for name, _, expected in pairs:
        done = subprocess.run([sys.executable, name], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(expected)
    assert (tmp_path / "runs/room/results.sqlite").exists()
