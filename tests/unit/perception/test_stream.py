"""Settings and schedules of a distorted stream."""

from __future__ import annotations

import numpy as np
import pytest

from merton.errors import InputError
from merton.perception.distortion.stream import DistortionSetting, Schedule, parse_schedule

FRAME = np.random.default_rng(0).integers(0, 255, (24, 32, 3), np.uint8)


def test_the_same_frame_always_looks_the_same_and_no_other_shares_its_noise() -> None:
    setting = DistortionSetting("white_noise", 5, 7)
    first = setting.apply("top", FRAME)
    assert np.array_equal(first, setting.apply("top", FRAME))
    assert not np.array_equal(first, setting.apply("wrist", FRAME))
    assert not np.array_equal(first, DistortionSetting("white_noise", 5, 8).apply("top", FRAME))
    other = FRAME.copy()
    other[0, 0, 0] ^= 1
    changed = setting.apply("top", other).astype(int) - first
    assert np.abs(changed[1:]).max() > 5, "noise all over, not only where the frame changed"


def test_level_0_passes_the_frame_itself() -> None:
    assert DistortionSetting().apply("top", FRAME) is FRAME
    assert DistortionSetting("white_noise", 0).shown_name == "reference"
    assert DistortionSetting("white_noise", 2.0) == DistortionSetting("white_noise", 2)


def test_a_level_between_two_where_the_distortion_has_one() -> None:
    two, between, three = (DistortionSetting("gaussian_blur", level).apply("top", FRAME) for level in (3, 3.5, 4))
    contrast = [float(image.std()) for image in (two, between, three)]
    assert contrast == sorted(contrast, reverse=True)
    assert len(set(contrast)) == 3
    assert parse_schedule(["gaussian_blur 3.5 1"]).at(0.0).level == 3.5
    with pytest.raises(InputError, match="no values in between"):
        DistortionSetting("jpeg", 3.5)


def test_an_id_stands_for_the_name() -> None:
    assert DistortionSetting("2", 3) == DistortionSetting("lens_blur", 3)
    assert DistortionSetting("02", 3).shown_name == "lens_blur"


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "fog", "level": 1},
        {"name": "fog", "level": 0},
        {"name": "reference", "level": 1},
        {"name": "jpeg", "level": 6},
        {"level": -1},
        {"level": float("nan")},
        {"level": None},
        {"seed": -1},
        {"seed": None},
    ],
)
def test_unknown_settings_are_refused_before_any_frame(bad: dict) -> None:
    with pytest.raises(InputError):
        DistortionSetting(**bad)


def test_a_level_without_a_distortion_is_refused_with_the_distortions_there_are() -> None:
    with pytest.raises(InputError, match=r"level 3 of 'reference', which has level 0 only: .* jpeg, "):
        DistortionSetting(level=3.0)


def test_a_schedule_goes_round() -> None:
    schedule = parse_schedule(["jpeg 4 2", "white_noise 2 0.5", "reference 0 1"], seed=3)
    at = [schedule.at(t).shown_name for t in (0.0, 1.99, 2.0, 2.49, 2.5, 3.49, 3.5, 7.0, 9.2)]
    assert at == ["jpeg"] * 2 + ["white_noise"] * 2 + ["reference"] * 2 + ["jpeg"] * 2 + ["white_noise"]
    assert schedule.at(2.1) == DistortionSetting("white_noise", 2, 3)
    assert isinstance(schedule, Schedule)


@pytest.mark.parametrize(
    "lines", [[], ["jpeg 4"], ["jpeg four 1"], ["jpeg 4 0"], ["jpeg 4 1 2"], ["fog 1 1"], ["jpeg 4 inf"]]
)
def test_a_malformed_line_is_named(lines: list[str]) -> None:
    with pytest.raises(InputError, match=r"name level seconds|choose one of"):
        parse_schedule(lines)
