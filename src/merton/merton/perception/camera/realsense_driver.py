"""One RealSense camera through librealsense, and the process that runs it.

A separate process, because librealsense (2.59) holds Python's global lock while it searches for a camera, starts it
and aligns a frame: 15 s, measured, for a camera that is not connected.
"""

from __future__ import annotations

import contextlib
import signal
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InfrastructureError, InputError, MissingDependencyError, require
from merton.perception.camera.exposure_clock import ExposureClock
from merton.perception.camera.frame import CameraFrame
from merton.world.observation import Image, Intrinsics

FIRST_FRAME_S = 5.0
"""Longest time from the start of a camera to its first frame [s]."""
SLOTS = 3
"""Frames that fit into the memory shared with the parent: one written, one read, one waiting."""
RECORDINGS = (".db3", ".bag")
"""Suffixes of devices that are files: recordings of librealsense since 2.58, and before."""
_EXPOSURE_UNIT_US = 100.0  # of the colour sensor's option, from UVC


@dataclass(frozen=True)
class CameraSettings:
    """The settings of a camera.

    Attributes:
        device: serial number, or the path of a recording made by librealsense (it plays over and over).
        width, height: size of colour and depth [px].
        rate_hz: frames per second.
        exposure_us: exposure of the colour sensor [us], in steps of 100; 0 for automatic. Not for recordings.
        gain: of the colour sensor, in its own unit; 0 leaves it as it is. Only with a fixed exposure.
        stall_s: silence after which a stream is given up [s].
    """

    device: str
    width: int = 640
    height: int = 480
    rate_hz: int = 30
    exposure_us: float = 0.0
    gain: float = 0.0
    stall_s: float = 1.0

    @property
    def is_recording(self) -> bool:
        """Whether the device is a file."""
        return self.device.endswith(RECORDINGS)


