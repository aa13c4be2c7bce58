"""Decision scores of episodes: in units of the policy's own spread, by step 0 and over all observed steps."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_episodes import act, carry_out, pictures

from merton.decision.models.conventions import CONVENTIONS
from merton.decision.spread import Spread, likeness
from merton.episodes.design import Condition, Design
from merton.episodes.episode import MOST_PICTURES, MOST_ROWS
from merton.episodes.folder import EpisodesFolder
from merton.episodes.run import EpisodesRun
from merton.episodes.scores import NO_STEP, score
from merton.results.decisions import stored_chunks
from merton.study.episode_notes import episode_notes

DESIGN = Design(name="some", distortions=("max_darken",), levels=(2, 5))


def details(run: Path) -> dict[str, dict[str, Any]]:
    """Trial id to the content of its trial.json."""
    return {file.parent.name: json.loads(file.read_text()) for file in run.glob("trials/*/trial.json")}


def of(run: Path) -> dict[str, float | None]:
    """Trial id to the decision score in the record."""
    return {record.id: record.decision for record in EpisodesFolder.read(run).records()}


def scripted(
    tmp_path: Path, design: Design, clean: list[list[list[float]]], shown: list[list[list[float]]], name: str = "run"
) -> Path:
    """A run of two episodes a scene, whose answers of step 0 are given, and with step 1 the same."""
    with EpisodesRun.create(tmp_path, design, name) as run:
        for scene, (before, after) in enumerate(zip(clean, shown, strict=True)):
            for condition in (Condition(), Condition("max_darken", 5)):
                episode = run.begin("a", "push-v3", scene, condition)
                for step in range(2):
                    episode.show(step, pictures(scene, step))
                    asked = before if episode.asks_clean(step) else None
                    episode.decided(step, before if episode.is_clean else after, asked)
                episode.end(True)
    return tmp_path / name


def test_scores_are_in_units_of_the_spread_of_the_undistorted_answers(tmp_path: Path) -> None:
    clean = [[[0.0, 5.0, 1.0]], [[4.0, 5.0, 2.0]], [[2.0, 5.0, 3.0]]]
    run = scripted(tmp_path, DESIGN, clean, [[[1.0, 9.0, 1.0]], [[4.0, 5.0, 2.0]], [[9.0, 5.0, 2.0]]])
    spread = Spread.of([rows for rows in clean for _ in range(3)])
    assert spread.width[1] == 0.0, "a column that never changes is not compared"
    by_hand = 1.0 - (1.0 / spread.width[0] + 0.0) / 2
    found = of(run)
    assert found["a.push-v3.0.max_darken.5"] == pytest.approx(by_hand, abs=1e-12)
    assert found["a.push-v3.1.max_darken.5"] == 1.0
    assert found["a.push-v3.2.max_darken.5"] == pytest.approx(1.0 - (1.0 + 1.0 / spread.width[2]) / 2, abs=1e-12)
    assert {value for name, value in found.items() if ".reference." in name} == {1.0}
    about = json.loads((run / "run.json").read_text())["decision"]["a"]
    assert about["width"] == pytest.approx(spread.width.tolist())
    assert about["rows"] == 9, "two steps of each undistorted episode, and step 0 of each distorted one"


def test_an_early_end_of_the_run_has_the_scores_of_what_is_there(tmp_path: Path) -> None:
    """A score changes with the spread, which grows with the run: it is that of all answers, never of an older one."""
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        carry_out(run, range(2), 3)
        run.refresh()
        early = of(run.path)
        carry_out(run, range(2, 9), 3)
        assert of(run.path)["policy.push-v3.0.max_darken.5"] == early["policy.push-v3.0.max_darken.5"]
    late = of(run.path)
    assert early["policy.push-v3.0.max_darken.5"] != late["policy.push-v3.0.max_darken.5"]
    again = score(run.design, EpisodesFolder.read(run.path).episodes)
    assert {decision.total for decision in again.decisions.values()} == set(late.values())


def test_the_record_has_step_0_and_the_trial_the_mean_over_observed_steps(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN.model_copy(update={"clean_every": 2}), "run") as run:
        carry_out(run, range(3), 3, steps=6)
    record = next(item for item in EpisodesFolder.read(run.path).records() if item.case.level == 5)
    decision = details(run.path)[record.id]["decision"]
    assert list(decision["steps"]) == ["0", "2", "4"]
    assert record.decision == decision["total"] == decision["steps"]["0"]
    assert decision["mean"] == pytest.approx(np.mean(list(decision["steps"].values())), abs=1e-15)
    assert decision["unit"] == "spread"


def test_a_convention_makes_chunks_of_the_answers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    clean = [rng.uniform(-1, 1, (4, 7)).tolist() for _ in range(5)]
    shown = [(np.array(rows) + 0.1).clip(-1, 1).tolist() for rows in clean]
    design = DESIGN.model_copy(update={"convention": "libero_env"})
    run = scripted(tmp_path, design, clean, shown)
    read = CONVENTIONS["libero_env"].chunk
    chunks = {scene: (read(one), read(other)) for scene, (one, other) in enumerate(zip(clean, shown, strict=True))}
    spread = Spread.of([chunk.deltas for both in chunks.values() for chunk in both[:1] * 3])
    for name, detail in details(run).items():
        if ".max_darken." in name:
            one, other = chunks[detail["seed"]]
            assert detail["decision"]["total"] == pytest.approx(likeness(one.deltas, other.deltas, spread), abs=1e-12)
            stored = stored_chunks(detail)
            assert stored is not None
            np.testing.assert_array_equal([part.deltas for part in stored], [one.deltas, other.deltas])
            assert stored[0].step_s == 0.05


def test_given_widths_are_used_as_they_are(tmp_path: Path) -> None:
    design = DESIGN.model_copy(update={"spread": (4.0, 8.0)})
    run = scripted(tmp_path, design, [[[0.0, 0.0]]], [[[1.0, 1.0]]])
    assert of(run)["a.push-v3.0.max_darken.5"] == 1.0 - (1 / 4 + 1 / 8) / 2


@pytest.mark.parametrize(
    ("design", "clean", "shown", "why"),
    [
        ({}, [[[1.0, 2.0]]], [[[2.0, 2.0]]], "do not vary"),
        ({"spread": (1.0, 1.0)}, [[[1.0, 2.0, 3.0]]], [[[1.0, 2.0, 3.0]]], "by a spread of 2"),
        ({"convention": "libero_env"}, [[[1.0, 2.0]]], [[[1.0, 2.0]]], "must give rows of 7 numbers"),
        ({}, [[[1.0]], [[1.0, 2.0]]], [[[1.0]], [[1.0, 2.0]]], "rows of 1 and 2"),
        ({}, [[[float("nan")]]], [[[1.0]]], "no answer to undistorted pictures"),
    ],
)
def test_answers_that_cannot_be_compared_have_no_score_and_a_reason(
    tmp_path: Path,
    design: dict[str, Any],
    clean: list[list[list[float]]],
    shown: list[list[list[float]]],
    why: str,
) -> None:
    run = scripted(tmp_path, DESIGN.model_copy(update=design), clean, shown)
    assert set(of(run).values()) == {None}
    assert all(why in detail["decision"]["why"] for detail in details(run).values())


@pytest.mark.parametrize("every", [0, 2])
def test_step_0_is_no_score_under_a_fault_of_time_and_later_steps_are(tmp_path: Path, every: int) -> None:
    design = Design(name="some", distortions=("frozen",), levels=(5,), clean_every=every)
    with EpisodesRun.create(tmp_path, design, "run") as run:
        carry_out(run, range(3), 2, steps=5)
    found = EpisodesFolder.read(run.path)
    distorted = [record for record in found.records() if record.case.level]
    notes = [line for line in episode_notes(found.about, found.records()) if "no decision score" in line]
    detail = details(run.path)[distorted[0].id]["decision"]
    if every:
        assert set(detail["steps"]) == {"2", "4"}
        assert distorted[0].decision == detail["total"] == detail["mean"] < 1.0
        assert notes == []
    else:
        assert {record.decision for record in distorted} == {None}
        assert notes == [f"3 episodes have no decision score: {NO_STEP}."]
        assert detail["why"] == NO_STEP


def test_the_floor_is_the_answer_for_another_scene(tmp_path: Path) -> None:
    clean = [[[0.0, 0.0]], [[1.0, 0.0]], [[4.0, 2.0]]]
    design = DESIGN.model_copy(update={"spread": (4.0, 4.0)})
    run = scripted(tmp_path, design, clean, clean)
    pairs = [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1), (0, 0), (1, 1), (2, 2)]
    expected = np.mean([likeness(clean[i], clean[j], Spread(np.array([4.0, 4.0]))) for i, j in pairs if i != j])
    floors = json.loads((run / "run.json").read_text())["decision"]["a"]["floors"]
    assert floors == {"push-v3": pytest.approx(expected, abs=1e-12)}
    one = scripted(tmp_path, design, clean[:1], clean[:1], "one")
    assert json.loads((one / "run.json").read_text())["decision"]["a"]["floors"] == {}


def test_an_agent_is_measured_by_its_own_spread_alone(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        carry_out(run, range(3), 3, agent="one")
        alone = of(run.path)
        run.refresh()
        alone = of(run.path)
        episode = run.begin("two", "push-v3", 0)
        episode.decided(0, [9.0, 9.0, 9.0])
        episode.end(True)
    assert alone.items() <= of(run.path).items()


def test_pictures_and_answers_of_a_long_episode_stay_few(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN.model_copy(update={"clean_every": 1}), "run") as run:
        episode = run.begin("a", "push-v3", 0)
        for step in range(100):
            episode.show(step, pictures(0, step))
            episode.decided(step, np.full((20, 2), float(step)))
        summary = episode.summary(True, "")
        assert 0 < sum(len(rows) for rows in summary["actions"]) <= MOST_ROWS
        kept = [rows[0][0] for rows in summary["actions"]]
        assert kept == [float(step) for step in range(0, 100, 4)], "spread over the whole episode"
        assert len({frame["step"] for frame in summary["frames"]}) == MOST_PICTURES
        episode.end(True)


def test_a_second_answer_may_come_later(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        carry_out(run, range(2), 1)
        episode = run.begin("policy", "push-v3", 0)
        seen = episode.show(0, pictures(0))
        assert episode.asks_clean(0)
        assert not episode.asks_clean(1)
        episode.decided(0, [float(seen["front"].mean()), 1.0])
        episode.decided(0, None, [float(pictures(0)["front"].mean()), 1.0])
        episode.end(True)
    assert None not in of(run.path).values()


def test_an_undistorted_episode_may_have_a_second_answer_too(tmp_path: Path) -> None:
    """Its score is then the likeness of two answers to one picture: the policy's own chance."""
    with EpisodesRun.create(tmp_path, DESIGN.model_copy(update={"spread": (10.0,)}), "run") as run:
        episode = run.begin("a", "push-v3", 0)
        episode.decided(0, [3.0], [4.0])
        episode.end(True)
    assert of(run.path) == {"a.push-v3.0.reference.0": pytest.approx(0.9)}


