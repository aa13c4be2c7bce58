"""The sensor of the simulated cameras: its laws, its determinism, and that none of it acts unless it is on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from merton.config import validated
from merton.errors import InputError, MissingDependencyError
from merton.experiment.local import LocalPorts
from merton.experiment.plan import ExperimentSpec, single_trial
from merton.experiment.runner import Runner
from merton.perception.camera import d455_intrinsics
from merton.seeding import generator
from merton.simulation import imaging, stereo
from merton.simulation import sensor as sensing
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.sensor import AS_RENDERED, D455, IDEAL, AutoExposure, Exposure, Sensor
from merton.world.observation import Image, Intrinsics

FULL = Intrinsics(400, 250, 640.0, 640.0, 199.5, 124.5)  # a part of the picture at full resolution
NOISE = Sensor(shot_noise=True, read_noise=True)


def flat(light: float, lens: Intrinsics) -> NDArray[np.float32]:
    return np.full((lens.height, lens.width, 3), light, np.float32)


def taken(sensor: Sensor, light: float, exposure: Exposure, lens: Intrinsics = FULL) -> Image:
    return imaging.exposed(sensor, flat(light, lens), lens, exposure, generator("test", light))


# Colour ---------------------------------------------------------------------------------------------------------------


def test_without_any_part_a_picture_is_as_it_is_rendered() -> None:
    values = np.arange(256, dtype=np.uint8).repeat(3).reshape(16, 16, 3)
    lens = d455_intrinsics(16, 16)
    again = imaging.exposed(IDEAL, imaging.linear(values), lens, AS_RENDERED, generator("test"))
    assert np.array_equal(again, values)


@pytest.mark.parametrize("time_s", [1 / 480, 1 / 120, 1 / 30])
@pytest.mark.parametrize("gain", [1.0, 4.0, 16.0])
@pytest.mark.parametrize("lens", [FULL, d455_intrinsics(424, 240)], ids=["full", "424"])
def test_noise_has_the_variance_of_emva_1288(time_s: float, gain: float, lens: Intrinsics) -> None:
    """In electrons, from the law's constants alone, at a tenth of the largest signal.

    The light is a ramp of four steps of the 8 bits, so that rounding adds a twelfth of a step's square.
    """
    exposure = Exposure(time_s, gain)
    step = 2.4 / 1.055 * ((1.055 * 0.1 ** (1 / 2.4)) / 1.055) ** 1.4 / 255  # sRGB's slope at 0.1
    target = 0.1 + step * np.linspace(-2, 2, lens.width, dtype=np.float32)[None, :, None]
    light = np.broadcast_to(target / (6.25 * time_s * gain), (lens.height, lens.width, 3)).astype(np.float32)
    pixels = (640 / lens.fx) ** 2
    electrons = 0.1 / gain * 6309.57 * pixels
    expected = (electrons + 2.512**2 * pixels) / electrons**2 * 0.1**2

    error = imaging.linear(imaging.exposed(NOISE, light, lens, exposure, generator("test", gain))) - target
    assert error.mean() == pytest.approx(0.0, abs=0.05 * step)
    assert error.var() == pytest.approx(expected + step**2 / 12, rel=0.05)


def test_more_light_has_a_better_ratio_of_signal_to_noise_and_more_gain_has_not() -> None:
    def ratio(time_s: float, gain: float) -> float:
        signal = imaging.linear(taken(Sensor(shot_noise=True), 0.2, Exposure(time_s, gain)))
        return float(signal.mean() / signal.std())

    assert ratio(0.032, 2.0) / ratio(0.008, 8.0) == pytest.approx(2.0, rel=0.05), "four times the photons"
    assert ratio(0.008, 8.0) == pytest.approx(ratio(0.008, 4.0), rel=0.05)


def test_vignetting_leaves_the_root_of_the_cosine() -> None:
    lens = d455_intrinsics(640, 400)
    picture = imaging.linear(imaging.exposed(Sensor(vignetting=True), flat(0.5, lens), lens, AS_RENDERED, generator()))
    angle = np.arctan(np.hypot(lens.cx / lens.fx, lens.cy / lens.fy))
    assert picture[0, 0, 0] / picture[200, 320, 0] == pytest.approx(np.sqrt(np.cos(angle)), rel=0.02)
    assert picture[200, 320, 0] == pytest.approx(0.5, rel=0.02)


def test_the_lens_spreads_a_point_and_keeps_its_light() -> None:
    light = np.zeros((41, 41, 3), np.float32)
    light[20, 20] = 1
    spread = imaging.blurred(light, FULL)[:, :, 0]
    assert spread.sum() == pytest.approx(1, rel=1e-5)
    variance = (spread.sum(axis=0) * (np.arange(41) - 20) ** 2).sum()
    assert variance == pytest.approx(0.7**2 + 1 / 12, rel=0.02)


def test_the_auto_exposure_settles_on_its_goal_within_its_limits() -> None:
    dim = AutoExposure().measured(0, 0.3)
    assert (dim.brightness, dim.time_s) == (pytest.approx(1.5), pytest.approx(1 / 30))
    dark = AutoExposure().measured(0, 1e-4)
    assert (dark.time_s, dark.gain) == (pytest.approx(1 / 30), pytest.approx(16))
    glaring = AutoExposure().measured(0, 4.5)
    assert (glaring.time_s, glaring.gain) == (pytest.approx(0.016), 1.0), "a shorter time, no lower gain"


def test_the_auto_exposure_follows_a_lamp_with_a_lag() -> None:
    exposure = AutoExposure()
    exposure.measured(0, 0.45)
    exposure.keep()
    at_once = exposure.measured(0, 0.9).brightness
    later = exposure.measured(250_000_000, 0.9).brightness
    settled = exposure.measured(10_000_000_000, 0.9).brightness
    assert at_once == pytest.approx(1.0), "the first frames of the brighter scene are too bright"
    assert np.log(later) == pytest.approx((1 - np.exp(-1)) * np.log(0.5))
    assert settled == pytest.approx(0.5)
    assert exposure.measured(250_000_000, 0.9).brightness == later, "pictures that are not kept count for nothing"


def test_a_row_is_the_mean_over_its_own_exposure() -> None:
    exposure = Exposure(0.004, 1.0)
    for sensor in (Sensor(motion_blur=True), Sensor(rolling_shutter=True), replace(D455, rolling_shutter=True)):
        times_s = sensing.instants(sensor, exposure, 4000.0)
        weights = sensing.shutter_weights(sensor, exposure, times_s, 120)
        assert weights.sum(axis=1) == pytest.approx(np.ones(120), rel=1e-5)
        middle_s = weights @ times_s
        if not sensor.rolling_shutter:
            assert weights == pytest.approx(np.full_like(weights, 1 / len(times_s)))
            continue
        readout_s = 1 / 60 if not sensor.motion_blur else middle_s[-1] - middle_s[0]
        assert (np.diff(middle_s) >= -1e-9).all(), "rows are exposed from the top to the bottom"
        assert readout_s == pytest.approx(1 / 60, rel=0.15)
    assert len(sensing.instants(D455, exposure, 10.0)) == 1, "less than half a pixel is no motion"
    assert len(sensing.instants(IDEAL, exposure, 1e6)) == 1


# Depth ----------------------------------------------------------------------------------------------------------------


def wall(depth_m: float, lens: Intrinsics) -> tuple[NDArray[np.float32], Image]:
    shape = lens.height, lens.width
    return np.full(shape, depth_m, np.float32), np.full((*shape, 3), 128, np.uint8)


@pytest.mark.parametrize("depth_m", [0.6, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("width", [1280, 424])
def test_the_error_of_depth_grows_with_the_square_of_the_distance(depth_m: float, width: int) -> None:
    lens = d455_intrinsics(width, width * 9 // 16)
    depth, picture = wall(depth_m, lens)
    sensor = Sensor(depth_noise=True)
    error = stereo.measured(sensor, depth, picture, lens.fx, generator("depth")) - depth_m
    assert error.std() == pytest.approx(depth_m**2 * 0.08 / (lens.fx * 0.095), rel=0.05)
    if width == 1280 and depth_m == 4.0:
        assert error.std() < 0.02 * 4.0, "the vendor's promise"


def test_disparities_come_in_steps() -> None:
    lens = d455_intrinsics(640, 480)
    depth = np.linspace(1, 4, lens.width * lens.height, dtype=np.float32).reshape(lens.height, lens.width)
    picture = np.full((*depth.shape, 3), 128, np.uint8)
    steps = stereo.measured(Sensor(quantised_disparity=True), depth, picture, lens.fx, generator())
    disparities = np.unique(32 * lens.fx * 0.095 / steps)
    assert disparities == pytest.approx(np.rint(disparities), abs=1e-3)
    assert np.abs(lens.fx * 0.095 * (1 / steps - 1 / depth)).max() <= 0.5 / 32 + 1e-4


@pytest.mark.parametrize(("size", "nearest_m"), [((1280, 720), 0.483), ((640, 480), 0.290), ((424, 240), 0.160)])
def test_the_nearest_distance_scales_with_the_resolution(size: tuple[int, int], nearest_m: float) -> None:
    lens = d455_intrinsics(*size)
    assert stereo.nearest_m(lens.fx) == pytest.approx(nearest_m, abs=1e-3)
    depth, picture = wall(nearest_m - 0.005, lens)
    sensor = Sensor(nearest_distance=True)
    assert not stereo.measured(sensor, depth, picture, lens.fx, generator()).any()
    assert stereo.measured(sensor, depth + 0.01, picture, lens.fx, generator()).all()


def test_holes_lie_where_one_imager_alone_sees() -> None:
    """A plate before a wall: the wall's band left of it, as wide as their disparities differ, and the left border."""
    lens = d455_intrinsics(640, 480)
    depth, picture = wall(1.824, lens)
    depth[100:300, 300:400] = 0.912  # disparities 20 and 40
    seen = stereo.measured(Sensor(occlusion=True), depth, picture, lens.fx, generator())
    expected = np.zeros(depth.shape, bool)
    expected[:, :20] = True
    expected[100:300, 280:300] = True
    assert np.array_equal(seen == 0, expected)
    assert np.array_equal(seen[seen > 0], depth[seen > 0]), "nothing else is changed"


