"""Cameras that run on clocks of their own: their frames have no stamp in common, and none with the joint states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from merton_nodes.ros import conversions as convert

PARTS = ("color", "depth", "camera_info", "distorted", "distortion info")
"""The messages of one exposure of one camera; all have its stamp."""
MOST_EXPOSURES = 30
"""Exposures of a camera that may wait for their distortion: a second at 30 Hz."""


class FreeCameras:
    """The newest complete exposure of every camera."""

    def __init__(self, cameras: Sequence[str]) -> None:
        self._exposures: dict[str, dict[int, dict[str, Any]]] = {camera: {} for camera in cameras}

    def add(self, camera: str, part: str, message: Any) -> None:
        """Add a message; forget exposures older than the newest complete one."""
        exposures = self._exposures[camera]
        stamp_ns = convert.nanoseconds_of(message.header.stamp)
        exposures.setdefault(stamp_ns, {})[part] = message
        complete_ns = max((stamp for stamp, parts in exposures.items() if len(parts) == len(PARTS)), default=0)
        newest = sorted(stamp for stamp in exposures if stamp >= complete_ns)[-MOST_EXPOSURES:]
        self._exposures[camera] = {stamp: exposures[stamp] for stamp in newest}

    def exposure(self, camera: str, since_ns: int, wanted: tuple[str, float, int]) -> dict[str, Any] | None:
        """Parts of the newest complete exposure since an instant, if it is distorted as wanted (name, level, seed)."""
        for stamp_ns, parts in sorted(self._exposures[camera].items(), reverse=True):
            if stamp_ns >= since_ns and len(parts) == len(PARTS):
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
