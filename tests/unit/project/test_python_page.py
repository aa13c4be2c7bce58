"""The snippets of docs/use/python.md print what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from merton import __all__ as public

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "use" / "python.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
LONGEST = 10
"""Lines of a snippet, at most."""

BLOCKS = BLOCK.findall(PAGE)
SNIPPETS = [text for kind, text in BLOCKS if kind == "python"]
OUTPUTS = [text for kind, text in BLOCKS if kind == "text"]


@pytest.mark.parametrize(("snippet", "output"), zip(SNIPPETS, OUTPUTS, strict=True), ids=re.findall(r"## (.*)", PAGE))
def test_a_snippet_prints_what_the_page_shows(tmp_path: Path, snippet: str, output: str) -> None:
    assert len(snippet.splitlines()) <= LONGEST
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "scores.csv").write_text(next(text for kind, text in BLOCKS if kind == "csv"), encoding="utf-8")
    ended = subprocess.run([sys.executable, "-c", snippet], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == output


def test_the_page_uses_public_packages_alone() -> None:
    used = {name for snippet in SNIPPETS for name in re.findall(r"(?:from|import) merton\.(\w+)", snippet)}
    assert used <= set(public)


def test_importing_merton_loads_none_of_its_packages() -> None:
    code = "import sys, merton; print([name for name in sys.modules if name.startswith('merton.') or name == 'numpy'])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