class RealsenseStream:
    """Colour with aligned depth of one camera, through a real `rs.pipeline`.

    Args:
        device: an `rs.device` to use without a search: tests stream from an `rs.software_device`.

    Attributes:
        description: the camera in words.
        intrinsics, distortion: of the colour image, from the camera's calibration.

    Raises:
        MissingDependencyError: pyrealsense2 or libusb is not installed.
        InputError: no such camera or recording, or it does not offer the size, the rate or the exposure.
        InfrastructureError: it does not start.
    """

    def __init__(self, settings: CameraSettings, device: Any = None) -> None:
        self.settings, self._rs = settings, librealsense()
        rs = self._rs
        context = rs.context()
        device = device or self._find(context)
        profiles = self._profiles(device)
        config = rs.config()
        for stream, pixels in ((rs.stream.color, rs.format.rgb8), (rs.stream.depth, rs.format.z16)):
            config.enable_stream(stream, settings.width, settings.height, pixels, settings.rate_hz)
        self._pipeline = rs.pipeline(context)
        if settings.is_recording:
            config.enable_device_from_file(settings.device)
        else:
            self._pipeline.set_device(device)  # config.enable_device would wait 15 s for one that has just gone
            for sensor in device.query_sensors():
                _set(sensor, rs.option.global_time_enabled, 1.0)
            self._expose(next(s for s in device.query_sensors() if rs.stream.color in _streams(s)))
        try:
            self._pipeline.start(config)
        except RuntimeError as error:
            raise InfrastructureError(f"the camera {settings.device} does not start: {error}") from None
        optics = profiles[rs.stream.color].get_intrinsics()
        plumb_bob = ("none", "brown_conrady", "inverse_brown_conrady", "modified_brown_conrady")
        if optics.model not in [getattr(rs.distortion, name) for name in plumb_bob]:
            raise InputError(
                f"the lens model {optics.model} of {settings.device} does not fit a CameraInfo of plumb_bob"
            )
        self.intrinsics = Intrinsics(optics.width, optics.height, optics.fx, optics.fy, optics.ppx, optics.ppy)
        self.distortion = tuple(optics.coeffs)
        self.description = _describe(rs, device)
        self._align = rs.align(rs.stream.color)
        self._clock = ExposureClock()
        self._number: int | None = None
        self._timeout_s = FIRST_FRAME_S

    def read(self) -> CameraFrame:
        """The next colour image with the depth of the same exposure; stamped on the clock of `time.monotonic_ns`.

        The arrays are in librealsense's small buffer: copy them.

        Raises:
            InfrastructureError: no frame for `stall_s`, or the camera was unplugged.
        """
        end_s = time.monotonic() + self._timeout_s
        while (left_s := end_s - time.monotonic()) > 0:
            try:
                arrived, frames = self._pipeline.try_wait_for_frames(max(1, int(1000 * left_s)))
            except RuntimeError as error:
                raise InfrastructureError(f"the camera {self.settings.device} failed: {error}") from None
            arrival_ns, arrival_wall_ns = time.monotonic_ns(), time.time_ns()
            if not arrived or not self._is_new_pair(frames):
                continue
            self._timeout_s = self.settings.stall_s
            aligned = self._align.process(frames)
            color, depth = aligned.get_color_frame(), aligned.get_depth_frame()
            wall = (self._rs.timestamp_domain.global_time, self._rs.timestamp_domain.system_time)
            stamp_ns = self._clock.monotonic_ns(
                color.get_timestamp(), color.get_frame_timestamp_domain() in wall, arrival_ns, arrival_wall_ns
            )
            depth_mm = millimetres(np.asanyarray(depth.get_data()), depth.get_units())
            pixels: Image = np.asanyarray(color.get_data())
            return CameraFrame(pixels, depth_mm, self.intrinsics, stamp_ns, self.distortion)
        raise InfrastructureError(f"no frame from {self.settings.device} for {self._timeout_s:g} s")

    def close(self) -> None:
        """Stop streaming."""
        with contextlib.suppress(RuntimeError):
            self._pipeline.stop()

    # Inside -----------------------------------------------------------------------------------------------------------

    def _is_new_pair(self, frames: Any) -> bool:
        """Whether colour is new and depth belongs to it: librealsense repeats the one that has not changed."""
        color, depth = frames.get_color_frame(), frames.get_depth_frame()
        if not color or not depth or color.get_frame_number() == self._number:
            return False
        if abs(color.get_timestamp() - depth.get_timestamp()) > 500.0 / self.settings.rate_hz:
            return False
        self._number = color.get_frame_number()
        return True

    def _find(self, context: Any) -> Any:
        """The camera of that serial number, or the recording."""
        rs, wanted = self._rs, self.settings.device
        if self.settings.is_recording:
            if not Path(wanted).is_file():
                raise InputError(f"there is no recording {wanted!r}")
            try:
                return context.load_device(wanted)
            except RuntimeError as error:
                raise InputError(f"cannot read {wanted!r} as a recording of librealsense: {error}") from None
        connected = {}
        for device in context.query_devices():
            with contextlib.suppress(RuntimeError):  # one that is being unplugged
                connected[device.get_info(rs.camera_info.serial_number)] = device
        if wanted not in connected:
            there = ", ".join(sorted(f"{serial} ({_describe(rs, device)})" for serial, device in connected.items()))
            raise InputError(
                f"no RealSense camera has the serial number {wanted!r}; connected: {there or 'none at all'}"
            )
        return connected[wanted]

    def _profiles(self, device: Any) -> dict[Any, Any]:
        """The profiles of colour and depth of the settings' size and rate."""
        rs, own = self._rs, self.settings
        formats = {rs.stream.color: rs.format.rgb8, rs.stream.depth: rs.format.z16}
        offered: dict[Any, dict[tuple[int, int, int], Any]] = {stream: {} for stream in formats}
        for sensor in device.query_sensors():
            for profile in sensor.get_stream_profiles():
                stream = profile.stream_type()
                if stream in formats and profile.format() == formats[stream]:
                    video = profile.as_video_stream_profile()
                    offered[stream][video.width(), video.height(), video.fps()] = video
        both = sorted(set.intersection(*(set(sizes) for sizes in offered.values())))
        wanted = own.width, own.height, own.rate_hz
        if wanted not in both:
            choices = ", ".join(f"{width}x{height} at {rate_hz} Hz" for width, height, rate_hz in both) or "none"
            raise InputError(
                f"{own.device} has no colour and depth of {own.width}x{own.height} at {own.rate_hz} Hz; "
                f"choose one of: {choices}"
            )
        return {stream: sizes[wanted] for stream, sizes in offered.items()}

    def _expose(self, sensor: Any) -> None:
        """Fix the exposure, or leave it to the camera; either way the dark must not lower the frame rate."""
        option, own = self._rs.option, self.settings
        _set(sensor, option.auto_exposure_priority, 0.0)
        if not own.exposure_us:
            _set(sensor, option.enable_auto_exposure, 1.0)
            return
        _set(sensor, option.enable_auto_exposure, 0.0)
        _set_in_range(sensor, option.exposure, own.exposure_us, _EXPOSURE_UNIT_US, f"exposure_us of {own.device}")
        if own.gain:
            _set_in_range(sensor, option.gain, own.gain, 1.0, f"gain of {own.device}")