def test_dark_and_shiny_surfaces_have_no_depth() -> None:
    lens = d455_intrinsics(424, 240)
    depth, picture = wall(1.0, lens)
    picture[50:100, 50:100] = 4
    picture[150:160, 200:210] = 255
    sensor = Sensor(difficult_surfaces=True)
    holes = stereo.measured(sensor, depth, picture, lens.fx, generator()) == 0
    assert holes[50:100, 50:100].all()
    assert holes[150:160, 200:210].all()
    assert holes.sum() == 50 * 50 + 10 * 10
    assert not (stereo.measured(sensor, depth, picture // 8, lens.fx, generator()) == 0)[0:40].any(), "in any light"
    white = np.full_like(picture, 255)
    assert stereo.measured(sensor, depth, white, lens.fx, generator()).all(), "a bright wall is no highlight"


# Cameras --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cell() -> SimulatedCell:
    cell = SimulatedCell()
    cell.reset("place", 4)
    return cell


@pytest.fixture
def cameras(renders: None) -> Iterator[SceneCameras]:
    try:
        made = SceneCameras(212, 120)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    yield made
    made.close()


def test_every_part_acts_alone_and_the_rest_is_untouched(cell: SimulatedCell, cameras: SceneCameras) -> None:
    speeds = np.full(6, 0.5)

    def view(sensor: Sensor) -> tuple[Image, NDArray[np.float32]]:
        cameras.imitate(sensor)
        seen = cameras.render("place", 4, cell.qpos, "side", joint_velocities=speeds)
        assert seen.depth_m is not None
        return seen.color, seen.depth_m

    color, depth_m = view(IDEAL)
    of_depth = {"depth_noise", "quantised_disparity", "occlusion", "nearest_distance", "difficult_surfaces"}
    for part in (field.name for field in fields(Sensor)):
        if part == "nearest_distance":
            continue  # nothing in this view is so near
        changed, moved = view(Sensor(**{part: True}))
        assert np.array_equal(changed, color) == (part in of_depth), part
        assert np.array_equal(moved, depth_m) == (part not in of_depth), part


def test_pictures_of_a_sensor_depend_on_the_scene_and_not_on_the_order(
    cell: SimulatedCell, cameras: SceneCameras
) -> None:
    cameras.imitate(D455)
    first = cameras.render("place", 4, cell.qpos, "top", 10**9)
    cameras.keep_exposure("top")
    cameras.render("place", 4, cell.qpos, "side", 10**9)
    later = cameras.render("place", 4, cell.qpos + 0.01, "top", 2 * 10**9, depth=False)
    cameras.begin_scene()
    again = cameras.render("place", 4, cell.qpos, "top", 7 * 10**9)
    flat = cameras.render("place", 4, cell.qpos, "top", 7 * 10**9, depth=False)
    assert first.depth_m is not None
    assert again.depth_m is not None
    assert first.color.tobytes() == again.color.tobytes() == flat.color.tobytes()
    assert first.depth_m.tobytes() == again.depth_m.tobytes()
    assert first.color.tobytes() != later.color.tobytes()


def test_motion_blurs_the_picture_of_the_camera_on_the_tool_and_the_arm_in_the_others(
    cell: SimulatedCell, cameras: SceneCameras
) -> None:
    """The camera on the tool moves past everything but the fingers; a fixed camera sees the arm alone move."""
    cameras.imitate(Sensor(motion_blur=True))
    turning = np.array([0.6, 0, 0, 0, 0, 0])
    changed = {}
    for camera in ("wrist", "top"):
        view = cameras.render("place", 4, cell.qpos, camera)
        resting = cameras.render("place", 4, cell.qpos, camera, joint_velocities=turning * 1e-3).color
        assert np.array_equal(view.color, resting), "an arm that has settled does not blur"
        moving = cameras.render("place", 4, cell.qpos, camera, joint_velocities=turning).color
        changed[camera] = np.abs(moving.astype(int) - view.color).max(axis=2) > 8
        assert 0.003 < changed[camera].mean() < 0.2, camera
        assert view.depth_m is not None
        near = cv2.dilate((view.depth_m < 0.3).astype(np.uint8), np.ones((9, 9))) > 0
        if camera == "wrist":
            assert changed[camera][~near].any()
            fingers = cv2.erode((view.depth_m < 0.3).astype(np.uint8), np.ones((9, 9))) > 0
            assert fingers.any()
            assert not changed[camera][fingers].any(), "they move with the camera"
        else:
            table = np.s_[:40]  # the rows beyond the hand
            assert not changed[camera][table].any()


@pytest.mark.usefixtures("renders")
def test_an_experiment_names_the_sensor(cell: SimulatedCell) -> None:
    spec, trial = single_trial("servo", "reach", scene=2)
    assert spec.sensor == "ideal"
    values = {**spec.model_dump(), "sensor": "kinect"}
    with pytest.raises(InputError, match="unknown sensor 'kinect'; choose one of: d455, ideal"):
        validated(ExperimentSpec, values, "")
    with LocalPorts() as ports:
        pictures = {}
        for sensor in ("d455", "ideal", "d455"):
            report = Runner(spec.model_copy(update={"sensor": sensor}), "id", ports).run(trial)
            pixels = b"".join(picture.reference.tobytes() for picture in report.pictures)
            assert pictures.setdefault(sensor, pixels) == pixels, "the same bytes in any order of trials"
        assert pictures["ideal"] != pictures["d455"]
