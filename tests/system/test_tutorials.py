"""The tutorials run as they stand on their pages: files are written, commands run in order, outputs appear.

A block whose first line is "# NAME.ending" is that file. A block `bash` is run; the lines of a block `text` after it
must appear in what was printed since the last such block, in their order, each within a line. A block `console` is for
readers.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from patience import stretched

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "use" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w/]+\.\w+)\n")
LONGEST_S = 300
"""One page, on an idle machine."""


def script_of(page: str) -> tuple[str, list[list[str]]]:
    """A script for bash that does all that a page says, and the lines of its `text` blocks, each a list."""
    lines, expected = ["set -eu"], []
    for kind, text in BLOCK.findall(page):
        if file := FILE.match(text):
            text = text.removeprefix(file[0]) if kind == "csv" else text  # a table has no comments
            lines += [f"mkdir -p {Path(file[1]).parent}", f"printf %s {shlex.quote(text)} > {file[1]}"]
        elif kind == "bash":
            lines.append(text)
        elif kind == "text":
            lines.append(f"echo; echo ::text {len(expected)}")
            expected.append(text.splitlines())
    return "\n".join(lines), expected


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def run_page(page: Path, folder: Path, **environment: str) -> str:
    """Everything that a page prints; its servers are ended with it."""
    text = re.sub(r"\b(8001|8080)\b", str(free_port()), page.read_text(encoding="utf-8"))
    script, expected = script_of(text)
    own = {**os.environ, "HOME": str(folder), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with (folder / "printed.txt").open("w+", encoding="utf-8") as printed:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder,
            env={**own, "COLUMNS": "120", **environment},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = shell.wait(stretched(LONGEST_S))
        finally:
            with suppress(ProcessLookupError):  # nothing is left of it
                os.killpg(shell.pid, signal.SIGKILL)
        printed.seek(0)
        output = printed.read()
    assert code == 0, output
    parts = re.split(r"^::text \d+$", output, flags=re.MULTILINE)
    for lines, part in zip(expected, parts, strict=False):
        found = iter(part.splitlines())
        assert all(any(line in other for other in found) for line in lines), (lines, part)
    return output


def test_a_page_is_read_as_it_says(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\n# said.py\nprint('one\\ntwo')\n```\n```console\nexit 3\n```\n```bash\npython said.py\n```\n"
        "```text\none\ntwo\n```\n",
        encoding="utf-8",
    )
    assert "two" in run_page(page, tmp_path)
    for wrong, complaint in (("two\none", "two"), ("three", "three")):
        page.write_text(f"```bash\nprintf 'one\\ntwo\\n'\n```\n```text\n{wrong}\n```\n", encoding="utf-8")
        with pytest.raises(AssertionError, match=complaint):
            run_page(page, tmp_path)
    page.write_text("```bash\nfalse\necho after\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        run_page(page, tmp_path)


def test_your_vla_becomes_a_row_on_a_board(tmp_path: Path) -> None:
    run_page(ROOT / "docs/use/tutorials/your_vla.md", tmp_path)
    with sqlite3.connect(tmp_path / "board.sqlite") as record:
        trials = "SELECT distortion, outcome FROM trials JOIN cases ON cases.id = trials.'case' WHERE agent = 'my-vla'"
        ended = record.execute(trials).fetchall()
    outcomes = (("gaussian_blur", "success"), ("hsv_saturation", "failure"), ("reference", "success"))
    assert sorted(ended) == [outcome for outcome in outcomes for _ in range(2)]
    assert "my-vla" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


def test_your_images_are_distorted_and_annotated(tmp_path: Path) -> None:
    run_page(ROOT / "docs/use/tutorials/your_images.md", tmp_path)
    assert (tmp_path / "annotated" / "models.html").exists()


def test_your_distortion_is_added_to_a_copy(tmp_path: Path) -> None:
    for package in ("merton", "merton_bringup"):
        shutil.copytree(ROOT / "src" / package, tmp_path / "src" / package)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    run_page(ROOT / "docs/use/tutorials/your_distortion.md", tmp_path, PYTHONPATH=str(tmp_path / "src" / "merton"))


def test_your_leaderboard_takes_a_submission(tmp_path: Path) -> None:
    run_page(ROOT / "docs/use/tutorials/your_leaderboard.md", tmp_path)


def test_the_lab_is_rehearsed(tmp_path: Path) -> None:
    run_page(ROOT / "docs/use/tutorials/the_lab.md", tmp_path)
    assert (tmp_path / "board.pdf").exists()


def test_every_tutorial_is_run() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"docs/use/tutorials/{page.name}" not in source] == []
