"""Runs of episodes that another program carried out, as report, boards, gate, attribution and comparison read them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from episodes_folder import AGENTS, CAMERAS, DESIGN, SOURCE, TASKS, make_episodes_run, play
from typer.testing import CliRunner

from merton.cli.main import app
from merton.episodes.design import Design
from merton.episodes.run import EpisodesRun
from merton.errors import ErrorCode, InputError, UnknownNameError
from merton.experiment.run import RunDirectory
from merton.experiment.run_names import find_run, is_gate, run_folders, summarize
from merton.leaderboard.snapshot.store import of_trials
from merton.results.losses import by_agent
from merton.results.records import CaseRecord, Outcome, Reference, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.study.attribution_recorded import RecordedGame, findings_of
from merton.study.episode_notes import episode_notes, told
from merton.study.gate_episodes import recorded_scenes, until_sure
from merton.study.report import write_report
from merton.study.same_scenes import APART, pictures_of, same_scenes
from merton.study.values import VALUES

BROKEN = ("act.push-v3.3.jpeg.5", "diffusion.drawer-open-v3.2.max_darken.5")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab") / "runs"
    make_episodes_run(folder)
    return folder


def records_in(run: Path) -> list[TrialRecord]:
    with ResultStore(run / "results.sqlite", read_only=True) as store:
        return store.records()


def merton(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, f"{result.output}{result.exception or ''}"


def test_broken_pairs_are_in_no_number_and_named(runs: Path) -> None:
    records = records_in(runs / "metaworld")
    losses = by_agent(records)
    assert {agent: loss.trials for agent, loss in losses.items()} == {"act": 15, "diffusion": 15}
    assert sorted(record.id for record in records if record.error_code == ErrorCode.NOT_PAIRED) == sorted(BROKEN)
    board = {row.id: row for row in of_trials(records).agents}
    assert [(row.trials, row.infrastructure) for row in board.values()] == [(23, 1), (23, 1)]
    said = episode_notes(json.loads((runs / "metaworld" / "run.json").read_text()), records)
    assert said[0].startswith("2 of 32 distorted episodes are no pairs")
    assert all(name in said[0] for name in BROKEN)
    assert said[1] == "1 episode ended without word of success and counts as a failure: diffusion.push-v3.2.jpeg.5."
    assert said[2].startswith("1 episode was lost to the infrastructure")
    assert len(said) == 3


def test_notes_are_of_runs_of_episodes_alone_and_counts_are_not_trusted() -> None:
    record = TrialRecord("e", "a", TestCase("push-v3", 0, "jpeg", 5), Outcome.FAILURE, error_code=ErrorCode.NO_END)
    assert episode_notes({}, [record]) == []
    assert len(episode_notes({"kind": "episodes", "episodes": {"lost": "3", "beyond": True}}, [record])) == 1
    apart = {"kind": "episodes", "scenes_that_differ_between_agents": ["push-v3.0", "push-v3.1"]}
    assert "In 2 scenes the agents did not all begin with the same first picture" in episode_notes(apart, [])[0]
    row = {"agent": "a", "task": "t", "condition": "jpeg 5", "episodes": 2, "successes": 1}
    assert len(told({"kind": "episodes", "successes": [row, {**row, "episodes": -1}, 3]})) == 1
    assert told({"successes": [row]}) == []


def test_the_report_has_what_episodes_have_and_nothing_else(runs: Path) -> None:
    page = write_report(runs / "metaworld").read_text(encoding="utf-8")
    for absent in (
        "Execution study",
        "tool path",
        "Cognition",
        ">Models<",
        "distance, cm</th>",
        "merton video",
        "chunk",
    ):
        assert absent not in page.partition("<script>")[0], absent
    for anchor in (
        "results",
        "losses",
        "gallery",
        "trials",
        "curves",
        "heat",
        "evidence",
        "floors",
        "methods",
        "files",
    ):
        assert f'<h2 id="{anchor}"' in page, anchor
    assert all(name in page for name in BROKEN)
    assert "latency · p99_ms" in page
    assert "in units of the spread of its own undistorted actions" in page
    assert 'width="256" height="256"' in page, "of another camera than the cell's"
    assert "design.yaml, as given" in page
    assert "There is no" not in page
    counted = [row.successes for row in told(json.loads((runs / "metaworld" / "run.json").read_text()))]
    assert f"{sum(counted)} successes of 48 episodes" in page
    assert not (runs / "metaworld" / "model_scores.csv").exists()


def test_a_run_of_episodes_has_a_name_and_is_the_latest(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = runs / "metaworld"
    monkeypatch.chdir(runs.parent)
    assert [find_run(name).resolve() for name in ("latest", "metaworld", folder)] == [folder.resolve()] * 3
    assert run_folders(runs) == [folder]
    summary = summarize(folder)
    assert (summary.experiment, summary.done, summary.planned, summary.kind) == ("metaworld", 48, 0, "episodes")
    assert not is_gate(folder)
    with pytest.raises(InputError, match="another program carried out"):
        RunDirectory(folder)
    for words in (("video", "metaworld"), ("run", "metaworld", "--resume"), ("plan", "metaworld")):
        code, output = merton(*words)
        assert code != 0
        assert "a run of episodes" in output, words


def test_a_copy_elsewhere_is_read_without_anything_else(runs: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copied"
    shutil.copytree(runs / "metaworld", copy)
    code, output = merton("report", copy)
    assert code == 0, output
    assert "2 of 32 distorted episodes are no pairs" in output
    assert "48 episodes. Report:" in output


def scenes_of(candidate: str, gains: list[tuple[float, float]], conditions: int = 2) -> list[TrialRecord]:
    """Scenes in which the candidate and the baseline succeed (1) or fail (0), in all conditions alike."""
    cases = [("reference", 0), ("jpeg", 5)][:conditions]
    return [
        TrialRecord(
            "run",
            agent,
            TestCase("push-v3", seed, name, level),
            Outcome.SUCCESS if does else Outcome.FAILURE,
            reference=Reference.NONE,
        )
        for seed, both in enumerate(gains)
        for agent, does in zip((candidate, "baseline"), both, strict=True)
        for name, level in cases
    ]


def test_a_gate_counts_each_scene_once_when_both_agents_have_done_all_of_it() -> None:
    records = scenes_of("new", [(0, 1), (1, 1), (1, 0)])
    order = {record.id: record.case.seed for record in records}
    planned = {("push-v3", seed): 2 for seed in range(3)}
    found = recorded_scenes(records, "new", "baseline", order, planned)
    assert [len(scene) for scene in found.done] == [2, 2, 2]
    assert [scene[0][0].case.seed for scene in found.done] == [0, 1, 2]
    reversed_order = {id: -number for id, number in order.items()}
    backwards = recorded_scenes(records, "new", "baseline", reversed_order, planned)
    assert [scene[0][0].case.seed for scene in backwards.done] == [2, 1, 0]
    broken = [
        replace(record, outcome=Outcome.INFRASTRUCTURE) if record.id == "new.push-v3.1.jpeg.5" else record
        for record in records
    ]
    assert [len(scene) for scene in recorded_scenes(broken, "new", "baseline", order, planned).done] == [2, 1, 2]
    begun = recorded_scenes(records[:-1], "new", "baseline", order, planned)
    assert (len(begun.done), begun.begun) == (2, 1)
    apart = recorded_scenes(records, "new", "baseline", order, planned, {("push-v3", 0)})
    assert (len(apart.done), apart.apart) == (2, 1)
    with pytest.raises(UnknownNameError, match="newest"):
        recorded_scenes(records, "newest", "baseline", order, planned)


def test_recorded_scenes_beyond_the_sure_verdict_are_not_needed() -> None:
    records = scenes_of("new", [(0, 1)] * 40)
    done = recorded_scenes(records, "new", "baseline", {}, {}).done
    used = until_sure(done, VALUES["success"], 0.05)
    assert 3 < used < 40
    assert until_sure(done[: used - 1], VALUES["success"], 0.05) == used - 1


def test_the_gate_reads_a_run_and_says_how_many_more_scenes(runs: Path) -> None:
    words = ("gate", "diffusion", "--against", "act", "--runs", runs, "--name", "metaworld")
    code, output = merton(*words, "--resume")
    assert code == 3, output
    assert "let the harness run about" in output
    assert (runs / "metaworld" / "gate.xml").is_file()
    assert not is_gate(runs / "metaworld"), "its files are no kind of its own"
    for wrong, says in (
        ((), "add --resume"),
        (("--resume", "--seed", "3"), "leave --seed out"),
        (("--resume", "--metric", "progress"), "success alone"),
    ):
        code, output = merton(*words, *wrong)
        assert code != 0
        assert says in output
    assert "choose one of: act, diffusion" in merton("gate", "servo", *words[2:], "--resume")[1]


GAME = RecordedGame(
    "cameras",
    list(CAMERAS),
    {
        frozenset({"corner2"}): "cameras.corner2",
        frozenset({"gripper_pov"}): "cameras.gripper_pov",
        frozenset(CAMERAS): "all",
    },
)


def test_recorded_parts_share_the_loss_out_and_add_up_to_it() -> None:
    """The first camera bears all: with it alone distorted an episode ends as with both, with the other as with none."""
    whole = scenes_of("pi0", [(1, 1)] * 6, 1) + [
        replace(record, case=TestCase("push-v3", record.case.seed, "jpeg", 5), outcome=outcome)
        for record in scenes_of("pi0", [(1, 1)] * 6, 1)
        if record.agent == "pi0"
        for outcome in [Outcome.FAILURE if record.case.seed < 4 else Outcome.SUCCESS]
    ]
    distorted = [record for record in whole if record.agent == "pi0" and not record.case.is_reference]
    parts = [replace(record, experiment="cameras.corner2") for record in distorted]
    parts += [replace(record, experiment="cameras.gripper_pov", outcome=Outcome.SUCCESS) for record in distorted]
    found = findings_of("pi0", [GAME], {}, whole, parts).attributions
    assert [item.value for item in found] == ["success"], "of failures the progress is not known"
    assert found[0].loss.value == pytest.approx(4 / 6)
    assert {name: share.value for name, share in found[0].shares.items()} == pytest.approx(
        {"corner2": 4 / 6, "gripper_pov": 0.0}
    )
    assert found[0].chance is None
    some = findings_of("pi0", [GAME], {}, whole, parts[:9])
    assert some.attributions[0].trials == 3, "of the episodes with all designs"
    assert "3 in 3 scenes of the 6 distorted episodes" in some.remarks[0]
    assert findings_of("pi0", [GAME], {}, whole, parts[:6]).attributions == ()


def test_attribute_says_how_much_is_recorded_and_what_is_missing(tmp_path: Path) -> None:
    design = Design(
        name="parts", distortions=("jpeg",), levels=(5,), distort={"cameras": tuple(CAMERAS)}, attribute=("cameras",)
    )
    with EpisodesRun.create(tmp_path, design, "parts", SOURCE) as run:
        play(run, {"act": 0.55}, 4, most=14, planted=False)
    code, output = merton("attribute", tmp_path / "parts")
    assert code == 0, output
    assert "corner2" in output
    assert "6 of 8 episodes of the parts are recorded: let the harness go on" in " ".join(output.split())
    assert "no placebo is recorded" in output
    page = (tmp_path / "parts" / "attribution.html").read_text()
    assert "loss of progress" not in page
    assert "it carried out no placebo" in page
    assert "a drawn part of the others" not in page
    for words, says in ((("--by", "stages"), "axis of episodes"), (("--workers", "2"), "leave --workers out")):
        code, output = merton("attribute", tmp_path / "parts", *words)
        assert code != 0
        assert says in output


def case(task: str, seed: int, picture: str | None) -> CaseRecord:
    return CaseRecord(f"{task}.{seed}.reference.0", "", task, seed, "reference", 0, picture)


def test_scenes_of_one_name_with_other_pictures_are_not_compared_with_themselves() -> None:
    records = [record for record in scenes_of("new", [(1, 1)] * 3, 1) if record.agent == "new"]
    ours = pictures_of(case("push-v3", seed, f"a{seed}") for seed in range(3))
    assert same_scenes(records, records, (ours, ours)) == (records, records, "")
    assert same_scenes(records, records, (ours, {})) == (records, records, "")
    one_other = {**ours, ("push-v3", 1): frozenset({"b"})}
    first, second, said = same_scenes(records, records, (ours, one_other))
    assert [record.case.seed for record in first] == [record.case.seed for record in second] == [0, 2]
    assert said.startswith("Left out: 1 scene that")
    theirs = pictures_of(case("push-v3", seed, f"b{seed}") for seed in range(2))
    first, second, said = same_scenes(records, records, (ours, theirs))
    assert [record.case.seed for record in second] == [APART + seed for seed in range(3)]
    assert first == records
    assert "3 scenes of the same name" in said


def test_runs_of_two_programs_are_compared_as_samples_and_never_merged_silently(runs: Path, tmp_path: Path) -> None:
    design = DESIGN.model_copy(update={"distortions": ("jpeg",)})
    with EpisodesRun.create(tmp_path, design, "other", {**SOURCE, "harness": "another 1.0"}) as run:
        play(run, AGENTS, 2, planted=False, salt=5)
    code, output = merton("compare", runs / "metaworld", tmp_path / "other", "--out", tmp_path / "page.html")
    assert code == 0, output
    assert "none is compared with itself" in " ".join(output.split())
    assert "another 1.0" in output
    record = tmp_path / "lab.sqlite"
    assert merton("results", "merge", runs / "metaworld", record)[0] == 0
    code, output = merton("results", "merge", tmp_path / "other", record)
    assert code != 0
    assert "its scene begins with another picture" in output
    with ResultStore(record, read_only=True) as store:
        assert {item.case.task for item in store.records()} == set(TASKS)
        assert store.experiments() == ["metaworld"]
