"""The first sentence of a page of twins, and the picture of an arm that stays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np

from merton.perception.distortion.setting import Setting
from merton.statistics.intervals import Interval
from merton_studies.twins.finding import twins_finding
from merton_studies.twins.page import paths
from merton_studies.twins.summary import SettingSummary


def under(distortion: str, left: float, policy: str = "servo", most_cm: float = 8.0) -> SettingSummary:
    trials: Any = (None,) * 8
    return SettingSummary(
        policy, Setting(distortion, 3), trials, 4, left, Interval(left / 2, 1.0), {}, 1.0, None, 1.0, most_cm
    )


def test_the_worst_distortion_of_each_policy_is_named_with_n_and_interval() -> None:
    text = twins_finding([under("jpeg", 0.25), under("gaussian_blur", 0.5), under("jpeg", 0.5, "glance")])
    assert text == (
        "servo would have gone elsewhere most often under gaussian blur 3: in 50\u00a0% [25, 100] of its trials "
        "(n = 8 in 4 scenes); glance would have gone elsewhere most often under jpeg 3: in 50\u00a0% [25, 100] of its "
        "trials (n = 8 in 4 scenes)."
    )


def test_equal_distortions_are_counted() -> None:
    assert "as under 1 more of 3" in twins_finding([under("jpeg", 0.5), under("fog", 0.5), under("rain", 0.25)])


def test_a_policy_that_never_leaves_and_a_recording_without_trials_say_so() -> None:
    text = twins_finding([under("jpeg", 0.0, most_cm=0.4)])
    assert text.startswith("servo would have gone nowhere else on distorted pictures: at most 0.4 cm away")
    assert twins_finding([]).startswith("No undistorted trial was recorded")


def test_an_arm_that_stays_is_drawn_as_a_point() -> None:
    """Its end lies on its start, and is drawn above it."""
    motion = SimpleNamespace(path=np.zeros((1, 3)))
    twin: Any = SimpleNamespace(reference=motion, motion=motion, away=SimpleNamespace(distance_m=0.0))
    circles = [part.get("class") for part in ElementTree.fromstring(str(paths(twin))).iter("circle")]
    assert circles == ["start", "tolerance", "mark", "mark"] * 2
