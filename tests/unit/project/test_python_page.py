"""The snippets of docs/use/python.md print what the page shows (that of a graph: tests/system/test_python_graph.py)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from merton import __all__ as public
from python_page import IN_GRAPH, Snippet, snippets

LONGEST = 10
"""Lines of a snippet, at most."""
SNIPPETS = snippets()


@pytest.mark.parametrize("snippet", [one for one in SNIPPETS if one.heading != IN_GRAPH], ids=lambda one: one.heading)
def test_a_snippet_prints_what_the_page_shows(tmp_path: Path, snippet: Snippet) -> None:
    ended = snippet.run(tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == snippet.output


def test_snippets_are_short() -> None:
    assert [one.heading for one in SNIPPETS if len(one.code.splitlines()) > LONGEST] == []


def test_the_page_uses_public_packages_alone() -> None:
    used = {name for one in SNIPPETS for name in re.findall(r"(?:from|import) merton\.(\w+)", one.code)}
    assert used <= set(public)


def test_importing_merton_loads_none_of_its_packages() -> None:
    code = "import sys, merton; print([name for name in sys.modules if name.startswith('merton.') or name == 'numpy'])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
