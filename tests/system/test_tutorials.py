"""The tutorials run as they stand on their pages, on what `make setup` installs: `tools/paste.py` says how.

An environment of `make develop` has more; a hook hides every package that `make setup` does not bring. Blocks `console`
are for readers.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from paste import faults, paste
from set_up_alone import hidden_modules

from sources import ROOT

PAGES = sorted((ROOT / "docs" / "use" / "tutorials").glob("*.md"))
PREFIX = Path(sys.executable).parents[1]


def run_page(page: Path, folder: Path, hook: Path, *path: Path, kinds: Sequence[str] = ("bash",)) -> None:
    """Paste a page; fails with what failed."""
    places = [str(place) for place in (hook, *path)] + [os.environ.get("PYTHONPATH", "")]
    pasted = paste(page, folder, PREFIX, kinds=kinds, PYTHONPATH=os.pathsep.join(filter(None, places)))
    assert pasted.commands
    assert faults(pasted) == []


def test_a_page_is_read_as_it_says(tmp_path: Path) -> None:
    page = tmp_path / "page.md"

    def pasted(text: str) -> list[str]:
        page.write_text(text, encoding="utf-8")
        return faults(paste(page, tmp_path, PREFIX, kinds=("bash",)))

    said = (
        "```python\n# said.py\nprint(open('said.py').readline(), 'one\\ntwo')\n```\n```console\nexit 3\n```\n"
        "```bash\nexport MINE=two\npython said.py\n```\n```text\n# said.py\none\ntwo\n```\n```bash\necho $MINE\n```\n"
        "```text\ntwo\n```\n"
    )
    assert pasted(said) == []
    for wrong, complaint in (("two\none", "'one' was not printed"), ("three", "'three' was not printed")):
        assert pasted(f"```bash\nprintf 'one\\ntwo\\n'\n```\n```text\n{wrong}\n```\n") == [complaint]
    assert pasted("```bash\necho so; false\necho after\n```\n") == ["echo so; false: exit code 1: so"]


def test_what_the_set_up_lacks_is_hidden(hook: Path, tmp_path: Path) -> None:
    hidden = hidden_modules()
    assert {"torch", "pytest", "av", "sklearn"} & hidden, "this environment has more"
    assert not {"numpy", "mujoco", "fastapi", "httpx2", "mcap", "pyarrow", "rclpy", "merton", "yaml"} & hidden
    page = tmp_path / "page.md"
    absent = min(name for name in hidden if name.isidentifier() and not name.startswith("_"))
    page.write_text(f'```bash\npython -c "import numpy, {absent}"\n```\n', encoding="utf-8")
    (fault,) = faults(paste(page, tmp_path, PREFIX, kinds=("bash",), PYTHONPATH=str(hook)))
    assert f"No module named {absent!r}" in fault


def test_your_vla_becomes_a_row_on_a_board(tmp_path: Path, hook: Path) -> None:
    run_page(ROOT / "docs/use/tutorials/your_vla.md", tmp_path, hook)
    with sqlite3.connect(tmp_path / "board.sqlite") as record:
        trials = "SELECT distortion, outcome FROM trials JOIN cases ON cases.id = trials.'case' WHERE agent = 'my-vla'"
        ended = record.execute(trials).fetchall()
    outcomes = (("gaussian_blur", "success"), ("hsv_saturation", "failure"), ("reference", "success"))
    assert sorted(ended) == [outcome for outcome in outcomes for _ in range(2)]
    assert "my-vla" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


def test_your_images_are_distorted_and_annotated(tmp_path: Path, hook: Path) -> None:
    run_page(ROOT / "docs/use/tutorials/your_images.md", tmp_path, hook)
    assert (tmp_path / "annotated" / "models.html").exists()


def test_your_image_quality_study_ends_in_a_table(tmp_path: Path, hook: Path) -> None:
    run_page(ROOT / "docs/use/tutorials/your_image_quality.md", tmp_path, hook)
    assert "imported: 3 types at 3 levels" in (tmp_path / "table2" / "decision.html").read_text(encoding="utf-8")
    assert "ssim,zero_shot" in (tmp_path / "table2" / "decision.csv").read_text(encoding="utf-8")


def test_your_distortion_is_added_to_a_copy(tmp_path: Path, hook: Path) -> None:
    for package in ("merton", "merton_bringup"):
        shutil.copytree(ROOT / "src" / package, tmp_path / "src" / package)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    run_page(ROOT / "docs/use/tutorials/your_distortion.md", tmp_path, hook, tmp_path / "src" / "merton")


def test_your_leaderboard_takes_a_submission(tmp_path: Path, hook: Path) -> None:
    run_page(ROOT / "docs/use/tutorials/your_leaderboard.md", tmp_path, hook)


def test_your_ratings_end_in_the_papers_tables(tmp_path: Path, hook: Path) -> None:
    run_page(ROOT / "docs/use/tutorials/your_ratings.md", tmp_path, hook)
    page = (tmp_path / "ratings" / "ratings.html").read_text(encoding="utf-8")
    assert "A question made at" in page
    assert "By AGI-Elo" in page


def test_your_world_model_board_is_that_by_hand(tmp_path: Path, hook: Path) -> None:
    """north: (8/3 + 4/3) / 2; south: (4/3 + 4/3) / 2."""
    run_page(ROOT / "docs/use/tutorials/your_world_model_board.md", tmp_path, hook)
    (board,) = json.loads((tmp_path / "board.json").read_bytes())["boards"]
    scores = {row["agent"]: [cell["score"] for cell in row["cells"]] for row in board["rows"]}
    assert board["columns"] == ["clear the table", "push the block"]
    assert scores == {"north": [pytest.approx(4 / 3), pytest.approx(8 / 3)], "south": [pytest.approx(4 / 3)] * 2}


def test_your_questions_become_a_curated_benchmark(tmp_path: Path) -> None:
    """With the extra curation, which the page installs."""
    pytest.importorskip("sentence_transformers", reason="the extra `curation` is not installed")
    run_page(ROOT / "docs/use/tutorials/your_questions.md", tmp_path, tmp_path / "nothing is hidden")
    page = (tmp_path / "benchmark" / "index.html").read_text(encoding="utf-8")
    assert "the benchmark&#39;s own scorer, own.py" in page


def test_your_arena_evaluates_a_model_that_applies(tmp_path: Path, hook: Path) -> None:
    run_page(ROOT / "docs/use/tutorials/your_arena.md", tmp_path, hook)
    pages = [page.read_text(encoding="utf-8") for page in (tmp_path / "site").rglob("*.html")]
    assert any("Nodder 1.0 (Lab X)" in page and "evaluated by the host" in page for page in pages)


def test_the_lab_is_rehearsed(tmp_path: Path, hook: Path) -> None:
    run_page(ROOT / "docs/use/tutorials/the_lab.md", tmp_path, hook)
    assert (tmp_path / "board.pdf").exists()


def test_your_world_is_made_checked_and_run_in(tmp_path: Path) -> None:
    """With gymnasium, in the place of the page's own environment this one."""
    pytest.importorskip("gymnasium", reason="gymnasium is not installed (the extra gym)")
    python = tmp_path / "sim" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    run_page(ROOT / "docs/use/tutorials/your_world.md", tmp_path, tmp_path / "nothing is hidden")
    first = tmp_path / "runs" / "first"
    looked = {name: sum(done) for name, done in successes(first, "looker").items()}
    assert looked == {"reference": 4, "gaussian_blur": 4, "hsv_saturation": 0}
    assert all(all(done) for done in successes(first, "expert").values())
    assert not any(any(done) for done in successes(first, "hold").values())


