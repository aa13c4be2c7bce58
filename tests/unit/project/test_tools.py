"""Programs of the checkout: what names one names it right, and every study stands on the page of measurements."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sources import ROOT

PROGRAM = re.compile(r"(?<![\w/])tools/(?:\w+/)*\w+\.(?:py|sh|cmake)\b")
PLACES = (
    "Makefile",
    "pyproject.toml",
    ".github",
    "config",
    "docker",
    "docs",
    "src",
    "tests",
    "tools",
    "README.md",
    "CONTRIBUTING.md",
)
OTHERS = {"test_sandbox.py", Path(__file__).name}
"""They name programs that are not of the checkout."""
KINDS = {"", ".cmake", ".cfg", ".md", ".py", ".sh", ".toml", ".yaml", ".yml"}
STUDIES = sorted((ROOT / "tools" / "studies").glob("*.py"))


def named(file: Path) -> set[str]:
    """The programs that a file of text names."""
    return set(PROGRAM.findall(file.read_text(encoding="utf-8")))


def test_every_program_that_is_named_is_there() -> None:
    texts = [
        file
        for place in PLACES
        for start in ROOT.glob(place)
        for file in ([start] if start.is_file() else start.rglob("*"))
        if file.is_file() and file.suffix in KINDS and file.name not in OTHERS
    ]
    assert any(named(file) for file in texts)
    for file in texts:
        missing = {program for program in named(file) if not (ROOT / program).is_file()}
        assert not missing, f"{file.relative_to(ROOT)} names programs that are not there"


@pytest.mark.parametrize("study", STUDIES, ids=lambda file: file.name)
def test_every_study_stands_on_the_page_of_measurements(study: Path) -> None:
    page = ROOT / "docs" / "reference" / "measured.md"
    is_program = '__name__ == "__main__"' in study.read_text(encoding="utf-8")
    if is_program:
        assert str(study.relative_to(ROOT)) in named(page), f"docs/reference/measured.md has no line for {study.name}"
    else:
        assert any(f"from {study.stem} import" in other.read_text(encoding="utf-8") for other in STUDIES), study.name
