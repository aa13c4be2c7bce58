"""A run of a world that is on no machine, by agents that are in no catalogue, is read, compared, rated and shown."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_run import make_fake_run
from plane_run import AGENTS, FRAME, NAME, SCENES, TASKS, VERSIONS, make_plane_run, world
from typer.testing import CliRunner, Result

from merton.cli.main import app
from merton.decision.models.base import POLICIES
from merton.errors import FileError, InputError
from merton.experiment.recorded import known_names
from merton.leaderboard.snapshot import store as snapshot
from merton.results.merge import merge
from merton.results.recorded_world import EMBEDDED, in_brief, place_of, pooled_sentences, world_of
from merton.results.records import ExperimentRecord
from merton.results.store import ResultStore
from merton.study import paths
from merton.study.gate_pictures import worst_scene
from merton.study.report import write_report
from merton.worlds.description import WorldDescription

CELL_WORDS = ("the table ", "tool", "gripper", "arm ", "the cell", "UR5", "cm", "merton video")
"""Words that are true of the embedded cell alone."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `one`, `newer` of another MuJoCo, `pathless`, `disc` of another world, and `cell` of the embedded one."""
    folder = tmp_path_factory.mktemp("runs")
    make_plane_run(folder / "one")
    make_plane_run(folder / "newer", versions=VERSIONS | {"mujoco": "3.9.0"}, seed=4)
    make_plane_run(folder / "pathless", has_path=False)
    make_plane_run(folder / "disc", of_world="disc")
    make_fake_run(folder / "cell", agents=("servo", "hold"), distortions=("jpeg",), tasks=("pick",))
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)


def text_of(page: Path) -> str:
    """The words that a reader of a page sees, without the experiment's file and run.json."""
    content = re.sub(r"<(style|script)\b.*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    content = content[: content.index('id="files"')]
    return " ".join(re.sub(r"<[^>]*>", " ", content).split())


def all_text_of(page: Path) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page.read_text(encoding="utf-8")).split())


def test_run_json_names_the_world_its_versions_and_its_frame() -> None:
    found = world_of({"world": world()})
    assert found is not None
    assert (found.name, dict(found.versions), found.frame, found.unit) == (NAME, VERSIONS, FRAME, "px")
    assert found.columns == ("x [px]", "y [px]")
    assert found.gives_rows
    assert place_of({"world": world()}) == found
    cell = place_of({"packages": {"numpy": "2", "mujoco": "4.0.0"}})
    assert cell is not None
    assert (cell.name, dict(cell.versions), world_of({"packages": {}})) == (EMBEDDED, {"mujoco": "4.0.0"}, None)
    assert place_of({"kind": "episodes"}) is None
    assert place_of({}) is None


@pytest.mark.parametrize(
    "entry", [None, 3, [], "plane", {}, {"name": 5, "description": 4}, {"description": {"versions": [1], "frame": {}}}]
)
def test_an_entry_that_is_none_is_read_without_a_crash(entry: Any) -> None:
    about = {"world": entry}
    assert in_brief(about)["world"] == entry
    found = place_of({**about, "packages": 7})
    assert found is not None
    assert (found.frame, dict(found.versions)) == ("", {})


def test_the_description_is_part_of_what_a_run_knows(tmp_path: Path) -> None:
    found = known_names({"world": world()}, tmp_path / "run.json")["world"]["plane"]
    assert isinstance(found, WorldDescription)
    assert found.task("circle").group == "board"
    assert "world" not in known_names({}, tmp_path / "run.json")
    with pytest.raises(FileError, match=r"run\.json"):
        known_names({"world": world(cameras=[])}, tmp_path / "run.json")
    with pytest.raises(FileError, match=r"run\.json: models, tasks and world must be as Merton wrote them"):
        known_names({"world": "plane"}, tmp_path / "run.json")


def test_a_report_speaks_of_that_world_alone(runs: Path) -> None:
    page = write_report(runs / "one")
    text, content = text_of(page), page.read_text(encoding="utf-8")
    assert f"The trials were made in the world plane (gym-plane 0.2.0, mujoco {VERSIONS['mujoco']}" in text
    assert "Pictures are distorted at this point: the picture as the environment renders it." in text
    assert f"{len(AGENTS)} agents, 60 trials in {SCENES} scenes" in text, "both tasks are done in the same scenes"
    assert [word for word in CELL_WORDS if word in text] == []
    assert content.count('class="trajectory"') == 2, "one plane, of two cards"
    assert "grid 50 px" in text
    assert "path in the board&#39;s corner [px]" in content
    assert 'class="table"' not in content
    assert "distance, cm" not in content
    assert "First rows of the first chunk: x [px], y [px]." in content
    assert "0.00 position" not in text
    assert "Cognition" not in text
    assert "world · description · versions · mujoco" in content
    assert "max_rows" not in content


