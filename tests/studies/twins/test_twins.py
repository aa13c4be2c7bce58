"""Twins: the gate's motion of a chunk without a robot, departures, and predictions against what is executed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from merton.decision.models.base import POLICIES
from merton.errors import ErrorCode, InputError, InvalidActionError
from merton.experiment.plan import single_trial
from merton.perception.distortion import LEVELS, all_distortions
from merton.perception.distortion.setting import UNDISTORTED, Setting, setting_of
from merton.perception.distortion.stream import DistortionSetting
from merton.results.records import Outcome
from merton.world.action import ActionChunk
from merton.world.cell import load_cell
from merton.world.geometry import transform
from merton.world.observation import Observation
from merton_studies.twins import executed, twin
from merton_studies.twins.agreement import Checked, left, lost
from merton_studies.twins.executed import WatchedPorts, pairs_of, recorded_run
from merton_studies.twins.motion import CARRIED_OUT, CUT_SHORT, REFUSED, STOPPED, PaperRobot, departure
from merton_studies.twins.recorded import RecordedTrial
from merton_studies.twins.replay import _paired, replay
from merton_studies.twins.summary import distance_interval
from merton_studies.twins.twin import TwinDesign, twins_of

FLAT = Setting("hsv_saturation", 5)
"""Takes the colours away, by which the small policies know the things."""
SLIGHT = Setting("gaussian_blur", 1)
NOISE = Setting("white_noise", 3)


@pytest.fixture(scope="module")
def robot() -> PaperRobot:
    return PaperRobot(load_cell())


@pytest.fixture(scope="module")
def ports(renders: None) -> Iterator[WatchedPorts]:
    """One cell for all tests."""
    with WatchedPorts() as made:
        yield made


def chunk(*steps: tuple[float, float, float], gripper: float = 1.0) -> ActionChunk:
    return ActionChunk(np.array([[*step, 0.0, 0.0, 0.0, gripper] for step in steps]), 0.2)


def test_a_setting_is_a_type_and_a_level() -> None:
    assert setting_of("gaussian_blur@3") == Setting("gaussian_blur", 3)
    assert setting_of("01@3") == Setting("gaussian_blur", 3)
    assert setting_of("frozen@5") == Setting("frozen", 5)
    assert setting_of("jpeg@0") == UNDISTORTED
    every = [Setting(name, level) for name in all_distortions() for level in LEVELS[1:]]
    assert [setting_of(one.name) for one in every] == every


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gaussian_blur", "TYPE@LEVEL"),
        ("@3", "TYPE@LEVEL"),
        ("gaussian_blur@6", "0, 1, 2, 3, 4, 5"),
        ("gaussian_blur@2.5", "0, 1, 2, 3, 4, 5"),
        ("gausian_blur@3", "gaussian_blur"),
    ],
)
def test_another_setting_is_one_sentence(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        setting_of(text)


def test_the_motion_of_a_chunk_is_what_the_gate_lets_through(robot: PaperRobot) -> None:
    home, opening_m = robot.cell.home_joints, robot.gripper.stroke_m
    whole = robot.motion(chunk((0.02, 0, 0), (0.02, 0, 0), gripper=0.0), home, opening_m)
    assert (whole.verdict, whole.executed, whole.code) == (CARRIED_OUT, 2, 0)
    assert whole.path[-1] - whole.path[0] == pytest.approx([0.04, 0, 0], abs=1e-6)
    assert whole.gripper_open == 0.0
    long = robot.motion(chunk((0.02, 0, 0), (0.2, 0, 0)), home, opening_m)
    assert (long.verdict, long.executed, long.code) == (CUT_SHORT, 1, ErrorCode.STEP_LIMIT)
    down = robot.motion(chunk(*[(0, 0, -0.05)] * 12), home, opening_m)
    assert (down.verdict, down.code) == (STOPPED, ErrorCode.COLLISION)
    assert 0 < down.executed < 12
    assert down.path[-1][2] > 0
    absurd = robot.motion(chunk((9.0, 0, 0)), home, opening_m)
    assert (absurd.verdict, absurd.executed, len(absurd.path)) == (REFUSED, 0, 1)


def test_fingers_that_met_a_thing_hold_it(robot: PaperRobot) -> None:
    """A cylinder as wide as the recorded opening, from the grasp down to the table, must not be pressed into it."""
    home, opening_m = robot.cell.home_joints, robot.gripper.stroke_m
    down = chunk(*[(0, 0, -0.04)] * 6)
    grasp = ActionChunk(np.vstack([down.deltas, chunk((0, 0, 0), *[(0, 0, -0.02)] * 2, gripper=0.0).deltas]), 0.2)
    empty, holding = (robot.motion(grasp, home, opening_m, least_m) for least_m in (0.0, 0.045))
    assert empty.executed > holding.executed
    assert (holding.verdict, holding.gripper_open) == (STOPPED, 0.0)


def test_a_departure_is_the_larger_of_path_and_end() -> None:
    there_and_back = [[0, 0, 0], [0.3, 0, 0], [0, 0, 0]]
    there = [[0, 0, 0], [0.3, 0, 0]]
    away = departure(there_and_back, transform(), there, transform((0.3, 0, 0)))
    assert (away.path_m, away.end_m, away.distance_m) == pytest.approx((0.0, 0.3, 0.3))
    assert away.has_left
    aside = departure([[0, 0, 0], [0.1, 0.019, 0], [0.3, 0, 0]], transform((0.3, 0, 0)), there, transform((0.3, 0, 0)))
    assert (aside.end_m, aside.has_left) == (0.0, False)
    assert aside.path_m == pytest.approx(0.019)


@pytest.fixture(scope="module")
def trials(ports: WatchedPorts) -> dict[str, tuple[RecordedTrial, list[executed.Pair]]]:
    """A policy with one look and one that looks again: their undistorted push and its pairs."""
    found = {}
    for policy, settings in (("glance", (FLAT, NOISE)), ("servo", (FLAT,))):
        spec, _ = single_trial(policy, "push", seed=7)
        pairs = pairs_of(ports, spec, "push", 0, settings)
        found[policy] = pairs[0].trial, pairs
    return found


@pytest.mark.usefixtures("renders")
def test_the_policy_repeats_itself_on_the_pictures_it_saw(trials) -> None:
    """Colour and depth, one look and several: without loss the undistorted twin is the recorded chunk, bit for bit."""
    for policy, (trial, _) in trials.items():
        twins = twins_of(trial, policy, (), TwinDesign(seed=7))
        assert [each.step for each in twins] == list(range(len(trial.decisions)))
        assert all(each.is_same and each.away.distance_m == 0 for each in twins)
    assert [len(trial.decisions) for trial, _ in trials.values()] == [1, 2]


def test_a_twin_is_shown_the_picture_of_the_trial(trials, robot: PaperRobot) -> None:
    """Its seeds are those of the executed trial, so noise is the same, and the first motion too."""
    _, (flat, noise) = trials["glance"]
    for pair in (flat, noise):
        planned, run = pair.twin.farthest.motion, pair.first_chunk
        assert np.array_equal(planned.path, robot.motion(run, *start(pair.trial)).path)
    other = twins_of(flat.trial, "glance", (NOISE,), TwinDesign(seed=8))[-1]
    assert not np.array_equal(other.motion.path, noise.twin.farthest.motion.path)


def start(trial: RecordedTrial) -> tuple[np.ndarray, float, float]:
    first = trial.decisions[0]
    return first.joints_rad, first.gripper_opening_m, first.least_opening_m


def test_a_twin_leaves_where_the_executed_trial_does(trials) -> None:
    flat, noise = (pair.checked() for pair in trials["glance"][1])
    assert flat.open_loop
    assert (flat.predicted_cm > 2, flat.executed_cm > 2, flat.reference_success, flat.success) == (1, 1, 1, 0)
    assert (noise.predicted_cm < 2, noise.executed_cm < 2, noise.success) == (1, 1, 1)
    assert not trials["servo"][1][0].checked().open_loop


def test_a_jpeg_moves_the_policy(ports: WatchedPorts) -> None:
    """By less than a millimetre without distortion, and with a slight blur by less than the tolerance."""
    spec, _ = single_trial("glance", "push", seed=7)
    trial, _ = recorded_run(ports, spec, "push", 0)
    as_jpeg = replace(trial, decisions=tuple(ports.from_jpeg))
    (pair,) = pairs_of(ports, spec, "push", 0, (SLIGHT,))
    undistorted = twins_of(as_jpeg, "glance", (), TwinDesign(seed=7))[0]
    assert not undistorted.is_same
    assert 0 < undistorted.away.distance_m < 1e-3
    assert pair.from_jpeg.left_at is None


def test_another_policy_is_asked_once_and_compared_with_itself(trials) -> None:
    trial, _ = trials["servo"]
    twins = twins_of(trial, "glance", (FLAT,), TwinDesign(seed=7))
    assert [(each.setting, each.step) for each in twins] == [(UNDISTORTED, 0), (FLAT, 0)]
    assert twins[0].away.distance_m == 0
    assert twins[1].reference is twins[0].motion


def test_the_gate_of_images_and_the_policy_may_refuse(trials, monkeypatch) -> None:
    trial, _ = trials["glance"]
    refused = twins_of(trial, "glance", (), TwinDesign(7, "merton-nr", 6.0))[0].motion
    assert (refused.verdict, refused.code, len(refused.path)) == (REFUSED, ErrorCode.IMAGE_QUALITY, 1)
    for each in twins_of(trial, "glance", (FLAT,), TwinDesign(7, "merton-nr", 6.0)):
        assert each.away.distance_m == 0, "the recorded arm stood still, too"

    def cannot(*_: object) -> ActionChunk:
        raise InvalidActionError("the model sees nothing")

    monkeypatch.setattr(twin, "decided", cannot)
    refused = twins_of(trial, "glance", (), TwinDesign(7))[0].motion
    assert (refused.verdict, refused.code, refused.why) == (REFUSED, ErrorCode.INVALID_ACTION, "the model sees nothing")


def test_a_policy_that_keeps_a_state_has_no_twins(tmp_path, monkeypatch) -> None:
    keeps = POLICIES["glance"].model_copy(update={"name": "keeps", "stateful": True})
    monkeypatch.setitem(POLICIES._entries, "keeps", keeps)
    with pytest.raises(InputError, match="'keeps' keeps a state from call to call, and twins are asked about single"):
        replay(tmp_path, [], "keeps")


def test_two_failures_of_a_policy_are_no_agreement(trials, monkeypatch) -> None:
    """Another policy than the recorded one is compared with its own motion: without one there is no pair."""
    trial, _ = trials["servo"]
    whole = twins_of(trial, "glance", (FLAT,), TwinDesign(seed=7))
    assert _paired(whole) == (whole, [])
    asked = twin.decided

    def fails_first(policy: str, observation: Observation) -> ActionChunk:
        monkeypatch.setattr(twin, "decided", asked)
        raise InvalidActionError("the model sees nothing")

    monkeypatch.setattr(twin, "decided", fails_first)
    kept, notes = _paired(
        [
            *twins_of(trial, "glance", (FLAT,), TwinDesign(seed=7)),
            *(replace(one, trial=replace(trial, id="other")) for one in whole),
        ]
    )
    assert {one.trial.id for one in kept} == {"other"}
    assert notes == [
        "trials without an action of glance on their undistorted pictures, and so without twins: 1, the first "
        "because: the model sees nothing"
    ]

    def fails(*_: object) -> ActionChunk:
        raise InvalidActionError("the model sees nothing")

    monkeypatch.setattr(twin, "decided", fails)
    with pytest.raises(InvalidActionError, match="glance gave no action in any of 2 decisions: the model sees nothing"):
        _paired(twins_of(trial, "glance", (FLAT,), TwinDesign(seed=7)))


def test_pictures_that_are_missing_are_named(trials) -> None:
    trial, _ = trials["servo"]
    decision = trial.decisions[0]
    blind = replace(trial, decisions=(replace(decision, pictures={}),))
    with pytest.raises(InputError, match="no picture of the camera 'top'"):
        twins_of(blind, "servo", (), TwinDesign())
    flat = {name: replace(picture, depth=None) for name, picture in decision.pictures.items()}
    with pytest.raises(InputError, match="no depth of the camera"):
        twins_of(replace(trial, decisions=(replace(decision, pictures=flat),)), "servo", (), TwinDesign())


def test_a_fault_of_time_needs_an_earlier_picture(trials) -> None:
    """A frozen camera shows the first picture at the second step, where the recorded arm has moved on."""
    trial, _ = trials["servo"]
    undistorted, frozen = (
        [
            each
            for each in twins_of(trial, "servo", (Setting("frozen", 5),), TwinDesign(7))
            if each.setting.level == level
        ]
        for level in (0, 5)
    )
    assert np.array_equal(frozen[0].motion.path, undistorted[0].motion.path)
    assert not np.array_equal(frozen[1].motion.path, undistorted[1].motion.path)


def test_a_fault_of_depth_leaves_colour_alone(trials) -> None:
    trial, _ = trials["servo"]
    view = next(iter(twin.true_views(trial, trial.decisions[0], "servo", load_cell()).values()))
    faulty = DistortionSetting("depth_holes", 5, 1).apply_to(view)
    assert faulty.color is view.color
    assert not np.array_equal(faulty.depth_m, view.depth_m)


def checked(scene: str, predicted_cm: float, executed_cm: float, success: bool = True, able: bool = True) -> Checked:
    return Checked(
        "p", scene, True, "jpeg", 1, predicted_cm, predicted_cm, executed_cm, able, success, CARRIED_OUT, False
    )


def test_agreement_is_counted_by_hand() -> None:
    pairs = [
        checked("a", 9.0, 8.0, success=False),
        checked("a", 9.0, 1.0),
        checked("b", 0.1, 5.0, success=False),
        checked("b", 0.1, 0.2),
        checked("c", 0.1, 0.1, success=False, able=False),
    ]
    found = left(pairs)
    assert [share.value for share in (found.agreement, found.sensitivity, found.specificity, found.yes)] == [
        3 / 5, 1 / 2, 2 / 3, 2 / 5,
    ]  # fmt: skip
    assert (found.agreement.n, found.agreement.scenes) == (5, 3)
    low, high = found.agreement.interval
    assert 0 < low < 3 / 5 < high < 1
    assert left(pairs, 20.0).agreement.value == 1.0
    assert math.isnan(left(pairs, 20.0).sensitivity.value)
    able = lost(pairs)
    assert (able.agreement.n, able.agreement.value, able.sensitivity.value) == (4, 1 / 2, 1 / 2)


def test_a_mean_distance_has_an_interval_by_scene() -> None:
    """Two scenes with the means 1 and 3: Student's quantile of one degree of freedom times their standard error."""
    assert distance_interval([1.0, 1.0], ["a", "a"]) is None
    low, high = distance_interval([1.0, 1.0, 3.0, 3.0], ["a", "a", "b", "b"])
    assert (low, high) == pytest.approx((0.0, 2.0 + 12.7062047), abs=1e-6)


def test_outcomes_are_in_the_order_of_the_message() -> None:
    assert [outcome.value for outcome in Outcome] == [
        "success", "failure", "emergency_stop", "invalid_action", "infrastructure", "abstained",
    ]  # fmt: skip