def successes(run: Path, agent: str) -> dict[str, list[bool]]:
    """Distortion to whether each trial of an agent did its task; `reference` is the undistorted ones."""
    with sqlite3.connect(run / "results.sqlite") as record:
        trials = "SELECT distortion, outcome FROM trials JOIN cases ON cases.id = trials.'case' WHERE agent = ?"
        found: dict[str, list[bool]] = {}
        for distortion, outcome in record.execute(trials, (agent,)):
            found.setdefault(distortion, []).append(outcome == "success")
    return found


def changed(page: Path, copy: Path, *changes: tuple[str, str]) -> Path:
    """A copy of a page in which texts are replaced, each of which it must have."""
    text = page.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    copy.write_text(text, encoding="utf-8")
    return copy


def test_demonstrations_are_exported_and_replayed(tmp_path: Path) -> None:
    """With the extras dataset and people, which the page installs; its training is the next test.

    Two scenes of the page's six, and one of its three: everything else as it stands.
    """
    pytest.importorskip("av", reason="PyAV is not installed (the extra people)")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (the extra dataset)")
    fewer = (("scenes: 6", "scenes: 2"), ("6 episodes, 6 of them", "2 episodes, 2 of them"), ("scenes: 3", "scenes: 1"))
    page = changed(ROOT / "docs/use/tutorials/lerobot.md", tmp_path / "page.md", *fewer)
    run_page(page, tmp_path, tmp_path / "nothing is hidden")
    assert successes(tmp_path / "runs/known", "replay") == {"reference": [True] * 2}
    memory = tmp_path / "runs/memory"
    assert {name: len(done) for name, done in successes(memory, "replay").items()} == dict.fromkeys(
        ("reference", "gaussian_blur", "jpeg"), 1
    )
    assert not any(any(done) for done in successes(memory, "hold").values())


def test_a_policy_is_trained_in_lerobot_and_evaluated(tmp_path: Path) -> None:
    """The same page whole, but for the number of training steps; where LeRobot's part for training is installed."""
    pytest.importorskip("lerobot", reason="LeRobot is not installed (the extra lerobot)")
    pytest.importorskip("accelerate", reason="LeRobot's own extra `training` is not installed")
    fewer = (
        ("--first=40 --steps=800", "--steps=2"),
        ("--steps=1750 --save_freq=250", "--steps=2"),
        ("40, 640", "2, 6"),
        ("~/merton/", f"{ROOT}/"),
    )
    page = changed(ROOT / "docs/use/tutorials/lerobot.md", tmp_path / "page.md", *fewer)
    run_page(page, tmp_path, tmp_path / "nothing is hidden", kinds=("bash", "console"))
    assert {name: len(done) for name, done in successes(tmp_path / "runs/new", "act-press").items()} == dict.fromkeys(
        ("reference", "gaussian_blur", "jpeg"), 3
    )
    assert "act-press" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


def test_every_tutorial_is_run() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"docs/use/tutorials/{page.name}" not in source] == []
