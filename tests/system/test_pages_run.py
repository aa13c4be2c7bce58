"""Pages with files and commands to paste that are no tutorials: they run as they stand, after `make setup` alone."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_tutorials import ROOT, run_page


def python(folder: Path, *arguments: str) -> str:
    """Output of a Python program that is run in the folder of a page."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_the_first_experiment_has_the_trials_that_the_page_counts(tmp_path: Path, hook: Path) -> None:
    run_page(ROOT / "docs/use/experiments.md", tmp_path, hook)
    (folder,) = (tmp_path / "runs").iterdir()
    with (folder / "trials.csv").open(newline="", encoding="utf-8") as table:
        agents = [row["agent"] for row in csv.DictReader(table)]
    assert sorted(agents) == ["glance"] * 12 + ["hold"] * 12
    assert len((tmp_path / "first.yaml").read_text(encoding="utf-8").splitlines()[1:]) == 8


def test_scores_of_another_simulator_become_a_board(tmp_path: Path, hook: Path) -> None:
    run_page(ROOT / "docs/use/your_simulator.md", tmp_path, hook)
    assert "seeker" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory, hook: Path) -> Path:
    """A folder in which the page of recipes was pasted."""
    folder = tmp_path_factory.mktemp("recipes")
    run_page(ROOT / "docs/use/recipes.md", folder, hook)
    return folder


def test_recipes_run_and_their_rates_are_those_of_the_run(recipes: Path) -> None:
    with (recipes / "runs" / "first" / "trials.csv").open(newline="", encoding="utf-8") as table:
        values = [
            int(row["success"]) for row in csv.DictReader(table) if row["agent"] == "glance" and row["level"] == "5"
        ]
    counted = re.findall(r"glance +(?:gaussian_blur|jpeg) +(\d+) of (\d+)", python(recipes, "rates.py"))
    assert [sum(int(row[place]) for row in counted) for place in (0, 1)] == [sum(values), len(values)]


def test_pandas_reads_the_trials_as_the_page_says(recipes: Path) -> None:
    pytest.importorskip("pandas")
    assert "glance" in python(recipes, "frame.py")


def test_code_of_recipes_that_is_not_run_can_be_compiled() -> None:
    text = (ROOT / "docs/use/recipes.md").read_text(encoding="utf-8")
    blocks = [block.partition("\n```")[0] for block in text.split("```python\n")[1:]]
    assert len(blocks) >= 3
    for block in blocks:
        compile(block, "recipes.md", "exec")
