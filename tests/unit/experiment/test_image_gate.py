"""The gate of images: its rule, and what becomes of a trial, a record and a board when an image is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from merton.config import load
from merton.errors import ErrorCode, InputError
from merton.execution.gate.image_quality import ImageQuality, quality_verdict
from merton.experiment.local import LocalPorts
from merton.experiment.plan import ExperimentSpec, single_trial
from merton.experiment.runner import Runner
from merton.leaderboard.snapshot.store import of_trials
from merton.leaderboard.snapshot.terminal import render_snapshot
from merton.perception.quality import measure
from merton.results.metrics import match_scores
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.study.execution import select
from merton.study.stages import stages


def sharp(value: float) -> ImageQuality:
    return ImageQuality(value, "sharpness", higher_is_better=True)


def blurred(value: float) -> ImageQuality:
    return ImageQuality(value, "blur", higher_is_better=False)


@pytest.mark.parametrize(
    ("images", "code", "says"),
    [
        ({"top": sharp(0.5), "wrist": sharp(0.9)}, ErrorCode.OK, ""),
        ({"top": sharp(0.9), "wrist": sharp(0.499)}, ErrorCode.IMAGE_QUALITY, "camera 'wrist' has the quality 0.499"),
        ({"top": blurred(0.5)}, ErrorCode.OK, ""),
        ({"top": blurred(0.501)}, ErrorCode.IMAGE_QUALITY, "worse than min_image_quality 0.5"),
        ({"top": sharp(float("nan"))}, ErrorCode.IMAGE_QUALITY, "the quality nan"),
        ({"top": sharp(0.1), "wrist": None}, ErrorCode.STALE, "camera 'wrist' is not known"),
        ({}, ErrorCode.OK, ""),
        (None, ErrorCode.STALE, "does not name the images"),
    ],
)
def test_every_image_of_a_chunk_must_be_known_and_good_enough(
    images: dict[str, ImageQuality | None] | None, code: ErrorCode, says: str
) -> None:
    verdict = quality_verdict(0.5, images)
    assert verdict.code is code
    assert says in verdict.message


@pytest.mark.usefixtures("renders")
def test_a_trial_on_bad_images_is_abstained_from_before_anything_moves() -> None:
    spec, trial = single_trial("servo", "reach", "gaussian_blur", 5)
    gated = spec.model_copy(update={"min_image_quality": 0.6, "quality_metric": "blur_effect"})
    with LocalPorts() as ports:
        report = Runner(gated, "id", ports).run_single(trial, lambda stage, progress: None)
        record = report.record
        assert (record.outcome, record.success, record.error_code) == (Outcome.ABSTAINED, False, 311)
        assert (record.execution, record.progress, len(report.evidence.path)) == (0.0, 0.0, 1)
        assert record.decision is not None, "it was decided, and not carried out"
        assert "of camera 'top' has the quality 0.77" in record.error_message
        view = ports.view(("top",), ())
        distorted, original = view.distorted["top"].color, view.reference["top"].color
        assert measure("blur_effect", distorted) > 0.6 > measure("blur_effect", original)
        blind = replace(ports.act("hold", view.observation("distorted", "reach the red cube"), "distorted"), images={})
        assert ports.execute(blind, view).error_code == 0
        assert ports.execute(replace(blind, images=None), view).error_code == ErrorCode.STALE


def record(agent: str, scene: int, level: int, outcome: Outcome) -> TrialRecord:
    case = TestCase("pick", scene, "jpeg" if level else "reference", level)
    scores = (1.0, 100.0) if outcome is Outcome.SUCCESS else (0.0, 0.0)
    return TrialRecord("e", agent, case, outcome, decision=0.1 * level, progress=scores[0], execution=scores[1])


def trials(refused: Outcome) -> list[TrialRecord]:
    """Two agents in four scenes; `timid` ends all that it does not succeed in with this outcome."""
    won = [record("bold", scene, level, Outcome.SUCCESS) for scene in range(4) for level in (0, 1, 3)]
    lost = [record("bold", scene, 5, Outcome.FAILURE) for scene in range(4)]
    timid = [
        record("timid", scene, level, Outcome.SUCCESS if level < 3 and scene else refused)
        for scene in range(4)
        for level in (0, 1, 3, 5)
    ]
    return [*won, *lost, *timid]


def test_an_abstention_counts_as_no_success_and_apart_from_failures() -> None:
    """For a rating it is the match of a failure, by every metric: abstaining makes no agent look better."""
    failing, abstaining = trials(Outcome.FAILURE), trials(Outcome.ABSTAINED)
    for metric in ("success", "progress", "execution"):
        assert match_scores(abstaining, metric) == match_scores(failing, metric)
    boards = [of_trials(found) for found in (failing, abstaining)]
    rows = [next(row for row in board.agents if row.id == "timid") for board in boards]
    assert rows[0] == replace(rows[1], abstained=0)
    assert (rows[1].trials, rows[1].successes, rows[1].abstained) == (16, 6, 10)
    shown = [render_snapshot(board, 140, everything=True) for board in boards]
    assert ["stained" in text for text in shown] == [False, True]


def test_how_far_stages_agree_is_calculated_without_abstentions() -> None:
    acted = [item for item in trials(Outcome.ABSTAINED) if item.outcome is not Outcome.ABSTAINED]
    abstaining, without, failing = (
        repr(stages(found, ["bold", "timid"])) for found in (trials(Outcome.ABSTAINED), acted, trials(Outcome.FAILURE))
    )
    assert abstaining == without != failing
    gated, others = select(trials(Outcome.ABSTAINED)), select(acted)
    assert gated.id.tolist() == others.id.tolist()
    assert (gated.excluded.abstained, others.excluded.abstained) == (9, 0), "nine of the ten are distorted"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("quality_metric: psnr", "psnr"),
        ("min_image_quality: .nan", "min_image_quality"),
        ("min_image_quality: 0.5\ndistort: {cameras: [top]}", "distort"),
        ("min_image_quality: 0.5\ndistortions: [frozen]", "fault of time"),
    ],
)
def test_an_experiment_with_a_gate_that_cannot_hold_is_refused(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "gated.yaml"
    file.write_text(f"name: gated\nagents: [{{id: servo, vla: servo}}]\ntasks: [reach]\n{text}")
    with pytest.raises(InputError, match=says):
        load(file, ExperimentSpec)
