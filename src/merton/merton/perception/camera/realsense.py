"""A RealSense camera: frames from a driver process, which is replaced whenever it stalls, fails or dies.

    camera = RealsenseCamera("top", CameraSettings("123456"), on_frame=print)
    camera.connect()
    ...
    camera.close()

Several cameras are several of these; none waits for another.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from merton.errors import InfrastructureError, InputError, MertonError, missing
from merton.perception.camera.frame import CameraFrame
from merton.perception.camera.realsense_driver import FIRST_FRAME_S, SLOTS, CameraSettings, child_main, views_of
from merton.processes import SupervisedDriver
from merton.world.observation import Intrinsics

__all__ = ["CameraSettings", "RealsenseCamera", "devices_of"]

CONNECT_S = 30.0
"""Longest time until all cameras of a lab have given their first frames [s]. Starting one takes 1 s to 3 s."""
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0
"""Pause before the second attempt to open a camera; doubled for each further one, up to the longest."""
SPARE_S = 2.0
"""Time past its own limits in which a driver may still answer before it is killed [s]."""
START_S = 60.0
"""Longest time until a driver has opened its camera [s]: a busy machine needs long to start a process."""
STATISTICS_FRAMES = 300
"""Number of newest frames from which rate and delay are computed."""


class RealsenseCamera:
    """One camera: its newest frames, and its status.

    Args:
        name: of the camera in the lab, such as "wrist"; for messages.
        on_frame: called with every frame, from a thread of this object; its stamp is of `time.monotonic_ns`.

    Attributes:
        description: model, serial number, firmware, bus; empty before the first connection.
        error: why no frames come, as a sentence; empty while they do.
        frames, dropped, reconnections: counts since the start. A frame is dropped if it comes while `on_frame` is busy.

    Raises:
        MissingDependencyError: pyrealsense2 is not installed.
    """

    def __init__(self, name: str, settings: CameraSettings, on_frame: Callable[[CameraFrame], None]) -> None:
        if importlib.util.find_spec("pyrealsense2") is None:
            raise missing("pyrealsense2", "lab", "a RealSense camera")
        self.name, self.settings, self._on_frame = name, settings, on_frame
        self.description, self.error = "", "not connected yet"
        self.frames = self.dropped = self.reconnections = 0
        self._optics: tuple[Intrinsics, tuple[float, ...]]
        self._recent: deque[tuple[int, int]] = deque(maxlen=STATISTICS_FRAMES)
        """Arrivals and delays of the last frames [ns]."""
        self._refused = False
        self._changed = threading.Condition()
        self._pause_s = SHORTEST_PAUSE_S
        self._frames_before = self._dropped_before = 0
        """Counts when the present driver started."""
        buffer = multiprocessing.get_context("spawn").RawArray("B", SLOTS * 5 * settings.width * settings.height)
        self._slots = views_of(buffer, settings)
        self._driver = SupervisedDriver(
            f"camera {name}",
            child_main,
            (settings, buffer),
            START_S,
            "its driver hangs",
            self._on_message,
            self._on_end,
        )

    def connect(self, limit_s: float = CONNECT_S) -> None:
        """Start, unless that was done, and wait for the first frame. Attempts go on after a failure, until `close`.

        Raises:
            InputError: there is no such device, or it does not offer the settings.
            InfrastructureError: no frame within `limit_s`.
        """
        self.start()
        with self._changed:
            self._changed.wait_for(lambda: self.frames or self._refused, limit_s)
        if not self.frames:
            kind = InputError if self._refused else InfrastructureError
            raise kind(f"camera {self.name}: {self.error}")

    def start(self) -> None:
        """Start connecting."""
        self._driver.start()

    def close(self) -> None:
        """End the stream; no frame is passed on any more."""
        self._driver.close()

    @property
    def driver_pid(self) -> int | None:
        """The process that holds the camera."""
        return self._driver.pid

    @property
    def silence_s(self) -> float:
        """Time since the last frame [s]; infinite before the first."""
        recent = list(self._recent)
        return (time.monotonic_ns() - recent[-1][0]) / 1e9 if recent else float("inf")

    def status(self) -> str:
        """One line for diagnostics: rate and delay from exposure to here, or the fault."""
        recent, silence_s = list(self._recent), self.silence_s
        if not recent or silence_s > self.settings.stall_s:
            since = f"no frame for {silence_s:.1f} s" if recent else "no frame yet"
            return f"{since}: {self.error}" if self.error else since
        span_s = (recent[-1][0] - recent[0][0]) / 1e9
        rate_hz = (len(recent) - 1) / span_s if span_s else 0.0
        delays_ms = np.array([delay for _, delay in recent]) / 1e6
        p50, p99 = np.percentile(delays_ms, (50, 99))
        return f"{self.description}: {rate_hz:.1f} Hz, delay p50 {p50:.1f} ms, p99 {p99:.1f} ms"

    # Inside -----------------------------------------------------------------------------------------------------------

    def _on_message(self, message: Any) -> float | MertonError:
        kind, *content = message
        if kind == "refused":
            return InputError(content[0])
        if kind == "failed":
            return InfrastructureError(content[0])
        if kind == "opened":
            self.description, intrinsics, distortion = content
            self._optics = intrinsics, distortion
            return FIRST_FRAME_S + SPARE_S
        slot, stamp_ns, dropped = content
        color, depth_mm = (part.copy() for part in self._slots[slot])
        with contextlib.suppress(InfrastructureError):  # a driver that ended shows at the next message
            self._driver.send(slot)
        self.dropped = self._dropped_before + dropped
        self._publish(color, depth_mm, stamp_ns)
        return self.settings.stall_s + SPARE_S

    def _publish(self, color: Any, depth_mm: Any, stamp_ns: int) -> None:
        intrinsics, distortion = self._optics
        now_ns = time.monotonic_ns()
        self._recent.append((now_ns, now_ns - stamp_ns))
        self._on_frame(CameraFrame(color, depth_mm, intrinsics, stamp_ns, distortion))
        with self._changed:
            self.frames += 1
            self.error, self._refused = "", False
            self._changed.notify_all()

    def _on_end(self, error: MertonError | None) -> float:
        with self._changed:
            self.error, self._refused = str(error or "closed"), isinstance(error, InputError)
            self._changed.notify_all()
        if error is not None:
            self.reconnections += 1
        failed_to_open = self.frames == self._frames_before
        self._frames_before, self._dropped_before = self.frames, self.dropped
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S) if failed_to_open else SHORTEST_PAUSE_S
        return self._pause_s


def devices_of(text: str, cameras: list[str]) -> Mapping[str, str]:
    """The device of each camera from a text such as "wrist=123456, top=234567, side=/data/side.db3".

    Raises:
        InputError: a camera without a device, one that is not played, or a device that is named twice.
    """
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    devices = {camera.strip(): device.strip() for camera, _, device in pairs}
    serials = [device for device in devices.values() if not device.endswith((".db3", ".bag"))]
    if len(devices) < len(pairs) or set(devices) != set(cameras) or not all(devices.values()):
        raise InputError(
            f"the devices must name each of the cameras {', '.join(cameras)} once, as in "
            f"{', '.join(f'{camera}=SERIAL' for camera in cameras)!r}, got {text!r}"
        )
    if len(set(serials)) < len(serials):
        raise InputError(f"two cameras cannot be one device, got {text!r}")
    return devices