def librealsense() -> Any:
    """The module pyrealsense2; raises MissingDependencyError if it or the libusb it needs is absent."""
    return require("pyrealsense2", "lab", "a RealSense camera (with Debian's libusb-1.0-0)")


def millimetres(raw: NDArray[np.uint16], unit_m: float) -> NDArray[np.uint16]:
    """Depth (height, width) in whole millimetres from multiples of `unit_m` [m]; 0 where unknown or beyond 65.5 m."""
    if abs(unit_m - 0.001) < 1e-9:
        return raw
    scaled = np.rint(raw * (unit_m * 1000.0))
    return np.where(scaled <= 65535, scaled, 0).astype(np.uint16)


def views_of(buffer: Any, settings: CameraSettings) -> list[tuple[Image, NDArray[np.uint16]]]:
    """The slots of the shared memory as (colour, depth) arrays."""
    size = settings.height, settings.width
    pixels = settings.height * settings.width
    whole = np.frombuffer(buffer, np.uint8).reshape(SLOTS, 5 * pixels)
    return [(s[: 3 * pixels].reshape(*size, 3), s[3 * pixels :].view(np.uint16).reshape(size)) for s in whole]


def child_main(settings: CameraSettings, buffer: Any, link: Connection) -> None:
    """Main function of the process: frames into the shared memory until the stream fails or the parent is gone.

    Sends ("opened", description, intrinsics, distortion) once, ("frame", slot, stamp_ns, count of dropped) for each
    frame, and ("refused" or "failed", sentence) last. Receives the number of each slot that has been read.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stream = None
    try:
        stream = RealsenseStream(settings)
        slots, free, dropped = views_of(buffer, settings), set(range(SLOTS)), 0
        link.send(("opened", stream.description, stream.intrinsics, stream.distortion))
        while True:
            frame = stream.read()
            while link.poll():
                free.add(link.recv())
            if not free:
                dropped += 1
                continue
            slot = free.pop()
            color, depth_mm = slots[slot]
            np.copyto(color, frame.color)
            assert frame.depth_mm is not None, "a stream has both"
            np.copyto(depth_mm, frame.depth_mm)
            link.send(("frame", slot, frame.stamp_ns, dropped))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the parent is gone
    except Exception as error:
        refused = isinstance(error, (InputError, MissingDependencyError))
        with contextlib.suppress(OSError):
            link.send(("refused" if refused else "failed", str(error)))
    finally:
        if stream is not None:
            stream.close()


def _streams(sensor: Any) -> set[Any]:
    return {profile.stream_type() for profile in sensor.get_stream_profiles()}


def _set(sensor: Any, option: Any, value: float) -> None:
    """Set an option where the sensor has it."""
    if sensor.supports(option) and not sensor.is_option_read_only(option):
        sensor.set_option(option, value)


def _set_in_range(sensor: Any, option: Any, value: float, unit: float, name: str) -> None:
    """Set an option; InputError if the sensor does not have it, or not this value."""
    if not sensor.supports(option):
        raise InputError(f"{name} cannot be set: its colour sensor has no such option")
    limits = sensor.get_option_range(option)
    steps = round(value / unit)
    if not limits.min <= steps <= limits.max:
        raise InputError(f"{name} must be {limits.min * unit:g} .. {limits.max * unit:g}, got {value:g}")
    sensor.set_option(option, float(steps))


def _describe(rs: Any, device: Any) -> str:
    """Model, serial number, firmware and bus of a device, as far as known."""
    info = rs.camera_info
    keys = {info.name: "", info.serial_number: "", info.firmware_version: "firmware ", info.usb_type_descriptor: "USB "}
    known = [prefix + device.get_info(key) for key, prefix in keys.items() if device.supports(key)]
    return ", ".join(known) or "unnamed"
