"""The cameras among the features of a dataset, as its info.json declares them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton_studies.lerobot import layout


@dataclass(frozen=True)
class Camera:
    """A feature with colour pictures.

    Attributes:
        key: name of the feature, such as "observation.images.top".
        is_video: it is stored as videos; else as pictures in the tables.
        height_px, width_px, channels: as the feature declares.
        info: of its videos, as info.json has it.
    """

    key: str
    is_video: bool
    height_px: int
    width_px: int
    channels: int
    info: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The key without the beginning that all cameras share: "top"."""
        return self.key.removeprefix(layout.IMAGES)


def cameras_of(
    features: Mapping[str, Mapping[str, Any]], file: Path
) -> tuple[dict[str, Camera], tuple[str, ...], tuple[str, ...]]:
    """Key to camera of those with colour pictures, the keys of those of depth, and of those without three channels.

    Raises InputError, which names the file, for a camera without height, width and channels.
    """
    pictures = {key: one for key, one in features.items() if _is_picture(one)}
    depth = tuple(key for key, one in pictures.items() if _is_depth(one))
    found = [_camera(key, one, file) for key, one in pictures.items() if key not in depth]
    other = tuple(one.key for one in found if one.channels != 3)
    return {one.key: one for one in found if one.channels == 3}, depth, other


def _is_picture(feature: Mapping[str, Any]) -> bool:
    return feature.get("dtype") in ("video", "image")


def _is_depth(feature: Mapping[str, Any]) -> bool:
    """As lerobot 0.6.1 tells it, with the names of earlier versions."""
    marks = [feature.get(name) or {} for name in ("info", "video_info")]
    return any(mark.get("is_depth_map") or mark.get("video.is_depth_map") for mark in marks)


def _camera(key: str, feature: Mapping[str, Any], file: Path) -> Camera:
    """A camera, whose shape may be declared with the channels first or last: the pictures are as they are stored."""
    shape, names = feature.get("shape"), feature.get("names")
    if not isinstance(shape, list) or len(shape) != 3 or not all(isinstance(one, int) and one > 0 for one in shape):
        raise InputError(f"{file}: the shape of {key!r} must be height, width and channels, got {shape!r}")
    first = str(names[0]).startswith("channel") if isinstance(names, list) and names else shape[0] in (1, 3, 4)
    channels, height, width = shape if first else (shape[2], *shape[:2])
    info = feature.get("info") or feature.get("video_info") or {}
    return Camera(key, feature["dtype"] == "video", height, width, channels, info)