def test_added_latency_is_told_in_milliseconds(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        episode = run.begin("a", "push-v3", 0)
        for step in range(101):
            episode.decided(step, [1.0], added_s=step / 1000)
        episode.end(True)
    assert EpisodesFolder.read(run.path).latency == {"p50_ms": 50.0, "p99_ms": 99.0, "n": 101}


def test_parts_are_scored_in_a_record_of_their_own(tmp_path: Path) -> None:
    design = Design(
        name="some",
        distortions=("max_darken",),
        levels=(5,),
        distort={"cameras": ("front", "wrist")},
        attribute=("cameras",),
    )
    with EpisodesRun.create(tmp_path, design, "run") as run:
        carry_out(run, range(2), 4)
    found = EpisodesFolder.read(run.path)
    assert {(record.experiment, record.case.level) for record in found.records()} == {("run", 0), ("run", 5)}
    parts = {(record.experiment, record.case.seed): record.decision for record in found.part_records()}
    assert set(parts) == {(name, scene) for name in ("cameras.front", "cameras.wrist") for scene in (0, 1)}
    assert parts["cameras.wrist", 0] == 1.0, "the policy looks at the front camera alone"
    assert parts["cameras.front", 0] == of(run.path)["policy.push-v3.0.max_darken.5"]
    assert len(found.pairs.kept) == 6
    assert (run.path / "parts/cameras.wrist/policy.push-v3.0.max_darken.5/trial.json").is_file()
    act(run_again := EpisodesRun.open(run.path).begin("policy", "push-v3", 0))
    assert not run_again.recorded
    run_again.run.close()
