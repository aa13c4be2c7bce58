"""Cameras that run on clocks of their own: their frames have no stamp in common, and none with the joint states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from merton.perception.camera.pairing import LARGEST_GAP_NS, nearest
from merton_nodes.ros import conversions as convert

PARTS = ("color", "depth", "camera_info", "distorted", "distortion info")
"""The messages of one exposure of one camera; all have its stamp, but depth may be stamped beside colour."""
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
        self._messages: dict[str, dict[str, dict[int, Any]]] = {camera: {} for camera in cameras}

    def add(self, camera: str, part: str, message: Any) -> None:
        """Add a message; forget what is older than the newest complete exposure."""
        kept = self._messages[camera]
        kept.setdefault(part, {})[convert.nanoseconds_of(message.header.stamp)] = message
        complete = (stamp for stamp in kept.get("color", {}) if self._parts_at(camera, stamp) is not None)
        since_ns = max(complete, default=0) - LARGEST_GAP_NS
        for name, at in kept.items():
            kept[name] = {stamp: at[stamp] for stamp in sorted(at)[-MOST_EXPOSURES:] if stamp >= since_ns}

    def _parts_at(self, camera: str, stamp_ns: int) -> dict[str, Any] | None:
        """The messages of the exposure with a colour image of this stamp; None while one of them is missing."""
        kept, found = self._messages[camera], dict[str, Any]()
        depth_ns = nearest(kept.get("depth", ()), stamp_ns)
        for part in self.parts:
            at = depth_ns if part in ("depth", FAULTY_DEPTH) else stamp_ns
            if at is None or (message := kept.get(part, {}).get(at)) is None:
                return None
            found[part] = message
        return found

    def exposure(self, camera: str, since_ns: int, wanted: tuple[str, float, int]) -> dict[str, Any] | None:
        """Parts of the newest complete exposure since an instant, if it is distorted as wanted (name, level, seed)."""
        for stamp_ns in sorted(self._messages[camera].get("color", {}), reverse=True):
            parts = self._parts_at(camera, stamp_ns)
            if parts is None or min(convert.nanoseconds_of(part.header.stamp) for part in parts.values()) < since_ns:
                continue
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
