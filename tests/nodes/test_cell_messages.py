"""The messages that every cell publishes or takes."""

from __future__ import annotations

import numpy as np
import pytest
from merton_interfaces.msg import SafetyState

from merton.errors import InputError
from merton.simulation.cell import Contact
from merton.simulation.scene import make_scene
from merton.world import linkage
from merton.world.cell import ARM_JOINTS
from merton_nodes.cell.messages import arm_state_of, cell_safety, cell_state, motion_to, spline_of
from merton_nodes.ros import conversions as convert

JOINTS = np.linspace(0.1, 0.6, 6)


def test_the_state_of_a_scene() -> None:
    scene = make_scene("push", 2)
    joints = convert.joint_state_message(1_500_000_000, JOINTS, 0 * JOINTS, 0.14)
    state = cell_state(scene, 3, joints, at_rest=True)
    assert (state.task, state.seed, state.scene, state.instruction) == ("push", 2, 3, scene.command.instruction)
    assert (state.header.stamp.sec, state.header.stamp.nanosec, state.header.frame_id) == (1, 500_000_000, "base_link")
    assert state.joints == joints
    assert (list(state.qpos), list(state.objects), state.success, state.at_rest) == ([], [], False, True)


def test_the_state_of_a_varied_scene_names_the_task_with_its_split() -> None:
    scene = make_scene("test-pick", 4)
    joints = convert.joint_state_message(0, JOINTS, 0 * JOINTS, 0.14)
    assert cell_state(scene, 1, joints, at_rest=True).task == "test-pick"


def test_a_contact_comes_before_any_other_reason() -> None:
    stop = cell_safety(0, Contact("wrist_3_link", "table", 7.4), SafetyState.FAULT, "no heartbeat")
    assert (stop.mode, stop.message) == (SafetyState.COLLISION_STOP, "wrist_3_link touched table with 7 N")
    assert (stop.link_a, stop.link_b, stop.force) == ("wrist_3_link", "table", 7.4)
    fault = cell_safety(0, None, SafetyState.FAULT, "no heartbeat")
    assert (fault.mode, fault.message, fault.link_a) == (SafetyState.FAULT, "no heartbeat", "")


def test_a_trajectory_is_read_as_it_was_written() -> None:
    command = motion_to(JOINTS, 0.25)
    assert list(command.joint_names) == list(ARM_JOINTS)
    spline = spline_of(command)
    assert spline.times_s.tolist() == [0.25]
    assert spline.joints_rad.tolist() == [JOINTS.tolist()]
    assert not spline.velocities_rad_s.any()


def test_points_of_different_lengths_are_refused() -> None:
    command = motion_to(JOINTS, 0.25)
    command.points.append(motion_to(JOINTS[:5], 0.5).points[0])
    with pytest.raises(InputError, match="the same count at each time"):
        spline_of(command)


@pytest.mark.parametrize("opening_m", [0.0, 0.045, 0.14])
def test_joint_states_of_a_linkage_have_its_joint_too(opening_m: float) -> None:
    """Merton's own finger joint first; a robot description with the linkage finds the name of Robotiq's driver."""
    plain, linked = (convert.joint_state_message(0, JOINTS, 0 * JOINTS, opening_m, linkage=on) for on in (False, True))
    assert linked.name == [*plain.name, "finger_joint"]
    assert linked.position[-1] == linkage.joint_rad(opening_m)
    assert len(linked.velocity) == len(linked.name)
    for message in (plain, linked):
        joints, found_m = convert.joints_of(message)
        assert joints.tolist() == JOINTS.tolist()
        assert found_m == pytest.approx(opening_m)


def test_the_joint_of_a_linkage_alone_is_enough() -> None:
    """So Gazebo publishes it, and with it the joints that follow."""
    message = convert.joint_state_message(0, JOINTS, 0 * JOINTS, 0.045, linkage=True)
    message.name[6], message.position[6] = "right_outer_knuckle_joint", -message.position[7]
    assert convert.joints_of(message)[1] == pytest.approx(0.045)
    message.position[7] = 2.0
    with pytest.raises(InputError, match="finger_joint must be in"):
        convert.joints_of(message)


def test_joint_values_are_found_by_name_in_any_order() -> None:
    message = convert.joint_state_message(0, JOINTS, 2 * JOINTS, 0.045)
    order = [6, 3, 5, 0, 2, 4, 1]
    for values in ("name", "position", "velocity"):
        setattr(message, values, [getattr(message, values)[index] for index in order])
    joints_rad, speeds_rad_s = arm_state_of(message)
    np.testing.assert_array_equal(joints_rad, JOINTS)
    np.testing.assert_array_equal(speeds_rad_s, 2 * JOINTS)
    message.velocity = []
    assert not arm_state_of(message)[1].any(), "speeds that are not told"
    message.position[1] = float("nan")
    with pytest.raises(InputError, match="joint states are not finite"):
        arm_state_of(message)
    message.name[1] = "elbow"
    for read in (arm_state_of, convert.joints_of):
        with pytest.raises(InputError, match=f"joint states lack {ARM_JOINTS[3]}"):
            read(message)
