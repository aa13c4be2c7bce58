"""Camera frames from a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.perception.camera.bag_topics import COLOR, DEPTH, INFO, CameraTopics, cameras_of, image_topics
from merton.perception.camera.decoding import color_of, depth_mm_of
from merton.perception.camera.folder import d455_intrinsics
from merton.perception.camera.frame import CameraFrame
from merton.perception.camera.pairing import LARGEST_GAP_NS, check_aligned, nearest
from merton.recording.entry import Entry
from merton.recording.messages import header_ns, reading
from merton.recording.reader import RecordingReader
from merton.world.camera_info import intrinsics_of, lens_of

_MOST_WAITING = 10
"""Colour images of one camera that wait for their other parts; beyond that the oldest takes what is there."""
_SET_BACK_NS = 1_000_000_000
"""A stamp that lies further before the newest one of its topic is of another pass of the clock: a simulation that was
reset, a bag that was recorded in a loop, a clock that was set. Ours: no camera sends its images that much out of
order."""
_BEFORE_ALL = -1
"""The stamp under which a camera_info of an earlier pass is kept: it is older than any image [ns]."""


class BagCamera:
    """The frames of a recording in the order of their images, up to its end or to where a crash has cut it off.

    A frame is a colour image with the nearest depth, at most `LARGEST_GAP_NS` away, and the nearest camera_info, as far
    as the recording has these topics; without any camera_info the intrinsics are those of a D455.

    Args:
        file: an MCAP file or a database of rosbag2, or the folder of a bag with its parts.
        cameras: names, as of `merton.perception.camera.bag_topics.cameras_of`; None for all cameras of the recording.
        topics: the topic of the colour image of a camera, and under "<camera>.depth" that of its depth, where they
            have other names than those of realsense-ros.

    Attributes:
        cameras: names of the cameras that are played.
        without_info: those of them whose camera_info the recording lacks.
        without_depth: colour images of each camera that the last pass left out, because no depth is near them.

    Raises:
        MissingDependencyError: the packages that read recordings are not installed.
        InputError: there is no such file, it is no recording, or it has no images of a camera in `cameras`.
    """

    def __init__(
        self, file: str | Path, cameras: Sequence[str] | None = None, topics: Mapping[str, str] | None = None
    ) -> None:
        path = Path(file)
        if not path.exists():
            raise InputError(f"there is no recording {str(file)!r} to play")
        self.reader = RecordingReader(path)
        seen = self.reader.topics()
        there = cameras_of(seen, topics or {})
        self.cameras = list(there if cameras is None else cameras)
        missing = [camera for camera in self.cameras if camera not in there]
        if missing or not there:
            raise InputError(
                f"{str(file)!r} has no images of {', '.join(missing) or 'any camera'}; "
                f"cameras in it: {', '.join(there) or 'none'}; image topics in it: {image_topics(seen)}; a camera of "
                f"another topic is named as in top=/my/camera/image_raw"
            )
        self._topics = {camera: there[camera] for camera in self.cameras}
        self.without_info = [camera for camera, topics in self._topics.items() if INFO not in topics.names]
        self.without_depth = dict.fromkeys(self.cameras, 0)

    def __iter__(self) -> Iterator[tuple[str, CameraFrame]]:
        """Camera and frame, one after the other; stamps are those of the recording.

        Raises:
            InputError: an image cannot be read, or a camera has no frame of which all parts are there.
        """
        waiting = {camera: _Waiting(camera, topics) for camera, topics in self._topics.items()}
        parts: dict[str, list[tuple[str, str]]] = {}
        for camera, topics in self._topics.items():
            for kind, topic in topics.names.items():
                parts.setdefault(topic, []).append((camera, kind))
        for entry in self.reader.entries(parts):
            for camera, kind in parts[entry.topic]:
                for frame in waiting[camera].take(kind, entry):
                    yield camera, self._frame(frame, self._topics[camera].rectified)
        for camera, rest in waiting.items():
            for frame in rest.complete(at_end=True):
                yield camera, self._frame(frame, self._topics[camera].rectified)
        self.without_depth = {camera: rest.without_depth for camera, rest in waiting.items()}
        for rest in waiting.values():
            if not rest.frames:
                raise InputError(f"{self.reader.path}: {rest.why_none()}{self.reader.in_brackets}")

    def check(self) -> None:
        """Read the first frame of each camera; raises InputError as iterating does."""
        left = set(self.cameras)
        for camera, _ in self:
            left.discard(camera)
            if not left:
                return

    def _frame(self, parts: dict[str, _Part], rectified: bool) -> CameraFrame:
        color, depth_mm = self._read(parts[COLOR], color_of), None
        if DEPTH in parts:
            color_frame = parts[COLOR].message.header.frame_id
            self._read(parts[DEPTH], lambda message: check_aligned(color_frame, message.header.frame_id))
            depth_mm = self._read(parts[DEPTH], depth_mm_of)
        intrinsics, model, distortion = d455_intrinsics(color.shape[1], color.shape[0]), "plumb_bob", ()
        if INFO in parts:
            intrinsics = self._read(parts[INFO], partial(intrinsics_of, rectified=rectified))
            model, distortion = self._read(parts[INFO], partial(lens_of, rectified=rectified))
        try:
            return CameraFrame(color, depth_mm, intrinsics, parts[COLOR].stamp_ns, distortion, model)
        except InputError as error:
            raise InputError(f"{parts[COLOR].entry.file}: {parts[COLOR].entry.topic}: {error}") from None

    def _read(self, part: _Part, reader: Callable[[Any], Any]) -> Any:
        with reading(part.entry):
            try:
                return reader(part.message)
            except InputError as error:
                raise InputError(f"{part.entry.file}: {part.entry.topic}: {error}") from None


@dataclass(frozen=True)
class _Part:
    """A message that is a part of a frame."""

    entry: Entry
    stamp_ns: int
    message: Any


@dataclass
class _Waiting:
    """The parts of one camera that have no frame yet."""

    camera: str
    topics: CameraTopics
    frames: int = 0
    without_depth: int = 0
    """Colour images that were left out because no depth is near."""
    seen: set[str] = field(default_factory=set)
    least_gap_ns: int | None = None
    """Smallest gap so far between the stamps of a colour image and of depth [ns]; None without depth."""
    newest_ns: dict[str, int] = field(default_factory=dict)
    """The newest stamp of images of each kind in this pass of the clock [ns]."""
    parts: dict[str, dict[int, _Part]] = field(default_factory=lambda: {COLOR: {}, DEPTH: {}, INFO: {}})

    def take(self, kind: str, entry: Entry) -> Iterator[dict[str, _Part]]:
        """Keep a message; the parts of each frame that is decided with it.

        Raises:
            InputError: images without stamps, of a camera with depth.
        """
        with reading(entry):
            message = entry.decode()
            part = _Part(entry, header_ns(message), message)
        if kind != INFO:  # whose stamp may stay the same
            newest_ns = self.newest_ns.get(kind, part.stamp_ns)
            if kind in self.newest_ns and newest_ns == part.stamp_ns == 0 and DEPTH in self.topics.kinds:
                raise InputError(
                    f"{entry.file}: the images on {entry.topic} have no stamps but 0, and by stamps the depth of a "
                    f"colour image is found: record them with stamps, or without depth"
                )
            if newest_ns - part.stamp_ns > _SET_BACK_NS:
                yield from self._end_of_pass()
            self.newest_ns[kind] = max(part.stamp_ns, self.newest_ns.get(kind, part.stamp_ns))
        self.seen.add(kind)
        self.parts[kind][part.stamp_ns] = part
        yield from self.complete()

    def _end_of_pass(self) -> Iterator[dict[str, _Part]]:
        """The frames that still wait; of their parts the last camera_info alone is kept, which may come only once."""
        yield from self.complete(at_end=True)
        last = max(self.parts[INFO], default=None)
        info = {} if last is None else {_BEFORE_ALL: self.parts[INFO][last]}
        self.parts = {COLOR: {}, DEPTH: {}, INFO: info}
        self.newest_ns.clear()

    def complete(self, at_end: bool = False) -> Iterator[dict[str, _Part]]:
        """The parts of each frame of which none can come any more that is nearer."""
        while self.parts[COLOR]:
            stamp_ns = min(self.parts[COLOR])
            if not (at_end or len(self.parts[COLOR]) > _MOST_WAITING or self._is_decided(stamp_ns)):
                return
            found = {COLOR: self.parts[COLOR].pop(stamp_ns)}
            gap_ns = {DEPTH: LARGEST_GAP_NS, INFO: None}
            for kind, largest_ns in gap_ns.items():
                if (at := nearest(self.parts[kind], stamp_ns, largest_ns)) is not None:
                    found[kind] = self.parts[kind][at]
            self._note(stamp_ns)
            self._forget(stamp_ns)
            if set(found) == self.topics.kinds:
                self.frames += 1
                yield found
            elif DEPTH in self.topics.kinds - set(found):
                self.without_depth += 1

    def _is_decided(self, stamp_ns: int) -> bool:
        """Whether depth and camera_info of this stamp, or of a later one, are there."""
        return all(max(self.parts[kind], default=-1) >= stamp_ns for kind in self.topics.kinds - {COLOR})

    def _note(self, stamp_ns: int) -> None:
        at = nearest(self.parts[DEPTH], stamp_ns, None)
        if at is not None:
            gap_ns = abs(at - stamp_ns)
            self.least_gap_ns = gap_ns if self.least_gap_ns is None else min(gap_ns, self.least_gap_ns)

    def _forget(self, before_ns: int) -> None:
        """Forget depth that is too old for a later image, and all but the newest camera_info before it."""
        for kind in (DEPTH, INFO):
            old = sorted(at for at in self.parts[kind] if at < before_ns - LARGEST_GAP_NS)
            for at in old if kind == DEPTH else old[:-1]:
                del self.parts[kind][at]

    def why_none(self) -> str:
        """The reason why the camera has no frame, in a sentence."""
        camera = f"the camera {self.camera!r} has no frame of which all parts are there"
        if silent := [topic for kind, topic in self.topics.names.items() if kind not in self.seen]:
            return f"{camera}: no message is on {' and '.join(silent)}"
        gap_ms = (self.least_gap_ns or 0) / 1e6
        return (
            f"{camera}: the stamps of depth and colour are never nearer than {gap_ms:.0f} ms, and "
            f"{LARGEST_GAP_NS / 1e6:.0f} ms is the most"
        )
