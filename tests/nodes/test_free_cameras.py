"""Cameras with clocks of their own: the newest complete exposure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from std_msgs.msg import Header

from merton_nodes.cameras.free_cameras import FAULTY_DEPTH, MOST_EXPOSURES, PARTS, FreeCameras
from merton_nodes.ros import conversions as convert

JPEG, REFERENCE = ("jpeg", 5.0, 7), ("reference", 0.0, 0)


def part(stamp_ns: int, setting: tuple[str, float, int] = REFERENCE) -> Any:
    name, level, seed = setting
    return SimpleNamespace(header=Header(stamp=convert.time_message(stamp_ns)), name=name, level=level, seed=seed)


def expose(cameras: FreeCameras, camera: str, stamp_ns: int, *parts: str, setting: Any = REFERENCE) -> None:
    for name in parts or PARTS:
        cameras.add(camera, name, part(stamp_ns, setting))


def test_an_exposure_counts_once_all_its_parts_have_arrived() -> None:
    cameras = FreeCameras(["top", "side"])
    expose(cameras, "top", 100)
    expose(cameras, "side", 103, "color", "depth", "camera_info")
    assert cameras.missing(["top", "side"], 50, REFERENCE) == ["side"]
    assert cameras.missing(["top"], 50, REFERENCE) == [], "another camera is not waited for"
    expose(cameras, "top", 200, "color", "depth")
    expose(cameras, "side", 103, "distorted", "distortion info")
    assert cameras.missing(["top", "side"], 50, REFERENCE) == []
    messages = cameras.messages(["top", "side"], 50, REFERENCE)
    assert len(messages) == 2 * len(PARTS)
    assert messages["top color"].header == messages["top distorted"].header == part(100).header, "not the newer half"
    assert messages["side color"].header == part(103).header


def test_earlier_and_otherwise_distorted_exposures_do_not_count() -> None:
    cameras = FreeCameras(["top"])
    expose(cameras, "top", 100)
    assert cameras.missing(["top"], 101, REFERENCE) == ["top"]
    assert cameras.missing(["top"], 50, JPEG) == ["top"]
    expose(cameras, "top", 200, setting=JPEG)
    assert cameras.missing(["top"], 50, JPEG) == []
    assert cameras.missing(["top"], 50, REFERENCE) == ["top"], "the last setting counts"


def test_an_exposure_with_a_fault_of_depth_has_one_more_part() -> None:
    cameras = FreeCameras(["top"])
    cameras.parts = (*PARTS, FAULTY_DEPTH)
    expose(cameras, "top", 100)
    assert cameras.missing(["top"], 50, REFERENCE) == ["top"]
    expose(cameras, "top", 100, FAULTY_DEPTH)
    assert cameras.missing(["top"], 50, REFERENCE) == []
    assert f"top {FAULTY_DEPTH}" in cameras.messages(["top"], 50, REFERENCE)


def test_older_and_never_completed_exposures_are_forgotten() -> None:
    cameras = FreeCameras(["top"])
    for stamp_ns in range(1, 500):
        expose(cameras, "top", stamp_ns, "color")
    assert len(cameras._messages["top"]["color"]) == MOST_EXPOSURES
    expose(cameras, "top", 1_000_000_000)
    expose(cameras, "top", 900_000_000, "color")
    assert list(cameras._messages["top"]["color"]) == [1_000_000_000]


def test_depth_may_be_stamped_beside_colour() -> None:
    """Drivers that stamp each image themselves; the faulty copy of depth has the stamp of depth."""
    cameras = FreeCameras(["top"])
    cameras.parts = (*PARTS, FAULTY_DEPTH)
    others = [name for name in PARTS if name != "depth"]
    for at_ns, depth_ns in ((1_000_000_000, 1_001_000_000), (1_033_000_000, 1_034_000_000)):
        expose(cameras, "top", depth_ns, "depth", FAULTY_DEPTH)
        expose(cameras, "top", at_ns, *others)
    messages = cameras.messages(["top"], 50, REFERENCE)
    stamps = {name: convert.nanoseconds_of(message.header.stamp) for name, message in messages.items()}
    assert stamps.pop("top depth") == stamps.pop(f"top {FAULTY_DEPTH}") == 1_034_000_000
    assert set(stamps.values()) == {1_033_000_000}
    far = FreeCameras(["top"])
    expose(far, "top", 1_000_000_000, *others)
    expose(far, "top", 1_020_000_000, "depth")
    assert far.missing(["top"], 50, REFERENCE) == ["top"]
