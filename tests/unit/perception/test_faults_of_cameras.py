"""Faults of depth and of time: their laws, their place beside the 30 types, and what a model gets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from merton.config import loads
from merton.errors import InputError
from merton.experiment.local import LocalPorts
from merton.experiment.plan import ExperimentSpec, single_trial
from merton.experiment.ports import CellView
from merton.experiment.runner import Runner
from merton.perception.distortion import DEPTH_FAULTS, DISTORTIONS, TEMPORAL_FAULTS, all_distortions, distort
from merton.perception.distortion.depth import FOCAL_BASELINE_PX_M, Depth
from merton.perception.distortion.stream import DistortionSetting
from merton.perception.distortion.temporal import LONGEST_MEMORY, FaultyStream
from merton.world.observation import CameraView, Intrinsics

LEVELS = range(1, 6)
FAULTS = {**DEPTH_FAULTS, **TEMPORAL_FAULTS}
LENS = Intrinsics(64, 48, 50.0, 50.0, 31.5, 23.5)


def wall(height: int = 240, width: int = 424) -> Depth:
    """A tilted wall from 0.8 to 1.2 m, with a corner that has no depth."""
    depth_m = np.linspace(0.8, 1.2, height * width, dtype=np.float32).reshape(height, width)
    depth_m[:20, :30] = 0
    return depth_m


def pictures(count: int) -> list[CameraView]:
    """Views of one camera that tell their number: colour, depth, pose and stamp."""
    views = []
    for number in range(count):
        pose = np.eye(4)
        pose[0, 3] = number
        color = np.full((LENS.height, LENS.width, 3), number, np.uint8)
        depth_m = np.full((LENS.height, LENS.width), 1 + number, np.float32)
        views.append(CameraView("wrist", color, depth_m, LENS, pose, stamp_ns=number))
    return views


def numbers(name: str, level: float, seed: int = 0, count: int = 6) -> list[int]:
    """The number of the colour picture that a model gets at each step."""
    stream = FaultyStream(name, level, seed)
    return [int(stream.next(view).color[0, 0, 0]) for view in pictures(count)]


def test_they_are_families_beside_the_30_types() -> None:
    assert len(DISTORTIONS) == 30
    assert set(all_distortions()) == {*DISTORTIONS, *FAULTS}
    assert not set(DISTORTIONS) & set(FAULTS)
    assert {entry.category for entry in FAULTS.values()} == {"depth", "time"}
    for entry in FAULTS.values():
        assert list(entry.levels) == sorted(set(entry.levels)), entry.name
        assert [entry.value(level) for level in (0, 1, 5)] == [0, entry.levels[0], entry.levels[4]]
        assert entry.value(2.5) == pytest.approx((entry.levels[1] + entry.levels[2]) / 2)
        assert entry.description.endswith(".")


@pytest.mark.parametrize("name", FAULTS)
def test_a_still_image_has_none(name: str) -> None:
    with pytest.raises(InputError, match=f"'{name}' acts on (depth|a succession of pictures), not on a single image"):
        distort(np.zeros((32, 32, 3), np.uint8), name, 3, np.random.default_rng(0))


@pytest.mark.parametrize("name", DEPTH_FAULTS)
def test_a_fault_of_depth_is_worse_at_every_level_and_leaves_colour_and_input_alone(name: str) -> None:
    depth_m, before = wall(), wall()
    color = np.zeros((240, 424, 3), np.uint8)
    errors = []
    for level in LEVELS:
        setting = DistortionSetting(name, level, 3)
        faulty_m = setting.apply_depth("top", depth_m)
        assert np.array_equal(depth_m, before)
        assert faulty_m.dtype == np.float32
        assert faulty_m.shape == depth_m.shape
        assert not faulty_m[:20, :30].any(), "a fault invents no depth"
        assert np.array_equal(faulty_m, setting.apply_depth("top", depth_m)), "equal frames have equal faults"
        assert setting.apply("top", color) is color
        errors.append(float(np.abs(faulty_m - depth_m).mean()))
    assert errors[0] > 0
    assert errors == sorted(set(errors))
    assert DistortionSetting(name, 0).apply_depth("top", depth_m) is depth_m


@pytest.mark.parametrize("width", [424, 640, 1280])
def test_holes_are_the_share_of_the_pixels_that_the_level_says_at_every_width(width: int) -> None:
    depth_m = np.ones((width * 9 // 16, width), np.float32)
    for level in LEVELS:
        holes = DistortionSetting("depth_holes", level, 1).apply_depth("top", depth_m) == 0
        assert holes.mean() == pytest.approx(DEPTH_FAULTS["depth_holes"].value(level), abs=1e-4)
        border = np.count_nonzero(holes[:, 1:] != holes[:, :-1]) / holes.shape[0]
        assert border < 20, "patches, not single pixels: a row meets few of their borders"


def test_quantised_disparities_are_whole_steps_and_the_error_grows_with_the_square_of_the_distance() -> None:
    depth_m = np.linspace(0.3, 4.0, 640 * 64, dtype=np.float32).reshape(64, 640)
    step_px = 0.75
    assert DEPTH_FAULTS["depth_quantization"].value(0.5) == step_px
    faulty_m = DistortionSetting("depth_quantization", 0.5).apply_depth("top", depth_m)
    steps = FOCAL_BASELINE_PX_M / faulty_m / step_px
    assert np.allclose(steps, np.rint(steps), atol=1e-3)
    worst = [float(np.abs(faulty_m - depth_m)[(depth_m > low) & (depth_m < 1.1 * low)].max()) for low in (0.5, 1, 2)]
    assert worst[1] / worst[0] == pytest.approx(4, rel=0.2)
    assert worst[2] / worst[1] == pytest.approx(4, rel=0.2)
    assert worst[1] == pytest.approx(1.1**2 * step_px / FOCAL_BASELINE_PX_M / 2, rel=0.1)


def test_shift_and_scale_are_what_they_say() -> None:
    depth_m = wall()
    known = depth_m > 0
    shifted = DistortionSetting("depth_shift", 5).apply_depth("top", depth_m)
    scaled = DistortionSetting("depth_scale", 4).apply_depth("top", depth_m)
    assert np.allclose((shifted - depth_m)[known], 0.08, atol=1e-6)
    assert np.allclose((scaled / np.where(known, depth_m, 1))[known], 1.08)


@pytest.mark.parametrize("name", TEMPORAL_FAULTS)
@pytest.mark.parametrize("level", [0, 1, 5])
def test_the_first_picture_is_true_and_no_picture_comes_from_the_future(name: str, level: int) -> None:
    for seed in range(20):
        got = numbers(name, level, seed)
        assert got[0] == 0
        assert all(number <= step for step, number in enumerate(got))
        assert got == numbers(name, level, seed), "equal seeds, equal pictures"
        if level == 0:
            assert got == list(range(6))


def test_what_a_model_gets_of_six_pictures() -> None:
    assert numbers("frozen", 5) == [0] * 6
    assert numbers("late", 4) == [0, 0, 1, 2, 3, 4]
    assert numbers("late", 5) == [0, 0, 0, 1, 2, 3]
    for seed in range(30):
        frozen = numbers("frozen", 3, seed)
        assert frozen == [min(step, frozen[-1]) for step in range(6)], "it stops once, for good"
        dropped = numbers("dropped", 4, seed)
        assert all(now in (step, before) for step, (before, now) in enumerate(itertools.pairwise(dropped), 1))
        assert numbers("late", 2, seed) == sorted(numbers("late", 2, seed)), "in order"
    runs = [numbers("out_of_order", 4, seed) for seed in range(30)]
    assert any(run != sorted(run) for run in runs)


@pytest.mark.parametrize("name", TEMPORAL_FAULTS)
def test_a_fault_of_time_shows_more_of_the_past_at_every_level(name: str) -> None:
    ages = []
    for level in LEVELS:
        age = 0.0
        for seed in range(60):
            stream = FaultyStream(name, level, seed)
            for step, view in enumerate(pictures(6)):
                seen = stream.next(view)
                assert seen.depth_m is not None
                age += float(step - (seen.depth_m - 1).mean())
        ages.append(age)
    assert ages[0] > 0
    assert ages == sorted(set(ages))


def test_pose_and_stamp_are_those_of_the_present_and_cameras_fail_on_their_own() -> None:
    stream = FaultyStream("late", 5, 0)
    for view in pictures(4):
        seen = stream.next(view)
        assert (seen.stamp_ns, seen.base_from_camera[0, 3]) == (view.stamp_ns, view.stamp_ns)
    top = [FaultyStream("dropped", 3, seed) for seed in range(20)]
    differ = False
    for stream in top:
        for view in pictures(6):
            other = CameraView("top", view.color, view.depth_m, LENS, view.base_from_camera, view.stamp_ns)
            differ |= stream.next(view).color[0, 0, 0] != stream.next(other).color[0, 0, 0]
    assert differ


def test_torn_pictures_and_late_depth() -> None:
    first, second = pictures(2)
    shares = []
    for seed in range(40):
        stream = FaultyStream("torn", 3, seed)
        stream.next(first)
        seen = stream.next(second)
        assert seen.depth_m is not None
        new_rows = int(seen.color[:, 0, 0].sum())
        for image, offset in ((seen.color[:, :, 0], 0), (seen.depth_m, 1)):
            assert (image[:new_rows] == 1 + offset).all()
            assert (image[new_rows:] == offset).all()
        shares.append(1 - new_rows / LENS.height)
    assert np.mean(shares) == pytest.approx(0.45, abs=0.06)
    assert 0.19 < min(shares) < 0.3
    assert 0.6 < max(shares) < 0.71
    stream = FaultyStream("depth_lag", 4, 0)
    stream.next(first)
    seen = stream.next(second)
    assert seen.color is second.color
    assert seen.depth_m is first.depth_m


def test_memory_does_not_grow_with_the_trial() -> None:
    stream = FaultyStream("frozen", 1, 4)
    for view in pictures(100):
        stream.next(view)
    assert len(stream._true["wrist"]) == LONGEST_MEMORY


BASE = "name: x\nagents: [{id: a, vla: servo}, {id: b, vla: glance}]\ntasks: [reach]\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("distortions: [depth_hole]\n", r"unknown distortion 'depth_hole'; did you mean 'depth_holes'\?"),
        ("distortions: [late]\nmax_steps: 1\n", "'late' acts from step 1 on, and no such step is distorted"),
        ("distortions: [torn]\ndistort: {steps: [0]}\n", "'torn' acts from step 1 on, and no such step"),
        ("distortions: [depth_holes]\ndistort: {stages: [cognition]}\n", "acts on the images of 'decision' alone"),
    ],
)
def test_a_fault_that_no_model_would_see_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        loads(BASE + text, ExperimentSpec, "experiment")


@pytest.mark.parametrize("name", [*DEPTH_FAULTS, "depth_lag"])
def test_a_fault_of_depth_needs_an_agent_with_depth(name: str) -> None:
    text = f"name: x\nagents: [{{id: b, vla: glance}}]\ntasks: [reach]\ndistortions: [{name}]\n"
    with pytest.raises(InputError, match=f"'{name}' acts on depth, which no agent uses; it is used by: .*servo"):
        loads(text, ExperimentSpec, "experiment")
    assert loads(f"{BASE}distortions: [{name}]\n", ExperimentSpec, "experiment").distortions == (name,)


@pytest.fixture(scope="module")
def ports(renders: None) -> Iterator[LocalPorts]:
    with LocalPorts() as ports:
        yield ports


@pytest.mark.usefixtures("renders")
def test_in_one_process_the_servo_gets_the_faulty_depth_in_whole_millimetres(ports: LocalPorts) -> None:
    ports.set_distortion("depth_quantization", 5, 7)
    ports.reset("pick", 0)
    view = ports.view(("top",), ("top",))
    reference, distorted = view.reference["top"], view.distorted["top"]
    assert distorted.color is reference.color
    assert distorted.depth_m is not None
    assert reference.depth_m is not None
    expected = DistortionSetting("depth_quantization", 5, 7).apply_depth("top", reference.depth_m)
    assert np.abs(distorted.depth_m - expected).max() <= 0.0005 + 1e-6
    assert np.allclose(distorted.depth_m * 1000, np.rint(distorted.depth_m * 1000), atol=1e-3)
    assert ports.view(("top",), ()).distorted["top"].depth_m is None


@pytest.mark.parametrize("name", ["depth_holes", "late"])
def test_a_trial_repeats_itself_and_step_0_is_touched_by_depth_alone(ports: LocalPorts, name: str) -> None:
    spec, trial = single_trial("servo", "pick", name, 5, scene=0)
    reports = [Runner(spec, "x", ports).run_single(trial) for _ in range(2)]
    one, other = ({**report.details, "wall_s": 0} for report in reports)
    assert one == other
    record = reports[0].record
    assert record.cognition == 1.0, "the VLM is asked about colour, at step 0"
    assert record.decision is not None
    assert (record.decision == 1.0) == (name == "late"), "a fault of time leaves step 0 alone"
    changed = [one.step for one in reports[0].pictures if not np.array_equal(one.reference, one.distorted)]
    assert (min(changed, default=0) > 0) == (name == "late")


def test_the_reference_side_of_every_step_stays_true(ports: LocalPorts, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, trial = single_trial("servo", "reach", "late", 5, scene=0, max_steps=3)
    views: list[CellView] = []
    view = ports.view

    def kept(*cameras: tuple[str, ...]) -> CellView:
        views.append(view(*cameras))
        return views[-1]

    monkeypatch.setattr(ports, "view", kept)
    pictures = Runner(spec, "x", ports).run(trial).pictures
    wrist = [picture for picture in pictures if picture.camera == "wrist"]
    assert len(wrist) > 1
    for picture in wrist:
        assert picture.reference is views[picture.step].reference["wrist"].color
        assert picture.distorted is views[0].reference["wrist"].color
