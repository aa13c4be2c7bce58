"""RealSense cameras on librealsense's software devices and recordings of them: the real library, no hardware."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from merton.errors import InfrastructureError, InputError
from merton.perception.camera.exposure_clock import ExposureClock
from merton.perception.camera.frame import CameraFrame
from merton.perception.camera.realsense import CameraSettings, RealsenseCamera, devices_of
from merton.perception.camera.realsense_driver import RealsenseStream, millimetres
from merton.world.observation import Intrinsics
from patience import LIMIT_S, stretched, until
from software_realsense import (
    BASELINE_M,
    CENTRE_PX,
    FOCAL_PX,
    HEIGHT,
    LENS,
    RATE_HZ,
    WIDTH,
    SoftwareCamera,
    color_image,
    record,
    rs,
)

pytestmark = pytest.mark.timeout(300)
FRAMES = 20


def settings(device: str = "software", **more: float) -> CameraSettings:
    return CameraSettings(device, WIDTH, HEIGHT, RATE_HZ, **more)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("realsense") / "top.db3", FRAMES)


@pytest.fixture
def live() -> Iterator[SoftwareCamera]:
    camera = SoftwareCamera()
    yield camera
    camera.pause()


class FrameRecorder:
    """Keeps frames and waits for them."""

    def __init__(self) -> None:
        self.frames: list[CameraFrame] = []
        self.changed = threading.Condition()

    def __call__(self, frame: CameraFrame) -> None:
        with self.changed:
            self.frames.append(frame)
            self.changed.notify_all()

    def until(self, count: int) -> None:
        with self.changed:
            enough = self.changed.wait_for(lambda: len(self.frames) >= count, stretched(LIMIT_S))
            assert enough, f"{len(self.frames)} frames"


def read_on(stream: RealsenseStream) -> None:
    while True:
        stream.read()


def test_a_live_stream_gives_pairs_with_exact_optics(live: SoftwareCamera) -> None:
    stream = RealsenseStream(settings(), live.device)
    begin_ns = time.monotonic_ns()
    live.feed_on()
    frames = [stream.read() for _ in range(5)]
    numbers = [int(frame.color[0, 0, 0]) for frame in frames]
    assert numbers == sorted(set(numbers)), "each once, in order"
    for frame, number in zip(frames, numbers, strict=True):
        assert np.array_equal(frame.color, color_image(number))
    stamps = [frame.stamp_ns for frame in frames]
    assert stamps == sorted(set(stamps))
    assert begin_ns - 1e9 < stamps[0] < stamps[-1] <= time.monotonic_ns(), "on this machine's monotonic clock"
    # golden: what the device was given; librealsense keeps them as 32 bit floats
    assert stream.intrinsics == Intrinsics(WIDTH, HEIGHT, *FOCAL_PX, *CENTRE_PX)
    assert stream.distortion == tuple(float(np.float32(value)) for value in LENS)
    assert "D455" in stream.description
    assert "100000000001" in stream.description
    stream.close()


def test_depth_is_aligned_to_colour_and_in_millimetres() -> None:
    camera = SoftwareCamera(baseline_m=BASELINE_M, unit_m=0.0001)
    depth = np.full((HEIGHT, WIDTH), 20000, np.uint16)  # a wall at 2 m
    depth[100:140, 120:160] = 8000  # and a box before it, at 0.8 m
    stream = RealsenseStream(settings(), camera.device)
    camera.feed_on(depth=depth)
    depth_mm = stream.read().depth_mm
    camera.pause()
    stream.close()
    assert depth_mm is not None
    assert depth_mm.dtype == np.uint16
    assert set(np.unique(depth_mm)) == {0, 800, 2000}
    # law: a point at z moves by f b / z between two cameras b apart: 12.0 px at 0.8 m, 4.8 px at 2 m
    columns = np.flatnonzero((depth_mm[110:130] == 800).all(axis=0))
    assert (columns[0], columns[-1]) == pytest.approx((120 + 12, 159 + 12), abs=1)
    rows = np.flatnonzero((depth_mm[:, 140:160] == 800).all(axis=1))
    assert (rows[0], rows[-1]) == (100, 139)


@pytest.mark.parametrize(("unit_m", "raw", "expected"), [(0.001, 1234, 1234), (0.0001, 12345, 1234), (0.01, 7000, 0)])
def test_units_of_depth(unit_m: float, raw: int, expected: int) -> None:
    assert millimetres(np.array([[raw]], np.uint16), unit_m)[0, 0] == expected


def test_a_stall_is_an_error_and_a_new_stream_recovers(live: SoftwareCamera) -> None:
    stream = RealsenseStream(settings(stall_s=0.3), live.device)
    live.feed_on()
    stream.read()
    live.pause()
    began_s = time.monotonic()
    with pytest.raises(InfrastructureError, match=r"no frame from software for 0\.3 s"):
        read_on(stream)
    assert time.monotonic() - began_s > 0.2
    before = live.number
    stream.close()
    stream = RealsenseStream(settings(stall_s=0.3), live.device)
    live.feed_on()
    assert before < stream.read().color[0, 0, 0] <= live.number
    stream.close()


def test_exposure_is_automatic_or_fixed(live: SoftwareCamera) -> None:
    sensor = live.color_sensor
    for option, low, high, step, default in (
        (rs.option.exposure, 1, 10000, 1, 156),
        (rs.option.gain, 0, 128, 1, 64),
        (rs.option.enable_auto_exposure, 0, 1, 1, 0),
        (rs.option.auto_exposure_priority, 0, 1, 1, 1),
    ):
        limits = rs.option_range()
        limits.min, limits.max, limits.step, limits.default = low, high, step, default
        sensor.add_option(option, limits, True)
    RealsenseStream(settings(), live.device).close()
    assert sensor.get_option(rs.option.enable_auto_exposure) == 1
    assert sensor.get_option(rs.option.auto_exposure_priority) == 0, "or the dark would halve the frame rate"
    RealsenseStream(settings(exposure_us=8000.0, gain=32.0), live.device).close()
    assert sensor.get_option(rs.option.enable_auto_exposure) == 0
    assert sensor.get_option(rs.option.exposure) == 80  # units of 100 us
    assert sensor.get_option(rs.option.gain) == 32
    with pytest.raises(InputError, match=r"exposure_us of software must be 100 \.\. 1e\+06, got 2e\+06"):
        RealsenseStream(settings(exposure_us=2e6), live.device)


def test_a_camera_that_cannot_be_opened_is_one_sentence(live: SoftwareCamera, recording: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"serial number '42'; connected: "):
        RealsenseStream(settings("42"))
    with pytest.raises(InputError, match=f"choose one of: {WIDTH}x{HEIGHT} at {RATE_HZ} Hz"):
        RealsenseStream(CameraSettings(str(recording), 1280, 720, 30))
    with pytest.raises(InputError, match="no recording"):
        RealsenseStream(settings(str(tmp_path / "absent.db3")))
    (tmp_path / "garbage.db3").write_bytes(b"garbage" * 999)
    with pytest.raises(InputError, match=r"cannot read .*garbage\.db3"):
        RealsenseStream(settings(str(tmp_path / "garbage.db3")))


def test_a_recording_plays_over_and_over_in_a_process(recording: Path) -> None:
    seen = FrameRecorder()
    camera = RealsenseCamera("top", settings(str(recording), stall_s=20.0), seen)
    camera.connect(LIMIT_S)
    seen.until(2 * FRAMES)
    camera.close()
    for frame in seen.frames:
        number = int(frame.color[0, 0, 0])
        assert np.array_equal(frame.color, color_image(number))
        assert frame.intrinsics == Intrinsics(WIDTH, HEIGHT, *FOCAL_PX, *CENTRE_PX)
    numbers = [int(frame.color[0, 0, 0]) for frame in seen.frames]
    assert len(set(numbers)) > FRAMES / 2, "playback may lose some"
    stamps = np.array([frame.stamp_ns for frame in seen.frames])
    assert (np.diff(stamps) > 0).all()
    assert camera.reconnections == 0
    assert "Hz, delay p50" in camera.status()
    count = len(seen.frames)
    assert count == camera.frames, "none after close"


def test_a_camera_recovers_from_a_hung_or_dead_process_and_others_continue(recording: Path) -> None:
    seen = {name: FrameRecorder() for name in ("top", "side")}
    patience = {"top": settings(str(recording), stall_s=0.3), "side": settings(str(recording), stall_s=20.0)}
    cameras = {name: RealsenseCamera(name, patience[name], seen[name]) for name in seen}
    for camera in cameras.values():
        camera.connect(LIMIT_S)
    top, side = cameras["top"], cameras["side"]
    hung = top.driver_pid
    assert hung
    os.kill(hung, signal.SIGSTOP)
    until(lambda: top.silence_s > 0.3)
    assert "no frame for" in top.status()
    before = len(seen["side"].frames)
    until(lambda: top.error == "its driver hangs")
    assert len(seen["side"].frames) > before, "the other one did not wait"
    count = len(seen["top"].frames)
    seen["top"].until(count + 3)
    died = top.driver_pid
    assert died not in (None, hung)
    os.kill(died, signal.SIGKILL)
    until(lambda: top.reconnections >= 2)
    count = len(seen["top"].frames)
    seen["top"].until(count + 3)
    assert side.reconnections == 0
    for camera in cameras.values():
        camera.close()


def test_a_camera_that_is_not_there_is_refused_at_once() -> None:
    camera = RealsenseCamera("wrist", settings("42"), lambda frame: None)
    with pytest.raises(InputError, match="camera wrist: no RealSense camera has the serial number '42'; connected: "):
        camera.connect(LIMIT_S)
    assert camera.silence_s == float("inf")
    camera.close()


def test_devices_are_named_for_each_camera() -> None:
    cameras = ["wrist", "top"]
    assert devices_of("wrist=1, top = /data/a.db3", cameras) == {"wrist": "1", "top": "/data/a.db3"}
    for text in ("", "wrist=1", "wrist=1, top=", "wrist=1, side=2", "wrist=1, top=2, top=3", "1, 2"):
        with pytest.raises(InputError, match="each of the cameras wrist, top once"):
            devices_of(text, cameras)
    with pytest.raises(InputError, match="cannot be one device"):
        devices_of("wrist=1, top=1", cameras)


SECOND = 1_000_000_000


def test_wall_clock_stamps_keep_their_age() -> None:
    clock = ExposureClock()
    for index in range(5):
        arrival = (50 + index) * SECOND
        wall = 1_700_000_000 * SECOND + arrival
        assert clock.monotonic_ns((wall - 20_000_000) / 1e6, True, arrival, wall) == pytest.approx(
            arrival - 20_000_000, abs=500
        )


def test_other_stamps_take_the_shortest_delay_for_none() -> None:
    """Law: with a constant offset and delays >= 0, the error is the shortest delay of the last 10 s."""
    clock, rng = ExposureClock(), np.random.default_rng(3)
    delays = np.r_[0, rng.integers(0, 30_000_000, 200)]
    for index, delay in enumerate(delays.tolist()):
        exposed = 100 * SECOND + index * 33_333_333
        got = clock.monotonic_ns((exposed - 70 * SECOND) / 1e6, False, exposed + delay, 0)
        assert got == pytest.approx(exposed, abs=1000)


def test_a_camera_clock_that_starts_anew_or_a_wall_clock_that_jumps() -> None:
    clock = ExposureClock()
    assert clock.monotonic_ns(5_000.0, False, 100 * SECOND, 0) == 100 * SECOND
    assert clock.monotonic_ns(0.0, False, 101 * SECOND, 0) == 101 * SECOND, "unplugged, or a recording from its start"
    wall = 1_700_000_000 * SECOND
    assert clock.monotonic_ns(wall / 1e6, True, 102 * SECOND, wall + 3600 * SECOND) == 102 * SECOND
    got = clock.monotonic_ns(wall / 1e6 + 33, True, 102 * SECOND + 33_000_000, wall)
    assert got == pytest.approx(102 * SECOND + 33_000_000, abs=500), "a stamp in milliseconds is no finer"
    assert clock.monotonic_ns(0.0, False, 102 * SECOND, 0) == got + 1, "stamps never go back"
