"""The policies that need no model, and the oracle in the simulated cell: it must always succeed."""

from __future__ import annotations

import numpy as np
import pytest
from policy_in_cell import perform
from scipy.spatial.transform import Rotation

from merton.decision.models.base import POLICIES, example_observation
from merton.errors import InputError, UnknownNameError
from merton.execution.gate.waypoints import compose
from merton.simulation.cell import SimulatedCell
from merton.world import motion as motions
from merton.world.geometry import from_rpy, transform
from merton.world.observation import Observation
from merton.world.tasks import TASKS, Poses, push

BUILT_IN = ("oracle", "hold", "plunge")


@pytest.mark.parametrize("task", ["insert", "twist", "pour"])
def test_the_oracle_ends_in_the_same_bytes(task: str, cell: SimulatedCell) -> None:
    """Whatever the cell has simulated before: the props of other tasks, and the same scene."""
    ends = []
    for simulated in (cell, cell, SimulatedCell()):
        simulated.reset(task, 6)
        perform(simulated, POLICIES["oracle"].build())
        ends.append(simulated.data.qpos.tobytes() + simulated.data.qvel.tobytes())
    assert ends[0] == ends[1] == ends[2]


def test_hold_moves_nothing_and_does_not_succeed(cell: SimulatedCell) -> None:
    cell.reset("push", 0)
    before = cell.joints_rad
    perform(cell, POLICIES["hold"].build())
    np.testing.assert_allclose(cell.joints_rad, before, atol=1e-5)
    assert cell.gripper_opening_m == pytest.approx(cell.config.gripper.stroke, abs=1e-3)
    assert not cell.success()


def test_plunge_is_stopped_before_the_table_by_the_planner_and_at_it_by_the_cell(cell: SimulatedCell) -> None:
    cell.reset("reach", 0)
    plunge = POLICIES["plunge"].build()
    (motion,) = perform(cell, plunge)
    assert motion.verdict.stops
    assert motion.verdict.link_b == "table"
    assert cell.contact is None
    assert 0 < cell.base_from_tcp[2, 3] < 0.1
    # Past the gate, straight to the controller: the way a planner with a fault would.
    cell.command_trajectory([1.0], [np.add(cell.joints_rad, [0.0, 0.4, 0.0, 0.0, 0.0, 0.0])])
    cell.advance(10.0)
    assert cell.stopped
    assert cell.contact is not None
    assert cell.contact.link_b == "table"


# The contract ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILT_IN)
def test_policies_accept_their_example_and_keep_no_state(name: str) -> None:
    policy = POLICIES[name].build()
    assert policy.name == name
    example = policy.make_example()
    assert policy.needs_scene == (example.scene is not None)
    assert set(policy.cameras) == set(example.views)
    first = policy.act(example)
    assert first.model == name
    assert first.frame == "base_link"
    second = policy.act(example)
    np.testing.assert_array_equal(first.deltas, second.deltas)


def test_an_unknown_policy_is_named_with_the_choices() -> None:
    assert set(BUILT_IN) <= set(POLICIES)
    with pytest.raises(UnknownNameError, match="oracle"):
        POLICIES["sage"].build()


def test_the_oracle_names_missing_parts() -> None:
    oracle = POLICIES["oracle"].build()
    with pytest.raises(InputError, match="scene"):
        oracle.act(example_observation("pick up the red cube"))
    blind = oracle.make_example()
    with pytest.raises(InputError, match="green cube"):
        oracle.act(Observation(**{**vars(blind), "instruction": "pick up the green cube"}))
    with pytest.raises(InputError, match="juggle"):
        oracle.act(Observation(**{**vars(blind), "instruction": "juggle the red cube"}))
    later = oracle.act(Observation(**{**vars(blind), "step": 1}))
    assert later.done
    assert len(later.deltas) == 0


# Motions --------------------------------------------------------------------------------------------------------------


def test_a_straight_line_arrives_in_bounded_steps() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        start = transform(rng.uniform(-0.5, 0.5, 3), Rotation.random(random_state=rng))
        target = transform(rng.uniform(-0.5, 0.5, 3), Rotation.random(random_state=rng))
        deltas = motions.straight_line(start, target, 0.3)
        assert np.linalg.norm(deltas[:, :3], axis=1).max() <= motions.MAX_TRANSLATION_M + 1e-12
        assert np.linalg.norm(deltas[:, 3:6], axis=1).max() <= motions.MAX_ROTATION_RAD + 1e-12
        assert (deltas[:, 6] == 0.3).all()
        pose = start
        for delta in deltas:
            pose = compose(pose, delta, "base_link")
        np.testing.assert_allclose(pose, target, atol=1e-12)
    assert motions.straight_line(start, start, 1.0).shape == (0, 7)


@pytest.mark.parametrize("skill", ["reach", "push", "pick", "place"])
def test_skills_end_where_they_should_and_keep_their_bounds(skill: str) -> None:
    start = transform((0.45, 0.0, 0.30))
    start[:3, :3] = motions.pointing_down(-np.pi / 2)
    where, target = (0.40, 0.15, 0.0225), (0.60, -0.10, 0.0)
    yaw_rad = 0.4 if skill in ("pick", "place") else None
    poses = Poses(transform(where), yaw_rad, transform(target), "left")
    deltas = TASKS[skill].motion(motions.Motion(start, 1.0), poses).deltas
    assert np.linalg.norm(deltas[:, :3], axis=1).max() <= motions.MAX_TRANSLATION_M + 1e-12
    pose, lowest = start, 1.0
    for delta in deltas:
        pose = compose(pose, delta, "base_link")
        lowest = min(lowest, pose[2, 3])
    np.testing.assert_allclose(pose[:3, 2], [0, 0, -1], atol=1e-12)
    ends = {"reach": (0.40, 0.15, 0.1225), "pick": (0.40, 0.15, 0.17), "place": (0.60, -0.10, 0.14)}
    if skill in ends:
        np.testing.assert_allclose(pose[:3, 3], ends[skill], atol=1e-12)
    else:
        assert pose[0, 3] == pytest.approx(0.40)
        assert 0.15 < pose[1, 3] < 0.15 + push.PUSH_M
    assert deltas[-1, 6] == {"reach": 1.0, "push": 0.0, "pick": 0.0, "place": 1.0}[skill]
    assert lowest >= (0.1 if skill == "reach" else motions.GRASP_HEIGHT_M - 1e-12)


def test_fingers_are_square_to_the_object_with_the_least_turn() -> None:
    for now in np.linspace(-3, 3, 13):
        hand = from_rpy((0, 0, 0), (np.pi, 0, now))
        assert motions.finger_yaw(hand, None) == pytest.approx(now)
        for object_yaw in np.linspace(-3, 3, 13):
            yaw = motions.finger_yaw(hand, object_yaw)
            assert abs(yaw - now) <= np.pi / 4 + 1e-9
            assert np.sin(2 * (yaw - object_yaw)) == pytest.approx(0.0, abs=1e-9)
            np.testing.assert_allclose(motions.pointing_down(yaw)[:, 0], [np.cos(yaw), np.sin(yaw), 0], atol=1e-12)