def test_the_yardstick_of_another_world_is_its_expert(tmp_path: Path) -> None:
    make_plane_run(tmp_path / "tool")
    with sqlite3.connect(tmp_path / "tool" / "results.sqlite") as record:
        record.execute("UPDATE trials SET distance_m = 0.1")
    added = tmp_path / "tool" / "references" / "expert.circle.0.reference.0"
    added.mkdir(parents=True)
    (added / "trial.json").write_text("{}")
    text = all_text_of(write_report(tmp_path / "tool"))
    assert "else the expert’s. No agent is the expert, so 1 of its undistorted runs was added for that" in text
    assert "oracle" not in text.replace("oracles", "")


def test_where_there_is_no_path_none_is_drawn(runs: Path) -> None:
    page = write_report(runs / "pathless")
    content = page.read_text(encoding="utf-8")
    assert content.count('<article class="card"') == 2
    assert content.count("<svg") > 0
    assert 'class="trajectory"' not in content
    assert "Dotted" not in text_of(page)


def test_the_trials_of_a_report_have_blanks_where_nothing_was_measured(runs: Path) -> None:
    write_report(runs / "one")
    rows = list(csv.DictReader((runs / "one" / "trials.csv").read_text().splitlines()))
    assert {row["group"] for row in rows} == {"board"}
    for name in ("cognition", "distance_m", "path_m", "angle_rad", "cut_short", "slots", "own_spread"):
        assert {row[name] for row in rows} == {""}, name
    assert all(0.0 <= float(row["decision"]) <= 1.0 for row in rows)
    scores = list(csv.DictReader((runs / "one" / "model_scores.csv").read_text().splitlines()))
    assert {row["reason"] for row in scores if row["score"] == "own_spread"} == {
        "its decisions are rows, of which no spread is computed"
    }


def test_a_path_is_drawn_to_one_scale_in_the_planes_in_which_it_lies() -> None:
    found = world_of({"world": world()})
    flat = np.array([[0.0, 0.0, 7.0], [300.0, 100.0, 7.0]])
    (picture, caption), *others = paths.pictures(flat, flat[:0], found)
    assert others == []
    assert caption == f"path in {FRAME}"
    line = re.search(r'points="([^"]+)"', picture)
    assert line is not None
    (x0, y0), (x1, y1) = ([float(part) for part in corner.split(",")] for corner in line[1].split())
    assert (x1 - x0) / (y0 - y1) == pytest.approx(3.0, abs=0.05)
    rising = flat + np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
    assert len(paths.pictures(rising, flat, found)) == 2
    one_point = flat[:1]
    assert "polyline" in paths.pictures(one_point, one_point, found)[0][0], "a robot that never moved"
    assert paths.pictures(flat[:0], flat[:0], found) == []
    far = paths.path_of({"path": [[1e300, 0, 0], [float("nan"), 0, 0], [5, 6, 7]]}, "path", found)
    assert far.tolist() == [[1e9, 0.0, 0.0], [5.0, 6.0, 7.0]]
    assert len(paths.pictures(far, far, found)[0][0]) < 20_000, "a grid of few lines, whatever the numbers"


