"""The embedded cell: deterministic, in lockstep, stopped by forbidden contacts, and seen by its cameras."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from merton.errors import InputError, MissingDependencyError, UnknownNameError
from merton.execution.kinematics import base_from_tcp
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.model import OBJECTS, build_model, rest_height_m
from merton.simulation.scene import make_scene
from merton.world.geometry import inverse
from merton.world.tasks import DIRECTIONS, TASKS


def wave(cell: SimulatedCell) -> bytes:
    """A motion with gripper on top, and every byte of the state it leads to."""
    away = np.add(cell.config.home_joints, [0.4, 0.1, -0.1, 0.0, 0.1, 0.5])
    cell.command_trajectory([0.4, 0.8], [away, cell.config.home_joints + 0.05])
    cell.command_gripper(0.05)
    cell.advance(10.0)
    return cell.data.qpos.tobytes() + cell.data.qvel.tobytes() + cell.base_from_tcp.tobytes()


def poke_the_table(cell: SimulatedCell) -> None:
    """Swing the upper arm down until the hand hits the table."""
    cell.command_trajectory([1.0], [np.add(cell.config.home_joints, [0.0, 0.8, 0.0, 0.0, 0.0, 0.0])])
    cell.advance(10.0)


# Scenes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", list(TASKS))
def test_scenes_can_be_worked_in(task: str, cell: SimulatedCell) -> None:
    area = cell.config.objects.area
    for seed in range(60):
        scene = make_scene(task, seed)
        assert scene == make_scene(task, seed)
        names = list(scene.placements)
        assert len(names) == 3
        assert scene.command.object == names[0]
        colors = [name.split()[0] for name in (*names, *scene.mats)]
        assert len(set(colors)) == len(colors)
        spots = np.array([spot[:2] for spot in (*scene.placements.values(), *scene.mats.values())])
        assert (spots >= area.min).all()
        assert (spots <= area.max).all()
        distances = np.linalg.norm(spots[:, None] - spots, axis=2) + np.eye(len(spots))
        assert distances.min() >= 0.10
        assert (scene.command.target in scene.mats) == (task == "place")
        assert all(abs(yaw) <= np.radians(30) for _, _, yaw in scene.placements.values())
        if task == "push":
            ahead = (spots[1:] - spots[0]) @ DIRECTIONS[str(scene.command.direction)]
            beside = np.abs(spots[1:, 0] - spots[0, 0])
            assert not ((ahead > -0.1) & (ahead < 0.15) & (beside < 0.08)).any()


def test_scenes_differ_between_seeds_and_tasks() -> None:
    scenes = [make_scene(task, seed) for task in TASKS for seed in range(20)]
    assert len({tuple(scene.placements.values()) for scene in scenes}) == len(scenes)
    assert {scene.command.object for scene in scenes} >= set(OBJECTS)


def test_a_bad_task_or_seed_is_named(cell: SimulatedCell) -> None:
    with pytest.raises(UnknownNameError, match="place"):
        cell.reset("juggle", 0)
    for seed in (-1, 1.5, True):
        with pytest.raises(InputError, match="seed"):
            make_scene("pick", seed)  # type: ignore[arg-type]


# Determinism and lockstep ---------------------------------------------------------------------------------------------


def test_the_model_is_the_same_every_time() -> None:
    first, second = build_model(), build_model()
    for name in ("geom_size", "geom_rgba", "body_pos", "body_inertia", "actuator_biasprm", "cam_quat"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


def test_same_seed_and_commands_give_the_same_bytes_after_any_trial(cell: SimulatedCell) -> None:
    cell.reset("pick", 7)
    expected = wave(cell)
    other = SimulatedCell()
    other.reset("pick", 7)
    assert wave(other) == expected
    cell.reset("place", 2)
    poke_the_table(cell)
    cell.reset("pick", 7)
    assert wave(cell) == expected
    cell.reset("pick", 8)
    assert wave(cell) != expected


def test_how_the_time_is_sliced_does_not_matter(cell: SimulatedCell) -> None:
    results = []
    for slice_s in (0.002, 0.034, 5.0):
        cell.reset("push", 1)
        cell.command_trajectory([0.3], [cell.config.home_joints + 0.1])
        cell.command_gripper(0.1)
        while cell.busy:
            cell.advance(slice_s)
        results.append(cell.qpos.tobytes())
    assert results[0] == results[1] == results[2]


def test_time_passes_only_while_something_is_commanded(cell: SimulatedCell) -> None:
    cell.reset("reach", 0)
    assert not cell.busy
    before = cell.time_ns
    assert cell.advance(1.0) == 0.0
    assert cell.time_ns == before
    cell.command_trajectory([0.0, 0.5], [cell.joints_rad, cell.joints_rad + 0.05])
    end = before + round((0.5 + cell.config.simulation.settle_s) * 1e9)
    assert cell.busy
    assert cell.advance(0.1) == pytest.approx(0.1)
    cell.advance(99.0)
    assert cell.time_ns == end
    assert not cell.busy
    cell.reset("reach", 1)
    assert cell.time_ns > end  # the clock never goes back


# Motion ---------------------------------------------------------------------------------------------------------------


def test_the_arm_follows_a_trajectory_and_stays_where_it_is_sent(cell: SimulatedCell) -> None:
    cell.reset("reach", 0)
    goal = np.add(cell.config.home_joints, [0.5, -0.2, 0.3, 0.1, -0.2, 0.6])
    cell.command_trajectory([1.0], [goal])
    cell.advance(0.5)
    np.testing.assert_allclose(cell.joints_rad, (cell.config.home_joints + goal) / 2, atol=0.003)
    cell.advance(9.0)
    np.testing.assert_allclose(cell.joints_rad, goal, atol=2e-4)
    np.testing.assert_allclose(cell.joint_velocities, 0.0, atol=1e-3)


def test_the_simulated_tool_is_where_the_kinematics_say(cell: SimulatedCell) -> None:
    cell.reset("reach", 3)
    wave(cell)
    expected = base_from_tcp(cell.joints_rad, cell.config)
    np.testing.assert_allclose(cell.base_from_tcp, expected, atol=1e-9)


def test_a_new_trajectory_replaces_the_old_one_smoothly(cell: SimulatedCell) -> None:
    cell.reset("reach", 0)
    home = cell.config.home_joints
    cell.command_trajectory([1.0], [home + 0.5])
    cell.advance(0.5)
    speed = cell.joint_velocities
    cell.command_trajectory([0.6], [home])
    cell.advance(0.01)
    assert np.abs(cell.joint_velocities - speed).max() < 0.15
    cell.advance(9.0)
    np.testing.assert_allclose(cell.joints_rad, home, atol=2e-4)


def test_the_gripper_takes_the_time_of_a_full_stroke(cell: SimulatedCell) -> None:
    cell.reset("reach", 0)
    stroke, speed = cell.config.gripper.stroke, cell.config.gripper.max_speed
    assert cell.gripper_opening_m == pytest.approx(stroke, abs=1e-4)
    before = cell.time_ns
    cell.command_gripper(0.02)
    cell.advance(9.0)
    assert (cell.time_ns - before) / 1e9 == pytest.approx(stroke / speed + cell.config.gripper.settle_s, abs=0.003)
    assert cell.gripper_opening_m == pytest.approx(0.02, abs=5e-4)
    cell.command_gripper(9.0)
    cell.advance(9.0)
    assert cell.gripper_opening_m == pytest.approx(stroke, abs=5e-4)


def test_commands_that_make_no_sense_are_refused(cell: SimulatedCell) -> None:
    cell.reset("reach", 0)
    home = cell.config.home_joints
    for times, joints in (
        ([], []),
        ([1.0], [home[:5]]),
        ([1.0, 1.0], [home, home]),
        ([np.nan], [home]),
        ([-1.0], [home]),
        ([2e9], [home]),  # its set points would fill the memory
    ):
        with pytest.raises(InputError):
            cell.command_trajectory(times, joints)
    with pytest.raises(InputError):
        cell.command_trajectory([1.0], [home * np.inf])
    with pytest.raises(InputError):
        cell.command_trajectory([1.0], [home], [home[:3]])
    with pytest.raises(InputError):
        cell.command_gripper(float("nan"))
    with pytest.raises(InputError, match="reset"):
        SimulatedCell().success()
    assert not cell.busy


# Objects --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", list(TASKS))
def test_objects_rest_where_they_are_put_and_nothing_succeeds_by_itself(task: str, cell: SimulatedCell) -> None:
    for seed in range(3):
        scene = cell.reset(task, seed)
        wave(cell)
        state = cell.scene_state()
        for name, (x, y, yaw) in scene.placements.items():
            pose = state.find(name).base_from_object
            np.testing.assert_allclose(pose[:3, 3], [x, y, rest_height_m(name, cell.config)], atol=2e-4)
            assert np.arctan2(pose[1, 0], pose[0, 0]) == pytest.approx(yaw, abs=1e-3)
        for name, spot in scene.mats.items():
            np.testing.assert_allclose(state.find(name).base_from_object[:3, 3], [*spot, 0.0])
        assert not cell.success()
        parked = [cell.data.body(name).xpos[2] for name in OBJECTS if name not in scene.placements]
        assert len(parked) == len(OBJECTS) - len(set(OBJECTS) & set(scene.placements))
        assert max(parked) < -3.9


# Forbidden contacts ---------------------------------------------------------------------------------------------------


def test_hitting_the_table_freezes_the_arm_until_it_is_released(cell: SimulatedCell) -> None:
    cell.reset("reach", 0)
    assert cell.contact is None
    assert not cell.stopped
    poke_the_table(cell)
    assert cell.stopped
    assert cell.contact is not None
    assert cell.contact.link_b == "table"
    assert cell.contact.link_a.startswith("gripper_")
    assert cell.contact.force_n > cell.config.simulation.pad_force_limit
    stopped_at = cell.joints_rad
    assert cell.base_from_tcp[2, 3] > -0.01
    np.testing.assert_allclose(cell.joint_velocities, 0.0, atol=0.02)

    assert not cell.command_trajectory([1.0], [cell.config.home_joints])
    assert not cell.command_gripper(0.0)
    assert not cell.busy
    np.testing.assert_array_equal(cell.joints_rad, stopped_at)

    cell.release_stop()
    assert cell.contact is None
    assert not cell.stopped
    assert cell.command_trajectory([1.0], [cell.config.home_joints])
    cell.advance(10.0)
    assert not cell.stopped
    np.testing.assert_allclose(cell.joints_rad, cell.config.home_joints, atol=1e-3)
    poke_the_table(cell)
    assert cell.stopped  # watched again


def test_hitting_a_wall_with_the_arm_is_noticed(cell: SimulatedCell) -> None:
    cell.reset("reach", 0)
    turned = np.add(cell.config.home_joints, [2.0, 0.1, -0.3, 0.2, 0.0, 0.0])
    cell.command_trajectory([2.0], [turned])
    cell.advance(10.0)
    assert not cell.stopped
    cell.command_trajectory([2.0], [np.add(turned, [0.0, 0.9, -1.0, 0.0, 0.0, 0.0])])
    cell.advance(10.0)
    assert cell.contact is not None
    assert cell.contact.link_b == "wall_left"


def test_a_requested_stop_freezes_the_arm_on_the_spot(cell: SimulatedCell) -> None:
    cell.reset("reach", 0)
    cell.command_trajectory([1.0], [cell.config.home_joints + 0.5])
    cell.advance(0.5)
    cell.stop()
    at = cell.joints_rad
    cell.advance(10.0)
    assert cell.stopped
    assert cell.contact is None
    np.testing.assert_allclose(cell.joints_rad, at, atol=0.03)
    cell.reset("reach", 0)
    assert not cell.stopped


# Cameras --------------------------------------------------------------------------------------------------------------


def test_cameras_see_the_objects_where_they_are(cell: SimulatedCell, cameras: SceneCameras) -> None:
    channels = {"red": 0, "green": 1, "blue": 2}
    for seed in range(3):
        cell.reset("place", seed)
        for camera in cameras.names:
            view = cameras.render("place", seed, cell.qpos, camera, stamp_ns=5)
            assert view.color.shape == (240, 424, 3)
            assert view.stamp_ns == 5
            camera_from_base = inverse(view.base_from_camera)
            for thing in cell.scene_state().objects:
                point = camera_from_base @ thing.base_from_object[:, 3]
                u, v = view.intrinsics.project(point[:3])
                column, row = round(float(u)), round(float(v))
                inside = 0 <= column < 424 and 0 <= row < 240
                assert inside, f"{camera} does not see the {thing.name}"
                pixel = view.color[row, column].astype(int)
                color = thing.name.split()[0]
                if color == "yellow":
                    assert min(pixel[0], pixel[1]) > 2 * pixel[2]
                else:
                    others = np.delete(pixel, channels[color])
                    assert pixel[channels[color]] > 1.5 * others.max(), (camera, thing.name, pixel)
                assert view.depth_m is not None
                assert point[2] - 0.04 < view.depth_m[row, column] < point[2] + 0.003


def test_the_wrist_camera_sees_the_whole_area_from_home(cell: SimulatedCell, cameras: SceneCameras) -> None:
    cell.reset("reach", 0)
    view = cameras.render("reach", 0, cell.qpos, "wrist")
    area = cell.config.objects.area
    for x in (area.min[0], area.max[0]):
        for y in (area.min[1], area.max[1]):
            point = inverse(view.base_from_camera) @ [x, y, 0.06, 1.0]
            u, v = view.intrinsics.project(point[:3])
            inside = 0 <= u <= 423 and 0 <= v <= 239
            assert inside, (x, y, u, v)


@pytest.mark.usefixtures("renders")
def test_depth_is_metric_and_follows_the_intrinsics(cell: SimulatedCell) -> None:
    try:
        cameras = SceneCameras(640, 480)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    assert cameras.intrinsics.fx == pytest.approx(384, abs=0.5)
    cell.reset("reach", 0)
    view = cameras.render("reach", 0, cell.qpos, "top")
    cameras.close()
    assert view.depth_m is not None
    u, v = 320, 60  # bare table beyond the objects
    point = view.base_from_camera @ [*view.intrinsics.deproject(u, v, view.depth_m[v, u]), 1.0]
    assert point[2] == pytest.approx(0.0, abs=0.002)
    assert point[:2] == pytest.approx([0.9, 0.0], abs=0.2)


def test_a_view_depends_on_scene_and_configuration_alone(cell: SimulatedCell, cameras: SceneCameras) -> None:
    cell.reset("place", 4)
    first = cameras.render("place", 4, cell.qpos, "side")
    cameras.render("pick", 1, cell.qpos, "top")
    again = cameras.render("place", 4, cell.qpos, "side")
    assert first.color.tobytes() == again.color.tobytes()
    assert first.depth_m is not None
    assert again.depth_m is not None
    assert first.depth_m.tobytes() == again.depth_m.tobytes()
    flat = cameras.render("place", 4, cell.qpos, "side", depth=False)
    assert flat.depth_m is None
    assert flat.color.tobytes() == first.color.tobytes()
    other = cameras.render("pick", 1, cell.qpos, "side")  # no mat there
    assert first.color.tobytes() != other.color.tobytes()
    with pytest.raises(UnknownNameError, match="wrist"):
        cameras.render("place", 4, cell.qpos, "left")
    with pytest.raises(InputError, match="configuration"):
        cameras.render("place", 4, cell.qpos[:8], "top")


def test_the_picture_for_people_has_shadows_and_every_colour(cell: SimulatedCell, cameras: SceneCameras) -> None:
    cell.reset("place", 5)
    for_people = SceneCameras(320, 200, shadows=True, samples=8)
    image = for_people.picture("place", 5, cell.qpos)
    for_people.close()
    assert image.shape == (200, 320, 3)
    assert image.dtype == np.uint8
    saturation = image.max(axis=2).astype(int) - image.min(axis=2)
    assert (saturation > 100).sum() > 100
    assert 60 < image.mean() < 200


def test_cameras_that_are_collected_do_not_change_the_images_of_others(cameras: SceneCameras) -> None:
    qpos = SimulatedCell().qpos
    before = cameras.render("pick", 0, qpos, "top")
    unclosed = SceneCameras()
    unclosed.render("pick", 0, qpos, "top")
    unclosed.cycle = unclosed  # so that the garbage collector finds it, and not at once
    del unclosed
    after = cameras.render("pick", 0, qpos, "top")
    gc.collect()
    after_collection = cameras.render("pick", 0, qpos, "top")
    assert np.array_equal(before.color, after.color)
    assert np.array_equal(before.color, after_collection.color)
    assert np.array_equal(before.depth_m, after_collection.depth_m)
