"""Pages that are no tutorials but have files and commands to paste: they run as they stand."""

from __future__ import annotations

import csv
from pathlib import Path

from test_tutorials import ROOT, run_page


def test_the_first_experiment_has_the_trials_that_the_page_counts(tmp_path: Path) -> None:
    run_page(ROOT / "docs/use/experiments.md", tmp_path)
    (folder,) = (tmp_path / "runs").iterdir()
    with (folder / "trials.csv").open(newline="", encoding="utf-8") as table:
        agents = [row["agent"] for row in csv.DictReader(table)]
    assert sorted(agents) == ["glance"] * 12 + ["hold"] * 12
    assert len((tmp_path / "first.yaml").read_text(encoding="utf-8").splitlines()[1:]) == 8
