"""Cameras that run on clocks of their own: their frames have no stamp in common, and none with the joint states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from merton_nodes.ros import conversions as convert

PARTS = ("color", "depth", "camera_info", "distorted", "distortion info")
"""The messages of one exposure of one camera; all have its stamp."""
FAULTY_DEPTH = "distorted depth"
"""A further part while a fault of depth is set."""
MOST_EXPOSURES = 30
"""Exposures of a camera that may wait for their distortion: a second at 30 Hz."""


class FreeCameras:
    """The newest complete exposure of every camera.

    Attributes:
        parts: the messages of an exposure that are waited for.
    """

    def __init__(self, cameras: Sequence[str]) -> None:
        self.parts: tuple[str, ...] = PARTS
        self._exposures: dict[str, dict[int, dict[str, Any]]] = {camera: {} for camera in cameras}

    def add(self, camera: str, part: str, message: Any) -> None:
        """Add a message; forget exposures older than the newest complete one."""
        exposures = self._exposures[camera]
        stamp_ns = convert.nanoseconds_of(message.header.stamp)
        exposures.setdefault(stamp_ns, {})[part] = message
        complete_ns = max((stamp for stamp, parts in exposures.items() if self._is_complete(parts)), default=0)
        newest = sorted(stamp for stamp in exposures if stamp >= complete_ns)[-MOST_EXPOSURES:]
        self._exposures[camera] = {stamp: exposures[stamp] for stamp in newest}

    def _is_complete(self, messages: Mapping[str, Any]) -> bool:
        return all(part in messages for part in self.parts)

    def exposure(self, camera: str, since_ns: int, wanted: tuple[str, float, int]) -> dict[str, Any] | None:
        """Parts of the newest complete exposure since an instant, if it is distorted as wanted (name, level, seed)."""
        for stamp_ns, parts in sorted(self._exposures[camera].items(), reverse=True):
            if stamp_ns >= since_ns and self._is_complete(parts):
                info = parts["distortion info"]
                return parts if (info.name, info.level, info.seed) == wanted else None
        return None

    def missing(self, cameras: Iterable[str], since_ns: int, wanted: tuple[str, float, int]) -> list[str]:
        """Those of the cameras without such an exposure."""
        return [camera for camera in cameras if self.exposure(camera, since_ns, wanted) is None]

    def messages(self, cameras: Iterable[str], since_ns: int, wanted: tuple[str, float, int]) -> dict[str, Any]:
        """The messages of the exposures that `exposure` returns, under "<camera> <part>"."""
        return {
            f"{camera} {part}": message
            for camera in cameras
            for part, message in (self.exposure(camera, since_ns, wanted) or {}).items()
        }
