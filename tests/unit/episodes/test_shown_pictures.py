"""Pictures of one episode: what is distorted, what passes as it is, and what a fault of time remembers."""

import subprocess
import sys

import numpy as np
import pytest

from merton.episodes.shown import EpisodePictures, ShownPart, pictures_seed
from merton.errors import InputError
from merton.experiment.plan import distortion_seed
from merton.perception.distortion import all_distortions
from merton.perception.distortion.stream import DistortionSetting
from merton.results.records import TestCase

RNG = np.random.default_rng(0)
FRAMES = [RNG.integers(0, 256, (48, 64, 3), np.uint8) for _ in range(6)]
OF_COLOUR = [name for name, entry in all_distortions().items() if entry.category != "depth" and name != "depth_lag"]


def test_a_case_has_the_seed_that_its_trial_has() -> None:
    case = TestCase("pick", 3, "lens_blur", 2)
    assert pictures_seed(7, case) == distortion_seed(7, case)


@pytest.mark.parametrize("name", OF_COLOUR)
def test_level_0_gives_the_very_object(name: str) -> None:
    pictures = EpisodePictures(name, 0, seed=1)
    assert all(pictures.show(step, "top", frame) is frame for step, frame in enumerate(FRAMES))
    assert pictures.clean


def test_a_type_is_that_of_a_setting_and_depends_on_the_camera() -> None:
    pictures = EpisodePictures("white_noise", 3, seed=5)
    shown = pictures.show(0, "top", FRAMES[0])
    np.testing.assert_array_equal(shown, DistortionSetting("white_noise", 3, 5).apply("top", FRAMES[0]))
    np.testing.assert_array_equal(shown, pictures.show(4, "top", FRAMES[0]))
    assert (shown != pictures.show(0, "wrist", FRAMES[0])).any()


def test_only_the_part_is_distorted() -> None:
    pictures = EpisodePictures("lens_blur", 5, part=ShownPart(cameras=["wrist"], steps=[0, 2]))
    changed = {
        (camera, step)
        for step, frame in enumerate(FRAMES)
        for camera in ("top", "wrist")
        if pictures.show(step, camera, frame) is not frame
    }
    assert changed == {("wrist", 0), ("wrist", 2)}


def test_a_stopped_camera_shows_its_first_frame_although_the_environment_draws_into_one_buffer() -> None:
    pictures, buffer = EpisodePictures("frozen", 5), FRAMES[0].copy()
    assert pictures.show(0, "top", buffer) is buffer
    for step in range(1, 4):
        buffer[:] = FRAMES[step]
        np.testing.assert_array_equal(pictures.show(step, "top", buffer), FRAMES[0])
        np.testing.assert_array_equal(buffer, FRAMES[step])


def test_a_change_of_a_shown_picture_does_not_reach_the_memory() -> None:
    pictures = EpisodePictures("frozen", 5)
    for step in range(3):
        shown = pictures.show(step, "top", FRAMES[step].copy())
        np.testing.assert_array_equal(shown, FRAMES[0])
        shown[:] = 0


def test_a_fault_of_time_goes_on_outside_of_the_part() -> None:
    whole, part = EpisodePictures("late", 5, 3), EpisodePictures("late", 5, 3, ShownPart(steps=[4]))
    for step, frame in enumerate(FRAMES):
        expected, shown = whole.show(step, "top", frame), part.show(step, "top", frame)
        np.testing.assert_array_equal(shown, expected if step == 4 else frame)


@pytest.mark.parametrize("name", ["depth_lag", "depth_holes", "nonsense"])
def test_a_name_that_acts_on_no_colour_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=name):
        EpisodePictures(name, 3)


@pytest.mark.parametrize("pixels", [np.zeros((4, 4, 3)), np.zeros((4, 4), np.uint8), np.zeros((3, 4, 4), np.uint8)])
def test_an_array_that_is_no_picture_is_refused_by_its_camera(pixels: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"camera 'top'.*uint8 \(height, width, 3\)"):
        EpisodePictures("lens_blur", 1).show(0, "top", pixels)


def test_a_first_picture_imports_nothing_that_was_not_loaded() -> None:
    program = (
        "import sys, merton.episodes.shown as shown\n"
        "shown.load(['white_noise', 'frozen', 'block_lost'])\n"
        "before = set(sys.modules)\n"
        "import numpy as np\n"
        "for name in ('white_noise', 'frozen', 'block_lost'):\n"
        "    shown.EpisodePictures(name, 3).show(0, 'top', np.ones((64, 64, 3), np.uint8))\n"
        "print(sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
