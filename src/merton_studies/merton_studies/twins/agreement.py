"""Agreement of twins' predictions with executed trials: shares with intervals that are clustered by scene."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton_studies.twins.motion import TOLERANCE_M


@dataclass(frozen=True)
class Checked:
    """One pair of a prediction and its execution.

    Attributes:
        policy: that decided.
        scene: the unit of the intervals, such as "test.4".
        open_loop: whether the recorded run is one look and one chunk.
        distortion, level: of the twin and of the executed trial.
        predicted_cm: distance of the twin from the recorded run.
        jpeg_cm: that of a twin of pictures that were recorded as JPEG.
        executed_cm: of the executed run from the executed undistorted one.
        reference_success, success: whether the undistorted and the executed distorted run did the task.
        verdict: the gate's, on the twin.
        cut: whether the gate cut the executed trial short.
    """

    policy: str
    scene: str
    open_loop: bool
    distortion: str
    level: int
    predicted_cm: float
    jpeg_cm: float
    executed_cm: float
    reference_success: bool
    success: bool
    verdict: str
    cut: bool


@dataclass(frozen=True)
class Share:
    """A share of n pairs in so many scenes with its 95 % interval; NaN and (0, 1) for none."""

    value: float
    interval: Interval
    n: int
    scenes: int


@dataclass(frozen=True)
class PredictionAgreement:
    """Prediction and execution as two answers to one question.

    Attributes:
        agreement: of all pairs, the same answer.
        sensitivity: of the pairs whose executed answer is yes, a predicted yes.
        specificity: of the pairs whose executed answer is no, a predicted no.
        yes: of all pairs, an executed yes.
    """

    agreement: Share
    sensitivity: Share
    specificity: Share
    yes: Share


def left(pairs: Sequence[Checked], tolerance_cm: float = 100 * TOLERANCE_M) -> PredictionAgreement:
    """Has the run left the undistorted one? Both by the same distance and tolerance."""
    answers = [(pair.predicted_cm > tolerance_cm, pair.executed_cm > tolerance_cm) for pair in pairs]
    return _agreement(answers, [pair.scene for pair in pairs])


def lost(pairs: Sequence[Checked], tolerance_cm: float = 100 * TOLERANCE_M) -> PredictionAgreement:
    """Is the task lost that the undistorted run did? Predicted: the twin has left. Other pairs do not count."""
    able = [pair for pair in pairs if pair.reference_success]
    return _agreement(
        [(pair.predicted_cm > tolerance_cm, not pair.success) for pair in able], [pair.scene for pair in able]
    )


def _agreement(answers: Sequence[tuple[bool, bool]], scenes: Sequence[str]) -> PredictionAgreement:
    rows = list(zip(answers, scenes, strict=True))
    return PredictionAgreement(
        _share([(told == done, scene) for (told, done), scene in rows]),
        _share([(told, scene) for (told, done), scene in rows if done]),
        _share([(not told, scene) for (told, done), scene in rows if not done]),
        _share([(done, scene) for (_, done), scene in rows]),
    )


def _share(rows: Sequence[tuple[bool, str]]) -> Share:
    if not rows:
        return Share(math.nan, Interval(0.0, 1.0), 0, 0)
    values, scenes = [float(value) for value, _ in rows], [scene for _, scene in rows]
    return Share(math.fsum(values) / len(values), mean_interval(values, scenes), len(values), len(set(scenes)))
