"""A made-up data set of images as somebody else would hand it over: own distortions, own severities, own opinions.

Nothing here is Merton's: seven types that its registry has not, severities that are no levels 1 to 5, and names of
columns of its own. Opinions follow a planted law, `quality`, so that a study of them has a known result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from merton.perception.images import encode_image
from merton.results.csv_writer import csv_text

SEVERITIES = (0.1, 0.25, 0.5, 1.0)
"""As a lab might write them: ordered, and no whole numbers."""

TASKS = (
    "Reach above the bright patch",
    "Push the bright patch to the left",
    "Pick the bright patch up",
    "Place the bright patch on the dark patch",
    "Cover the bright patch with the dark patch",
)
TAGS = {
    "domain": ("real", "simulation"),
    "perspective": ("first_person", "third_person"),
    "object": ("block", "container", "food", "tool", "living"),
    "background": ("table", "kitchen", "room", "outdoors", "plain"),
}
COLUMNS = ("image", "original", "kind", "strength", "split", "scene", *TAGS, *(f"task_{n}" for n in range(1, 6)))
"""Of `table.csv`. `--column distorted=image` and so on tell `merton dataset import` which is which."""

NAMED = {"distorted": "image", "reference": "original", "type": "kind", "severity": "strength"}
"""Part of the import to the name of its column here, where the two differ."""


def checker(image: np.ndarray, severity: float) -> np.ndarray:
    """A checkered overlay of squares of 8 px."""
    row, column = np.indices(image.shape[:2])
    return _whole(image + 90.0 * severity * np.where((row // 8 + column // 8) % 2, 1.0, -1.0)[..., None])


def channel_swap(image: np.ndarray, severity: float) -> np.ndarray:
    """Red, green and blue change places, in part."""
    return _whole((1.0 - severity) * image + severity * image[..., ::-1])


def posterise(image: np.ndarray, severity: float) -> np.ndarray:
    """Fewer steps of each channel."""
    step = 16.0 + 112.0 * severity
    return _whole(np.floor(image / step) * step + step / 2.0)


def vignette(image: np.ndarray, severity: float) -> np.ndarray:
    """Dark corners."""
    rows, columns = (np.linspace(-1.0, 1.0, side) for side in image.shape[:2])
    return _whole(image * (1.0 - severity * np.clip(np.hypot(*np.meshgrid(columns, rows)) - 0.2, 0.0, 1.0))[..., None])


def scanlines(image: np.ndarray, severity: float) -> np.ndarray:
    """Every third line is darker."""
    return _whole(image * np.where(np.arange(image.shape[0]) % 3 == 0, 1.0 - severity, 1.0)[:, None, None])


def hue_roll(image: np.ndarray, severity: float) -> np.ndarray:
    """Hues turned by up to 90 degrees."""
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
    hsv[..., 0] = (hsv[..., 0].astype(np.int32) + round(45 * severity)) % 180
    return np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB))


def dither(image: np.ndarray, severity: float) -> np.ndarray:
    """Coarse ordered dither: a matrix of 2 x 2 thresholds."""
    row, column = np.indices(image.shape[:2])
    threshold = np.array([[32.0, 160.0], [224.0, 96.0]])[row // 2 % 2, column // 2 % 2][..., None]
    return _whole((1.0 - severity) * image + severity * np.where(image > threshold, 255.0, 0.0))


def _whole(image: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


TYPES: Mapping[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "checker": checker,
    "channel_swap": channel_swap,
    "posterise": posterise,
    "vignette": vignette,
    "scanlines": scanlines,
    "hue_roll": hue_roll,
    "dither": dither,
}
HARM = dict(zip(TYPES, (3.5, 1.0, 2.0, 2.5, 3.0, 0.5, 4.0), strict=True))
"""The planted loss of quality of each type at the severity 1."""


def quality(kind: str, severity: float) -> float:
    """The planted quality of a copy, 0 .. 5: 5 less the harm of its type times the root of its severity."""
    return float(5.0 - HARM[kind] * np.sqrt(severity))


@dataclass(frozen=True)
class Foreign:
    """What `write_foreign` wrote.

    Attributes:
        folder: `originals/`, `copies/<type>/` and the tables.
        table: a row for every copy, with `COLUMNS`.
        opinions: a row for every copy: image, mos (0 .. 5, the mean of the raters), and rater_1 .. rater_n.
    """

    folder: Path
    table: Path
    opinions: Path


def write_foreign(
    folder: Path,
    references: int = 60,
    *,
    types: int = 7,
    severities: tuple[float, ...] = SEVERITIES,
    size_px: tuple[int, int] = (96, 72),
    raters: int = 5,
    seed: int = 0,
) -> Foreign:
    """Write a data set: every reference through every type at every severity, tags, tasks, a split, and opinions.

    Args:
        folder: new or empty.
        references: number of pictures; two neighbours show one scene.
        types: the first so many of `TYPES`.
        severities: increasing, 0 .. 1.
        size_px: width and height.
        raters: opinions of a copy; each is `quality` plus an effect of the scene and noise, clipped to 0 .. 5.
        seed: of pictures and opinions; the same gives the same bytes.
    """
    rows, opinions = [], []
    for number in range(references):
        rng = np.random.default_rng([seed, number])
        image, name = picture(size_px, [seed, number]), f"view{number:03}"
        _write(folder / f"originals/{name}.png", image)
        effect = np.random.default_rng([seed, 10**6 + number // 2]).normal(0.0, 0.15)
        tags = [values[number % len(values)] for values in TAGS.values()]
        split = "test" if number // 2 % 5 == 0 else "train"
        for kind, severity in _settings(types, severities):
            file = f"copies/{kind}/{name}_{severity:g}.png"
            _write(folder / file, TYPES[kind](image, severity))
            about = (split, f"place{number // 2:02}", *tags, *TASKS)
            rows.append((file, f"originals/{name}.png", kind, f"{severity:g}", *about))
            given = np.clip(quality(kind, severity) + effect + rng.normal(0.0, 0.3, raters), 0.0, 5.0)
            opinions.append((file, f"{given.mean():.4f}", *(f"{value:.4f}" for value in given)))
    table, scores = folder / "table.csv", folder / "opinions.csv"
    table.write_text(csv_text(COLUMNS, rows), encoding="utf-8")
    header = ("image", "mos", *(f"rater_{rater}" for rater in range(1, raters + 1)))
    scores.write_text(csv_text(header, opinions), encoding="utf-8")
    return Foreign(folder, table, scores)


def picture(size_px: tuple[int, int], seed: list[int]) -> np.ndarray:
    """Smooth ground, coloured patches and a fine grain, (height, width, 3) uint8."""
    width, height = size_px
    rng = np.random.default_rng(seed)
    ground = cv2.resize(rng.integers(60, 200, (3, 4, 3), dtype=np.uint8), size_px, interpolation=cv2.INTER_CUBIC)
    for _ in range(8):
        centre = (int(rng.integers(0, width)), int(rng.integers(0, height)))
        color = tuple(int(value) for value in rng.integers(0, 256, 3))
        cv2.circle(ground, centre, int(rng.integers(4, max(5, height // 5))), color, -1)
    return _whole(ground + rng.normal(0.0, 3.0, ground.shape))


def _settings(types: int, severities: tuple[float, ...]) -> Iterator[tuple[str, float]]:
    return ((kind, severity) for kind in list(TYPES)[:types] for severity in severities)


def _write(file: Path, image: np.ndarray) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encode_image(image))
