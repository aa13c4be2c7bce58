"""RealSense cameras without hardware: librealsense's own software devices, live or as recordings that they made."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

rs = pytest.importorskip("pyrealsense2", reason="pyrealsense2 is not installed (the extra lab)", exc_type=ImportError)

WIDTH, HEIGHT, RATE_HZ = 320, 240, 30
FOCAL_PX, CENTRE_PX = (192.25, 191.75), (160.5, 118.25)
LENS = (-0.056, 0.067, 0.0001, -0.0002, -0.02)
"""Of the size that D455s report."""
BASELINE_M = 0.05


def color_image(number: int) -> np.ndarray:
    """A picture that no other frame has: noise from the number, which also stands in the first pixel."""
    image = np.random.default_rng(number).integers(0, 255, (HEIGHT // 8, WIDTH // 8, 3), np.uint8)
    image = np.ascontiguousarray(image.repeat(8, axis=0).repeat(8, axis=1))
    image[0, 0] = number
    return image


def depth_image(number: int) -> np.ndarray:
    """A wall whose distance tells the number [mm]."""
    return np.full((HEIGHT, WIDTH), 1000 + number, np.uint16)


class SoftwareCamera:
    """A D455 that gives what it is fed; colour and depth have the same optics, `baseline_m` apart."""

    def __init__(self, serial: str = "100000000001", baseline_m: float = 0.0, unit_m: float = 0.001) -> None:
        self.device = rs.software_device()
        for key, value in ((rs.camera_info.name, "Intel RealSense D455"), (rs.camera_info.serial_number, serial)):
            self.device.update_info(key, value) if self.device.supports(key) else self.device.register_info(key, value)
        self.unit_m, self.number = unit_m, 0
        self.depth_sensor, self.color_sensor = (self.device.add_sensor(n) for n in ("Stereo Module", "RGB Camera"))
        self.depth_sensor.add_read_only_option(rs.option.depth_units, unit_m)
        self.depth = self._stream(self.depth_sensor, rs.stream.depth, rs.format.z16, 2, (0.0,) * 5)
        self.color = self._stream(
            self.color_sensor, rs.stream.color, rs.format.rgb8, 3, LENS if not baseline_m else (0.0,) * 5
        )
        place = rs.extrinsics()
        place.rotation, place.translation = [1, 0, 0, 0, 1, 0, 0, 0, 1], [baseline_m, 0, 0]
        self.depth.register_extrinsics_to(self.color, place)
        self.device.create_matcher(rs.matchers.default)
        self._feeding: threading.Thread | None = None
        self._enough = threading.Event()

    @staticmethod
    def _stream(sensor: Any, kind: Any, pixels: Any, size: int, lens: tuple[float, ...]) -> Any:
        stream = rs.video_stream()
        stream.type, stream.index, stream.uid, stream.fmt, stream.bpp = kind, 0, 100 + size, pixels, size
        stream.width, stream.height, stream.fps = WIDTH, HEIGHT, RATE_HZ
        optics = rs.intrinsics()
        optics.width, optics.height = WIDTH, HEIGHT
        (optics.fx, optics.fy), (optics.ppx, optics.ppy) = FOCAL_PX, CENTRE_PX
        optics.model = rs.distortion.inverse_brown_conrady if any(lens) else rs.distortion.none
        optics.coeffs = list(lens)
        stream.intrinsics = optics
        return sensor.add_video_stream(stream, True)

    def feed(self, depth: np.ndarray | None = None, stamp_ms: float | None = None) -> None:
        """One frame of both sensors, as if it were exposed now."""
        self.number += 1
        stamp_ms = time.time() * 1000 if stamp_ms is None else stamp_ms
        depth = depth_image(self.number) if depth is None else depth
        for sensor, profile, pixels, size in (
            (self.color_sensor, self.color, color_image(self.number), 3),
            (self.depth_sensor, self.depth, depth, 2),
        ):
            frame = rs.software_video_frame()
            frame.pixels, frame.stride, frame.bpp = pixels, WIDTH * size, size
            frame.timestamp, frame.domain, frame.frame_number = stamp_ms, rs.timestamp_domain.global_time, self.number
            frame.profile, frame.depth_units = profile.as_video_stream_profile(), self.unit_m
            sensor.on_video_frame(frame)

    def feed_on(self, count: int = 10**6, **options: Any) -> None:
        """Frames at the camera's rate from now on, until there are `count` or `pause` is called."""

        def feed() -> None:
            while self.number < count and not self._enough.wait(1 / RATE_HZ):
                self.feed(**options)

        self._enough.clear()
        self._feeding = threading.Thread(target=feed)
        self._feeding.start()

    def pause(self) -> None:
        """No more frames."""
        self._enough.set()
        if self._feeding:
            self._feeding.join()


def record(file: Path, frames: int, serial: str = "100000000001") -> Path:
    """A recording of a software camera by librealsense's own recorder, in real time."""
    camera = SoftwareCamera(serial)
    recorder = rs.recorder(str(file), camera.device)
    sensors, queue = recorder.query_sensors(), rs.frame_queue(4)
    for sensor in sensors:
        sensor.open(sensor.get_stream_profiles()[0])
        sensor.start(queue)
    camera.feed_on(frames)
    assert camera._feeding is not None
    camera._feeding.join(60)
    for sensor in sensors:
        sensor.stop()
        sensor.close()
    return file
