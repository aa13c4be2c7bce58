"""The newest content of the page, passed from ROS threads to browsers. Old values are replaced, never queued."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HubFrame:
    """A camera image of one stream, such as "wrist/before".

    Attributes:
        stream: camera and "before" or "after" the distortion; "layout" for the drawing of a scene to arrange.
        stamp_ns: of the image, on the cell's clock [ns].
        jpeg: the file.
    """

    stream: str
    stamp_ns: int
    jpeg: bytes


@dataclass(frozen=True)
class Update:
    """The changes since the `version` of the last update.

    Attributes:
        version: for the next call of `Hub.since`.
        sections: name to newest content, ready for JSON.
        frames: the newest frame of every stream that has one.
    """

    version: int
    sections: dict[str, Any]
    frames: list[HubFrame]

    def __bool__(self) -> bool:
        return bool(self.sections or self.frames)


class Hub:
    """Writers put content, readers get all content newer than a version. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0
        self._sections: dict[str, tuple[int, Any]] = {}
        self._put_s: dict[str, float] = {}
        self._frames: dict[str, tuple[int, HubFrame]] = {}
        self._listeners: dict[object, Callable[[], None]] = {}

    def put(self, section: str, content: Any) -> None:
        """Replace a section; equal content is no update. `content` must not be changed afterwards."""
        with self._lock:
            self._put_s[section] = time.monotonic()
            if section in self._sections and self._sections[section][1] == content:
                return
            self._version += 1
            self._sections[section] = (self._version, content)
        self._notify()

    def get(self, section: str) -> Any:
        """The newest content of a section; None if there is none yet."""
        with self._lock:
            return self._sections.get(section, (0, None))[1]

    def age_s(self, section: str) -> float | None:
        """Time since a section was last put, also with equal content [s]; None if it never was."""
        with self._lock:
            put_s = self._put_s.get(section)
        return None if put_s is None else time.monotonic() - put_s

    def put_frame(self, frame: HubFrame) -> None:
        """Replace the frame of a stream."""
        with self._lock:
            self._version += 1
            self._frames[frame.stream] = (self._version, frame)
        self._notify()

    def since(self, version: int) -> Update:
        """Everything newer than `version`; 0 for all there is."""
        with self._lock:
            return Update(
                self._version,
                {name: content for name, (number, content) in self._sections.items() if number > version},
                [frame for number, frame in self._frames.values() if number > version],
            )

    @property
    def watched(self) -> bool:
        """Whether a browser is connected; without one, images need not be made."""
        return bool(self._listeners)

    @contextlib.contextmanager
    def listening(self, on_update: Callable[[], None]) -> Iterator[None]:
        """Have `on_update` called, from the writer's thread, after every put."""
        key = object()
        with self._lock:
            self._listeners[key] = on_update
        try:
            yield
        finally:
            with self._lock:
                del self._listeners[key]

    def _notify(self) -> None:
        with self._lock:
            listeners = list(self._listeners.values())
        for on_update in listeners:
            on_update()
