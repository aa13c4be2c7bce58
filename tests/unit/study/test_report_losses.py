"""What a report leads with: losses by distortion and task, moving pictures, failures, VLMs, an unfinished run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from fake_run import make_fake_run

from merton.leaderboard.snapshot.store import of_trials
from merton.pages import webp
from merton.pages.words import duration
from merton.results.losses import by_agent
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.study import clips, gallery, sections
from merton.study.headline import headline
from merton.study.losses import by_distortion, by_task
from merton.study.report import write_report
from merton.world.opencv import METADATA


def trial(agent: str, seed: int, distortion: str, succeeded: bool | None, task: str = "pick") -> TrialRecord:
    level = 0 if distortion == "reference" else 5
    outcome = {True: Outcome.SUCCESS, False: Outcome.FAILURE, None: Outcome.INFRASTRUCTURE}[succeeded]
    return TrialRecord("e", agent, TestCase(task, seed, distortion, level), outcome, cognition=0.5, decision=0.5)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "small"
    make_fake_run(directory, distortions=("gaussian_blur", "max_darken"), tasks=("pick", "push"), levels=(5,))
    return directory


def test_a_loss_is_paired_by_scene_and_counts_scenes() -> None:
    """Scene 2 fails undistorted too, so it costs nothing; the fault and the trial without a reference count nowhere."""
    records = [trial("a", seed, "reference", seed < 2) for seed in range(3)]
    records += [trial("a", 0, "jpeg", False), trial("a", 1, "jpeg", True), trial("a", 2, "jpeg", False)]
    records += [trial("a", 0, "blur", False), trial("a", 1, "blur", None), trial("a", 7, "blur", False)]
    (loss,) = by_agent(records).values()
    assert (loss.agent, loss.trials, loss.scenes) == ("a", 4, 3)
    assert (loss.before, loss.after, loss.points) == (0.75, 0.25, 0.5)
    assert loss.interval[0] < loss.points < loss.interval[1]
    blur, jpeg = by_distortion(records, ["a"])
    assert (blur.name, blur.points, blur.losses[0].interval) == ("blur", 1.0, (-1.0, 1.0)), "one scene tells nothing"
    assert (jpeg.name, jpeg.points, jpeg.size) == ("jpeg", pytest.approx(1 / 3), "3 in 3 scenes")
    assert by_distortion(records, ["b"]) == []


def test_groups_and_their_agents_stand_by_what_is_lost() -> None:
    records = [trial(agent, 0, "reference", True, task) for agent in "ab" for task in ("pick", "push")]
    records += [trial("a", 0, "jpeg", True, "pick"), trial("b", 0, "jpeg", True, "pick")]
    records += [trial("a", 0, "jpeg", True, "push"), trial("b", 0, "jpeg", False, "push")]
    groups = by_task(records, ["a", "b"])
    assert [(group.name, [loss.agent for loss in group.losses]) for group in groups] == [
        ("push", ["b", "a"]),
        ("pick", ["a", "b"]),
    ]


def test_an_unfinished_run_says_so_first(run: Path) -> None:
    text = write_report(run, planned=528).read_text(encoding="utf-8")
    assert re.search(r"<h1>18 of 528 trials so far: \w+ loses most under distortion, its success falls from", text)
    assert "The run is unfinished: 18 of 528 trials, so places may still change." in text
    assert ">18 of 528</td>" in text
    for planned in (18, None):
        text = write_report(run, planned).read_text(encoding="utf-8")
        assert "so far" not in text
        assert "unfinished" not in text
    assert headline(of_trials([]), {}, planned=9) == "0 of 9 trials so far: no trial has been recorded yet."


def test_trials_of_agents_that_ignore_the_image_come_last(run: Path) -> None:
    data = trial_data(write_report(run).read_text(encoding="utf-8"))
    agents = [data["texts"][row[1]] for row in data["rows"]]
    assert agents[0] == "servo"
    assert "servo" not in agents[agents.index("hold") :]


def trial_data(text: str) -> dict[str, Any]:
    """The data of the table of trials in a report."""
    return json.loads(re.search(r'id="trial-data">(.*?)</script>', text, re.S)[1])  # type: ignore[index]


def test_cognition_is_that_of_a_vlm_and_agents_that_share_one_count_once() -> None:
    records = [
        replace(trial(agent, seed, "jpeg", True), cognition=score)
        for agent, score in (("a", 0.2), ("b", 0.4), ("c", 0.9))
        for seed in range(2)
    ]
    vlms = {"a": "gaze", "b": "gaze"}
    assert sections.users(vlms, "abc") == {"c": ["c"], "gaze": ["a", "b"]}
    (point,) = sections.series("gaze", 0, sections.of_models(records, vlms), "cognition").points
    assert (point.mean, point.n, point.scenes) == (pytest.approx(0.3), 2, 2)
    assert {record.agent for record in sections.of_models(records, vlms)} == {"gaze", "c"}


def test_reference_runs_that_were_added_are_told_of_in_the_methods_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_fake_run(run, agents=("servo",), distortions=("max_darken",), tasks=("pick",), levels=(5,))
    assert "oracle" not in re.findall(r'<section aria-labelledby="results">.*?</section>', page(run), re.S)[0]
    assert "added for that" not in page(run)
    (run / "references" / "oracle.pick.0.reference.0").mkdir(parents=True)
    (run / "references" / "oracle.pick.0.reference.0" / "trial.json").write_text("{}")
    text = page(run)
    assert "so 1 of its undistorted runs was added for that, in no table and not rated." in text
    assert '<a href="references/">' in text


def page(run: Path) -> str:
    return write_report(run).read_text(encoding="utf-8")


def jpeg(shade: int) -> bytes:
    return cv2.imencode(".jpg", np.full((60, 106, 3), shade, np.uint8))[1].tobytes()


@pytest.mark.skipif(not METADATA, reason="OpenCV before 4.12 writes no moving pictures")
def test_a_clip_shows_both_views_of_every_step_and_its_bytes_repeat() -> None:
    pairs = [(jpeg(30 * step), jpeg(255 - 30 * step)) for step in range(3)]
    content = clips.side_by_side(pairs)
    assert content is not None
    assert content == clips.side_by_side(pairs)
    read, clip = cv2.imdecodeanimation(np.frombuffer(content, np.uint8))
    assert (read, len(clip.frames), list(clip.durations)) == (True, 3, [clips.STEP_MS] * 3)
    first = np.asarray(clip.frames[0])[..., :3]
    assert first.shape[1] == 2 * clips.WIDTH_PX + 6
    assert first[50, 50].mean() < 30 < 225 < first[50, -50].mean(), "undistorted left, distorted right"
    film = webp.animated([np.full((60, 80, 3), shade, np.uint8) for shade in (0, 0, 200, 200, 200)], 10)
    read, clip = cv2.imdecodeanimation(np.frombuffer(film, np.uint8))
    assert list(clip.durations) == [200, 300], "equal pictures in a row are stored once"
    assert clips.side_by_side(pairs[:1]) is None, "one view does not move"
    assert clips.side_by_side([pairs[0], (b"no picture", pairs[0][1])]) is None
    assert len(cv2.imdecodeanimation(np.frombuffer(clips.side_by_side(pairs * 9), np.uint8))[1].frames) == clips.STEPS  # type: ignore[arg-type]


@pytest.mark.skipif(not METADATA, reason="OpenCV before 4.12 writes no moving pictures")
def test_a_card_has_the_views_of_all_steps(run: Path) -> None:
    """The undistorted run of the agent took one step, the run under distortion two."""
    record = trial("servo", 0, "max_darken", False)
    folder = run / "trials" / record.id
    names = {"reference": "00_top_reference.jpg", "distorted": "00_top_distorted.jpg"}
    frames = [{"step": step, "camera": "top", **names} for step in range(2)]
    detail = {"frames": frames, "path": [[0.3, 0.0, 0.3], [0.5, 0.1, 0.1]]}
    clip = gallery._clip(run, record, detail, "top")
    assert clip is not None
    assert clip.startswith("data:image/webp;base64,")
    assert gallery._clip(run, record, detail, "wrist") is None
    assert folder.is_dir()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(277.1, "4 min 37 s"), (12, "12 s"), (3725, "1 h 2 min"), (None, ""), (-1, ""), (float("nan"), ""), ("9", "")],
)
def test_a_duration_is_told_in_words(seconds: object, words: str) -> None:
    assert duration(seconds).replace("\u00a0", " ") == words
