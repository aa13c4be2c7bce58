"""Cost of RealSense cameras, without hardware: software cameras at 640x480 and 30 Hz, each in its driver's process.

.venv/bin/python tools/studies/camera_rates.py wrist top side

Prints frames per second, CPU time per frame and the delay from exposure to the receiver. A driver's time includes
feeding its software camera, which itself takes a little more than a period: 28 Hz is all that comes.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "tests"))

import software_realsense as software
from merton.perception.camera import realsense, realsense_driver

SECONDS = 15.0
software.WIDTH, software.HEIGHT = 640, 480
software.FOCAL_PX, software.CENTRE_PX = (384.0, 384.0), (319.5, 239.5)
COLOR = np.random.default_rng(0).integers(0, 255, (480, 640, 3), np.uint8)
DEPTH = np.random.default_rng(0).integers(500, 3000, (480, 640), np.uint16)


def child_main(settings: realsense.CameraSettings, buffer: Any, link: Connection) -> None:
    """The driver's process, with a software camera in place of a real one."""
    software.color_image = lambda number: COLOR
    camera, stream_of = software.SoftwareCamera(baseline_m=0.059), realsense_driver.RealsenseStream

    def stream(settings: realsense.CameraSettings) -> realsense_driver.RealsenseStream:
        opened = stream_of(settings, camera.device)
        camera.feed_on(depth=DEPTH)
        return opened

    realsense_driver.RealsenseStream = stream  # type: ignore[assignment, misc]
    realsense_driver.child_main(settings, buffer, link)
    camera.pause()


def cpu_s(process: int | None) -> float:
    """CPU time of a process so far [s]."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(names: list[str]) -> None:
    """Measure."""
    realsense.child_main = child_main
    cameras = [
        realsense.RealsenseCamera(name, realsense.CameraSettings("software"), lambda frame: None) for name in names
    ]
    for camera in cameras:
        camera.connect()
    frames, began_s = sum(camera.frames for camera in cameras), time.monotonic()
    own_s, drivers_s = time.process_time(), sum(cpu_s(camera.driver_pid) for camera in cameras)
    threading.Event().wait(SECONDS)
    frames = sum(camera.frames for camera in cameras) - frames
    drivers_s = sum(cpu_s(camera.driver_pid) for camera in cameras) - drivers_s
    print(
        f"{frames / len(cameras) / (time.monotonic() - began_s):.1f} Hz a camera, receiver "
        f"{1e3 * (time.process_time() - own_s) / frames:.2f} ms and driver {1e3 * drivers_s / frames:.2f} ms of CPU "
        f"per frame, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    for camera in cameras:
        print(f"{camera.name}: {camera.status()}")
        camera.close()


if __name__ == "__main__":
    main(sys.argv[1:] or ["wrist", "top", "side"])