def test_other_versions_of_one_world_are_a_warning_with_a_name(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    output = " ".join(run("compare", runs / "one", runs / "newer", "--out", page).stdout.split())
    told = (
        "The world plane ran with mujoco 3.1.6 in A and 3.9.0 in B: it alone moved published success rates of LIBERO "
        "by seven points, so a difference between these runs may be the simulator's."
    )
    assert told in output
    assert "Paired: " in output
    assert "The world plane ran with mujoco 3.1.6 in A and 3.9.0 in B" in all_text_of(page)
    assert "ran with" not in run("compare", runs / "one", runs / "one", "--out", page).stdout


def test_another_simulator_of_the_embedded_cell_is_told_in_the_same_way(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "cell", tmp_path / "older")
    facts = json.loads((tmp_path / "older" / "run.json").read_text())
    facts["packages"]["mujoco"] = "3.1.6"
    (tmp_path / "older" / "run.json").write_text(json.dumps(facts))
    output = " ".join(run("compare", tmp_path / "older", runs / "cell", "--out", tmp_path / "x.html").stdout.split())
    assert "Merton's own cell ran with mujoco 3.1.6 in A and 4.0.0 in B" in output


def test_no_case_of_one_world_is_compared_with_one_of_another(runs: Path) -> None:
    values = json.loads(run("compare", runs / "one", runs / "disc", "--json").stdout)
    assert values["notes"][0].startswith("A ran in the world plane and B in the world disc: ")
    assert [row["drop"]["is_paired"] for row in values["agents"]] == [False, False]
    result = run("compare", runs / "one", runs / "disc", "--identical")
    assert result.exit_code == 1
    assert "A ran in the world plane and B in the world disc" in result.stdout


def test_a_board_of_several_worlds_or_versions_says_so(runs: Path, tmp_path: Path) -> None:
    with ResultStore(tmp_path / "lab.sqlite") as lab:
        for name in ("one", "newer", "cell"):
            with ResultStore(runs / name, read_only=True) as source:
                merge(source, lab)
        board = snapshot.take(lab, checks=False)
        told = [text for text in board.warnings if "world plane" in text]
        assert [text.split(":")[0] for text in told] == [
            "The trials were made in the world plane (newer) and elsewhere",
            "The world plane ran with mujoco 3.9.0 in newer and 3.1.6 in one",
        ]
        with (
            ResultStore(runs / "disc", read_only=True) as source,
            pytest.raises(InputError, match="one of plane and one of disc"),
        ):
            merge(source, lab)
        assert len(lab.experiments()) == 3
    with ResultStore(runs / "one", read_only=True) as store:
        alone = snapshot.take(store, checks=False)
        assert not any("world" in text for text in alone.warnings)
        assert {row.trial_scenes for row in alone.agents} == {SCENES}


def test_the_world_of_an_experiment_counts_in_the_inputs_of_a_board(runs: Path) -> None:
    with ResultStore(runs / "one", read_only=True) as store:
        inputs = snapshot.inputs_of(store)
    assert replace(inputs, experiments=()).sha256() != inputs.sha256()
    damaged = [ExperimentRecord("a", world="w", world_versions="{"), ExperimentRecord("b", world="w")]
    assert pooled_sentences(damaged) == []


@pytest.mark.parametrize(
    "command",
    ["leaderboard show RUN", "results list RUN", "rate RUN", "leaderboard build RUN --out site", "runs --runs RUNS"],
)
def test_commands_that_read_need_neither_the_world_nor_a_catalogue(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(runs / "one", tmp_path / "one")
    places = {"RUN": tmp_path / "one", "RUNS": tmp_path}
    result = run(*(places.get(word, word) for word in command.split()))
    assert result.exit_code == 0
    assert "nan" not in result.stdout.lower().split()


def test_the_report_of_a_run_from_elsewhere_is_written_by_the_command(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "one", tmp_path / "one")
    facts = json.loads((tmp_path / "one" / "run.json").read_text())
    entry = POLICIES["hold"].model_dump(mode="json")
    facts["models"] = {"vla": {f"{agent}_net": {"entry": entry} for agent in AGENTS}}
    (tmp_path / "one" / "run.json").write_text(json.dumps(facts))
    result = run("report", tmp_path / "one")
    assert result.exit_code == 0
    assert (tmp_path / "one" / "report.html").is_file()
    assert len(TASKS) == 2


def test_the_worst_scene_of_a_gate_shows_the_paths_in_the_worlds_frame(runs: Path) -> None:
    with ResultStore(runs / "one", read_only=True) as store:
        records = store.records()
    lost = next(record for record in records if record.agent == "drifter" and not record.success)
    kept = next(record for record in records if record.agent == "planner" and record.case == lost.case)
    picture = str(worst_scene(runs / "one", (lost, kept)))
    assert "x → and y ↑ [px]: candidate red, baseline blue" in picture
    assert picture.count("<polyline") == 2
    without = str(worst_scene(runs / "pathless", (lost, kept)))
    assert without.count("<image") == 3
    assert "candidate red" not in without
