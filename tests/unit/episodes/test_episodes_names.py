"""Names of other programs made safe: for ids of cases and names of files, and distinct."""

import hashlib
import re

import pytest

from merton.episodes.names import LONGEST, safe_camera, safe_name, safe_part
from merton.errors import InputError
from merton.results.records import TestCase

THEIRS = [
    "push-v3",
    "push_v3",
    "Push-v3",
    "push v3",
    "push/v3",
    "push-v3 ",
    "pick up the black bowl between the plate and the ramekin and place it on the plate",
    "pick up the black bowl between the plate and the ramekin and place it on the plate.",
    "Meta-World/MT1",
    "..",
    "-v3",
    "_x",
    "打开抽屉",
    "关上抽屉",
    "x" * 64,
    "x" * 65,
    "x" * 66,
    "test-pick",
    "train-station",
    "con.fig",
]


def test_names_are_safe_and_stay_distinct() -> None:
    safe = [safe_name(name) for name in THEIRS]
    assert len(set(safe)) == len(safe)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name) and len(name) <= LONGEST for name in safe)
    assert safe[:2] == ["push-v3", "push_v3"]
    assert safe_name("Push-v3") == f"push-v3-{hashlib.sha256(b'Push-v3').hexdigest()[:8]}"


def test_a_safe_name_stays_as_it_is() -> None:
    for name in THEIRS:
        assert safe_name(safe_name(name)) == safe_name(name)


def test_no_task_of_another_program_shares_scenes_with_another() -> None:
    scenes = {TestCase(safe_name(name), 0, "reference", 0).scene for name in THEIRS}
    assert len(scenes) == len(THEIRS)


@pytest.mark.parametrize("name", ["", "a\nb", "\u202egnp", "\0"])
def test_a_name_that_cannot_be_printed_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="must be printable text"):
        safe_name(name)


def test_cameras_and_parts_name_files() -> None:
    assert safe_camera("wrist") == "wrist"
    assert re.fullmatch(r"observation-wrist_image-[0-9a-f]{8}", safe_camera("observation/wrist_image"))
    assert safe_part("steps.0+1+3..") == "steps.0+1+3.."
    many = [f"steps.{'+'.join(map(str, range(first, 90)))}" for first in (0, 1)]
    assert len({safe_part(name) for name in many}) == 2
    assert all(len(safe_part(name)) <= LONGEST for name in many)
    assert "/" not in safe_part("cameras.observation/wrist_image")
