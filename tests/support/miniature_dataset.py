"""A small dataset as `merton dataset build` writes it, made in milliseconds: squares, blurred or with noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from merton.perception.attributes import attributes
from merton.perception.dataset import layout
from merton.perception.dataset.tables import MANIFEST_COLUMNS, REFERENCE_COLUMNS, write_tables
from merton.perception.images import encode_image
from merton.perception.quality import measure

CAMERAS = {"side": "third_person", "top": "third_person", "wrist": "first_person"}
TYPES = {"gaussian_blur": ("01", "blur"), "white_noise": ("12", "noise")}
LEVELS = (1, 2, 3, 4, 5)


def distorted(image: np.ndarray, distortion: str, level: float, seed: int) -> np.ndarray:
    """A copy that is blurred or has noise; level 0 changes nothing."""
    if distortion == "gaussian_blur":
        return np.asarray(cv2.GaussianBlur(image, (0, 0), 0.01 + 0.6 * level))
    noise = np.random.default_rng(seed).normal(0.0, 5.0 * level, image.shape)
    return np.clip(np.rint(image + noise), 0, 255).astype(np.uint8)


def write_miniature(
    folder: Path,
    scenes: int = 4,
    side_px: int = 48,
    levels: Sequence[int] = LEVELS,
    domain: str = "simulation",
    tasks: Sequence[str] = ("Push the cup",),
) -> Path:
    """Write a dataset of `scenes` scenes, seen by three cameras, with two types at the given levels; returns it."""
    records = []
    (folder / layout.REFUSED).parent.mkdir(parents=True, exist_ok=True)
    (folder / layout.REFUSED).write_bytes(b"file,reason\n")
    for scene in range(scenes):
        for view, (camera, perspective) in enumerate(CAMERAS.items()):
            name = f"test_{scene:02}_{camera}"
            image = picture(side_px, 10 * scene + view)
            tags = {"domain": domain, "perspective": perspective, "object": "container", "background": "table"}
            record: dict[str, Any] = dict.fromkeys(REFERENCE_COLUMNS, None) | tags
            record |= {"id": name, "tasks": list(tasks), **_file(folder, f"references/{name}.png", image)}
            record["images"] = [
                _copy(folder, name, image, kind, level, seed=100 * scene + 10 * view + level)
                for kind in TYPES
                for level in levels
            ]
            records.append(record)
    write_tables(folder, records, {"made": "for a test"})
    return folder


def picture(side_px: int, seed: int) -> np.ndarray:
    """A patchwork, (side, side, 3) uint8."""
    coarse = np.random.default_rng(seed).integers(40, 216, (6, 6, 3), dtype=np.uint8)
    return np.asarray(cv2.resize(coarse, (side_px, side_px), interpolation=cv2.INTER_NEAREST), np.uint8)


def _copy(folder: Path, reference: str, image: np.ndarray, kind: str, level: int, seed: int) -> dict[str, Any]:
    copy = distorted(image, kind, level, seed)
    row: dict[str, Any] = dict.fromkeys(MANIFEST_COLUMNS, None)
    row |= {"reference_id": reference, "distortion_id": TYPES[kind][0], "distortion": kind, "category": TYPES[kind][1]}
    row |= {"level": level, "psnr": measure("psnr", copy, image), "ssim": measure("ssim", copy, image)}
    return row | _file(folder, f"distorted/{reference}/{kind}_{level}.png", copy)


def _file(folder: Path, name: str, image: np.ndarray) -> dict[str, Any]:
    sha256 = layout.write(folder / name, encode_image(image))
    return {
        "file": name,
        "sha256": sha256,
        "width": image.shape[1],
        "height": image.shape[0],
        **vars(attributes(image)),
    }
