"""Pairs of episodes: proven by their first pictures; and successes that are told later by a table."""

import json
from pathlib import Path

import numpy as np
import pytest
from scripted_episodes import act, carry_out, pictures

from merton.episodes.design import Condition, Design, EpisodePart
from merton.episodes.folder import EpisodesFolder
from merton.episodes.pairs import different_scenes, frame_sha256, scene_of_frame
from merton.episodes.results import Joined, join
from merton.episodes.run import EpisodesRun
from merton.errors import ErrorCode, InputError
from merton.results.merge import merge
from merton.results.records import Outcome
from merton.results.store import ResultStore
from merton.study.episode_notes import episode_notes

DESIGN = Design(name="some", distortions=("jpeg",), levels=(2, 5))
DARK = Condition("jpeg", 5)


def test_a_planted_broken_pair_is_found_and_named(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        for scene in range(3):
            for condition in (Condition(), Condition("jpeg", 2), DARK):
                episode = run.begin("a", "push-v3", scene, condition)
                act(episode, scene=5 if (scene, condition) == (1, DARK) else scene)
                episode.end(True)
    found = EpisodesFolder.read(run.path).pairs
    (broken,) = found.broken
    assert (broken.task, broken.scene, broken.condition, broken.trial) == ("push-v3", 1, "jpeg 5", "a.push-v3.1.jpeg.5")
    assert broken.why == "its first undistorted pictures differ from those of the undistorted episode"
    assert not found.counts(broken.trial)
    assert found.counts("a.push-v3.1.jpeg.2")
    assert (len(found.kept), found.alone) == (5, 0)
    about = json.loads((run.path / "run.json").read_text())["pairs"]
    assert [one["trial"] for one in about["broken"]] == ["a.push-v3.1.jpeg.5"]


def test_one_pixel_breaks_a_pair_and_later_steps_do_not(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        for scene, (step, value) in enumerate([(0, 0), (0, 1), (1, 1)]):
            for condition in (Condition(), DARK):
                episode = run.begin("a", "push-v3", scene, condition)
                for at in range(2):
                    seen = pictures(scene, at)
                    if not condition.is_reference and at == step:
                        seen["wrist"][20, 30, 1] ^= value
                    episode.show(at, seen)
                episode.end(True)
    assert [one.scene for one in EpisodesFolder.read(run.path).pairs.broken] == [1]


def test_an_episode_without_pictures_makes_no_pair_and_one_without_partner_is_alone(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        for scene, condition in ((0, Condition()), (0, DARK), (1, DARK)):
            episode = run.begin("a", "push-v3", scene, condition)
            if not condition.is_reference:
                act(episode)
            episode.end(True)
    found = EpisodesFolder.read(run.path).pairs
    assert [one.why for one in found.broken] == ["no first picture was seen of one of them"]
    assert (found.alone, found.kept) == (1, frozenset())


@pytest.mark.parametrize("partner", [True, False], ids=["pair", "alone"])
def test_a_distorted_episode_of_which_nothing_could_be_distorted_is_no_trial_of_it(
    tmp_path: Path, partner: bool
) -> None:
    design = DESIGN.model_copy(update={"distort": EpisodePart(cameras=("top",))})
    with EpisodesRun.create(tmp_path, design, "run") as run:
        for condition in (Condition(), DARK) if partner else (DARK,):
            episode = run.begin("a", "push-v3", 0, condition)
            act(episode)
            assert bool(episode.undistorted) == (condition == DARK)
            episode.end(True)
    found = EpisodesFolder.read(run.path)
    why = "no picture of it was distorted: no picture of top was sent, only of front, wrist"
    assert [one.why for one in found.pairs.broken] == [why]
    assert (found.pairs.kept, found.pairs.alone) == (frozenset(), 0)
    record = next(record for record in found.records() if record.case.level)
    assert (record.error_code, record.decision, record.success) == (ErrorCode.NOT_PAIRED, None, None)
    assert record.error_message == f"no pair: {why}"
    trial = json.loads((run.path / "trials" / record.id / "trial.json").read_text())
    assert trial["decision"]["why"] == why
    assert trial["notes"][0].startswith("3 observations, the first at step 0, passed undistorted: no picture of top")
    (said,) = (line for line in episode_notes(found.about, found.records()) if "no pair" in line)
    assert said == f"1 of 1 distorted episode is no pair and in no number here: {why}. It is {record.id}."


def test_observations_that_pass_undistorted_are_a_note_where_others_were_distorted(tmp_path: Path) -> None:
    design = DESIGN.model_copy(update={"distort": EpisodePart(cameras=("top", "wrist"))})
    with EpisodesRun.create(tmp_path, design, "run") as run:
        for condition in (Condition(), DARK):
            episode = run.begin("a", "push-v3", 0, condition)
            act(episode)
            episode.passed(3, "it cannot be read")
            episode.end(True)
    found = EpisodesFolder.read(run.path)
    assert len(found.pairs.kept) == 1
    notes = {past.condition.level: past.end["notes"] for past in found.episodes if past.end}
    one = "1 observation, the first at step 3, passed undistorted: it cannot be read"
    assert notes == {0: [], 5: [one, "no picture was sent of top"]}


def test_an_episode_that_is_over_before_its_first_distorted_step_counts(tmp_path: Path) -> None:
    design = DESIGN.model_copy(update={"distort": EpisodePart(steps=(7,))})
    with EpisodesRun.create(tmp_path, design, "run") as run:
        for condition in (Condition(), DARK):
            episode = run.begin("a", "push-v3", 0, condition)
            act(episode)
            episode.end(True)
    assert len(EpisodesFolder.read(run.path).pairs.kept) == 1


def test_scenes_that_differ_between_agents_are_named(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        for agent, shift in (("a", 0), ("b", 1)):
            for scene in (0, 1):
                episode = run.begin(agent, "push-v3", scene)
                act(episode, scene=scene + shift * scene)
                episode.end(True)
    assert different_scenes(EpisodesFolder.read(run.path).episodes) == [("push-v3", 1)]
    assert json.loads((run.path / "run.json").read_text())["scenes_that_differ_between_agents"] == ["push-v3.1"]


def test_the_hash_is_of_all_cameras_their_names_shapes_and_bytes() -> None:
    seen = pictures(0)
    digest = frame_sha256(seen)
    assert frame_sha256(dict(reversed(seen.items()))) == digest
    assert frame_sha256({name: np.asfortranarray(pixels) for name, pixels in seen.items()}) == digest
    others = [
        {"front": seen["wrist"], "wrist": seen["front"]},
        {"front": seen["front"]},
        {name: pixels.reshape(64, 48, 3) for name, pixels in seen.items()},
        {**seen, "front": seen["front"] ^ 1},
    ]
    assert len({frame_sha256(other) for other in others} | {digest}) == 5
    assert 0 <= scene_of_frame(digest) < 2**48


@pytest.fixture
def unended(tmp_path: Path) -> Path:
    """A run of two scenes without any result."""
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        for _ in range(3):
            for scene in range(2):
                episode = run.begin("policy", "Push V3", scene)
                act(episode)
                episode.end(None, "the connection closed")
    return tmp_path / "run"


def joined(run: Path, name: str, text: str) -> Joined:
    table = run.parent / name
    table.write_text(text)
    with EpisodesRun.open(run) as opened:
        return join(opened, table)


def test_success_comes_later_by_number_and_a_second_time_changes_nothing(unended: Path) -> None:
    table = "episode,success\n0,true\n1,0\n3,success\n"
    assert joined(unended, "t.csv", table) == Joined(new=3, known=0, left=3)
    journal, records = (unended / "episodes.jsonl").read_bytes(), EpisodesFolder.read(unended).records()
    assert sum(bool(record.success) for record in records) == 2
    assert {(record.success, record.error_message) for record in records} == {
        (True, ""),
        (False, ""),
        (False, "the connection closed"),
    }
    assert joined(unended, "t.csv", table) == Joined(new=0, known=3, left=3)
    assert (unended / "episodes.jsonl").read_bytes() == journal
    assert EpisodesFolder.read(unended).records() == records
    trial = next(unended.glob("trials/policy.*.0.reference.0/trial.json"))
    assert json.loads(trial.read_text())["success"] is True


def test_success_comes_later_by_task_scene_and_condition(unended: Path) -> None:
    rows = [
        {"task": "Push V3", "scene": scene, "distortion": name, "level": level, "success": level < 3}
        for scene in (0, 1)
        for name, level in (("reference", 0), ("jpeg", 2), ("jpeg", 5))
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    assert joined(unended, "t.jsonl", text) == Joined(new=6, known=0, left=0)
    records = EpisodesFolder.read(unended).records()
    assert {record.case.level: record.success for record in records} == {0: True, 2: True, 5: False}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("episode,success\n0,true\n77,true\n", "line 3: the run has no recorded episode with episode 77"),
        ("episode,success\n0,maybe\n", "line 2: success must be true or false, got 'maybe'"),
        ("episode,success\n0,true\n0,false\n", "line 3: .* has another success in a line before"),
        ("task,success\nPush V3,true\n", "line 2: needs the number of the episode, or its task and scene"),
        ("task,scene,success\nPush V3,0,true\n", "3 recorded episodes .*: add the column agent or distortion or"),
        ("task,scene,level,success\nPush V3,x,0,true\n", "line 2: scene must be a whole number, got 'x'"),
        ("number,success\n0,true\n", "number"),
        ("episode\n0\n", "success"),
    ],
)
def test_a_wrong_table_is_refused_at_its_line_and_nothing_is_entered(unended: Path, text: str, sentence: str) -> None:
    before = (unended / "episodes.jsonl").read_bytes()
    with pytest.raises(InputError, match=sentence):
        joined(unended, "t.csv", text)
    assert (unended / "episodes.jsonl").read_bytes() == before


def test_a_table_that_contradicts_the_program_is_refused(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        carry_out(run, range(1), 1)
    with pytest.raises(InputError, match=r"\(episode 0\) has another success in the run already"):
        joined(run.path, "t.csv", "episode,success\n0,false\n")
    assert joined(run.path, "t.csv", "episode,success\n0,true\n") == Joined(0, 1, 0)


def test_a_broken_pair_has_no_score_in_the_record_and_keeps_its_success_beside_it(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        for condition in (DARK, Condition()):  # the undistorted one may come later
            episode = run.begin("a", "push-v3", 0, condition)
            act(episode, scene=condition.level)
            episode.end(True)
    found = EpisodesFolder.read(run.path)
    broken, kept = found.records()
    assert (broken.outcome, broken.error_code, broken.success) == (Outcome.INFRASTRUCTURE, ErrorCode.NOT_PAIRED, None)
    assert broken.error_message.startswith("no pair: its first undistorted pictures differ")
    assert kept.success
    assert [(one.condition, one.episodes, one.successes) for one in found.successes] == [
        ("jpeg 5", 1, 1),
        ("reference", 1, 1),
    ]
    trial = json.loads((run.path / "trials" / broken.id / "trial.json").read_text())
    assert trial["success"] is True
    with EpisodesRun.open(run.path) as again:
        assert again.begin("a", "push-v3", 0).condition == Condition("jpeg", 2), "it is not given again"


def test_records_of_two_programs_that_call_their_scenes_alike_are_not_merged(tmp_path: Path) -> None:
    for name, shift in (("one", 0), ("other", 1), ("same", 0)):
        with EpisodesRun.create(tmp_path, DESIGN, name) as run:
            episode = run.begin(name, "push-v3", 0)
            act(episode, scene=shift)
            episode.end(True)
    with ResultStore(tmp_path / "all.sqlite") as target:
        for name in ("one", "same"):
            with ResultStore(tmp_path / name, read_only=True) as source:
                merge(source, target)
        with (
            ResultStore(tmp_path / "other", read_only=True) as source,
            pytest.raises(InputError, match=r"case 'push-v3\.0\.reference\.0' is in the record with reference_image"),
        ):
            merge(source, target)
        assert target.experiments() == ["one", "same"]
