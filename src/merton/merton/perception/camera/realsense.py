"""A RealSense camera that comes back: frames from a process of its own, replaced whenever it stalls, fails or dies.

    camera = RealsenseCamera("top", Settings("123456"), on_frame=print)
    camera.connect()
    ...
    camera.close()

Several cameras are several of these. None waits for another.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from merton.errors import InfrastructureError, InputError, MissingDependencyError
from merton.perception.camera.frame import Frame
from merton.perception.camera.realsense_driver import FIRST_FRAME_S, SLOTS, Settings, drive, views_of
from merton.world.observation import Intrinsics

__all__ = ["RealsenseCamera", "Settings", "devices_of"]

CONNECT_S = 30.0
"""How long all cameras of a lab may take to their first frames. Starting one takes 1 s to 3 s."""
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0
"""Pause before the second attempt to open a camera; doubled for each further one, up to the longest."""
SPARE_S = 2.0
"""A driver that is so much later than its own limits hangs, and is killed."""
START_S = 60.0
"""How long a driver may take before it has opened its camera: a busy machine needs long to start a process."""
KEPT = 300
"""Frames that rate and delay are told of."""


class RealsenseCamera:
    """One camera: its newest frames, and how it is doing.

    Args:
        name: what the lab calls it, such as "wrist"; for messages.
        settings: which device, and how.
        on_frame: called with every frame, from a thread of this object; its stamp is of `time.monotonic_ns`.

    Attributes:
        description: model, serial number, firmware, bus; empty before the first connection.
        trouble: why no frames come, in one sentence; empty while they do.
        frames, dropped, reconnections: counts since the start. Dropped is what came while `on_frame` was busy.
        driver_pid: the process that holds the camera.

    Raises:
        MissingDependencyError: pyrealsense2 is not installed.
    """

    def __init__(self, name: str, settings: Settings, on_frame: Callable[[Frame], None]) -> None:
        if importlib.util.find_spec("pyrealsense2") is None:
            raise MissingDependencyError("a RealSense camera needs pyrealsense2: pip install -r requirements/lab.txt")
        self.name, self.settings, self._on_frame = name, settings, on_frame
        self.description, self.trouble = "", "not connected yet"
        self.frames = self.dropped = self.reconnections = 0
        self.driver_pid: int | None = None
        self._optics: tuple[Intrinsics, tuple[float, ...]] | None = None
        self._recent: deque[tuple[int, int]] = deque(maxlen=KEPT)
        """Arrivals and delays of the last frames [ns]."""
        self._refused = False
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name=f"camera {name}", daemon=True)

    def connect(self, limit_s: float = CONNECT_S) -> None:
        """Start, unless that was done, and wait for the first frame. Attempts go on after a failure, until `close`.

        Raises:
            InputError: there is no such device, or it cannot do what the settings ask for.
            InfrastructureError: no frame within `limit_s`.
        """
        self.start()
        with self._changed:
            self._changed.wait_for(lambda: self.frames or self._refused, limit_s)
        if not self.frames:
            kind = InputError if self._refused else InfrastructureError
            raise kind(f"camera {self.name}: {self.trouble}")

    def start(self) -> None:
        """Start connecting."""
        if not self._thread.is_alive():
            self._thread.start()

    def close(self) -> None:
        """End the stream; no frame is passed on any more."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(10)

    @property
    def silence_s(self) -> float:
        """Time since the last frame [s]; infinite before the first."""
        recent = list(self._recent)
        return (time.monotonic_ns() - recent[-1][0]) / 1e9 if recent else float("inf")

    def status(self) -> str:
        """One line for diagnostics: rate and delay from exposure to here, or what is wrong."""
        recent, silence_s = list(self._recent), self.silence_s
        if not recent or silence_s > self.settings.stall_s:
            since = f"no frame for {silence_s:.1f} s" if recent else "no frame yet"
            return f"{since}: {self.trouble}" if self.trouble else since
        span_s = (recent[-1][0] - recent[0][0]) / 1e9
        rate_hz = (len(recent) - 1) / span_s if span_s else 0.0
        delays_ms = np.array([delay for _, delay in recent]) / 1e6
        p50, p99 = np.percentile(delays_ms, (50, 99))
        return f"{self.description}: {rate_hz:.1f} Hz, delay p50 {p50:.1f} ms, p99 {p99:.1f} ms"

    # Inside -----------------------------------------------------------------------------------------------------------

    def _supervise(self) -> None:
        """The thread: one driver process after another."""
        processes = multiprocessing.get_context("spawn")
        buffer = processes.RawArray("B", SLOTS * 5 * self.settings.width * self.settings.height)
        pause_s = SHORTEST_PAUSE_S
        while not self._closing.is_set():
            here, there = processes.Pipe()
            driver = processes.Process(
                target=drive, args=(self.settings, buffer, there), name=f"camera_{self.name}", daemon=True
            )
            driver.start()
            self.driver_pid = driver.pid
            there.close()
            before = self.frames
            trouble, refused = self._listen(here, buffer)
            here.close()
            driver.join(0.5)
            if driver.is_alive():
                driver.kill()
                driver.join()
            with self._changed:
                self.trouble, self._refused = trouble, refused
                self._changed.notify_all()
            if self._closing.is_set():
                return
            self.reconnections += 1
            pause_s = SHORTEST_PAUSE_S if self.frames > before else min(2 * pause_s, LONGEST_PAUSE_S)
            self._closing.wait(pause_s)

    def _listen(self, link: Connection, buffer: Any) -> tuple[str, bool]:
        """Pass frames on until the driver ends or hangs; why, and whether asking again cannot help by itself."""
        slots = views_of(buffer, self.settings)
        before, limit_s = self.dropped, time.monotonic() + START_S
        try:
            while not self._closing.is_set():
                if not link.poll(0.1):
                    if time.monotonic() > limit_s:
                        return "its driver hangs", False
                    continue
                message = link.recv()
                if message[0] in ("refused", "failed"):
                    return message[1], message[0] == "refused"
                if message[0] == "opened":
                    self.description, *optics = message[1:]
                    self._optics = optics[0], optics[1]
                    limit_s = time.monotonic() + FIRST_FRAME_S + SPARE_S
                    continue
                _, slot, stamp_ns, dropped = message
                color, depth_mm = (part.copy() for part in slots[slot])
                link.send(slot)
                limit_s = time.monotonic() + self.settings.stall_s + SPARE_S
                self.dropped = before + dropped
                self._pass_on(color, depth_mm, stamp_ns)
            return "closed", False
        except (EOFError, OSError):
            return "its driver process ended", False

    def _pass_on(self, color: Any, depth_mm: Any, stamp_ns: int) -> None:
        assert self._optics is not None, "the driver says what it opened before the first frame"
        intrinsics, distortion = self._optics
        now_ns = time.monotonic_ns()
        self._recent.append((now_ns, now_ns - stamp_ns))
        self._on_frame(Frame(color, depth_mm, intrinsics, stamp_ns, distortion))
        with self._changed:
            self.frames += 1
            self.trouble, self._refused = "", False
            self._changed.notify_all()


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
