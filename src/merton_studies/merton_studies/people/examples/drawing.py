"""Pictures of a table with blocks and a bowl, drawn without a simulator, so that an example needs no other package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import cv2
import numpy as np

from merton.seeding import generator
from merton.world.observation import Image

WIDTH_PX, HEIGHT_PX = 320, 240
COLORS = {"red": (200, 50, 45), "green": (60, 150, 70), "blue": (50, 90, 190), "yellow": (225, 190, 60)}
BOWL = (245, 120)
"""Centre of the bowl [px]."""
FRAMES = 10

Motion = Literal["right", "stretched", "elsewhere", "wild", "still"]
"""Motion of a block: into the bowl; the same, but its form changes; to another place; all over the table; none."""


def table(seed: int) -> Image:
    """A table with three blocks at places of the seed and a bowl, (240, 320, 3) uint8 RGB."""
    return _drawn(seed, _places(seed), 1.0)


def episode(seed: int, motion: Motion) -> list[Image]:
    """The pictures of a block's way, `FRAMES` of them; the block is the first of `colors(seed)`."""
    start, rng = _places(seed)[0], generator("example", "motion", seed)
    end = {"elsewhere": (150, 205), "still": start}.get(motion, BOWL)
    pictures = []
    for share in np.linspace(0.0, 1.0, FRAMES):
        x, y = (round(a + float(share) * (b - a)) for a, b in zip(start, end, strict=True))
        if motion == "wild":
            x, y = int(rng.integers(30, 290)), int(rng.integers(30, 210))
        stretch = 1.0 + 1.2 * float(share) if motion == "stretched" else 1.0
        pictures.append(_drawn(seed, [(x, y), *_places(seed)[1:]], stretch))
    return pictures


def colors(seed: int) -> list[str]:
    """The colours of the blocks of a scene."""
    return [list(COLORS)[place] for place in generator("example", "colors", seed).permutation(len(COLORS))[:3]]


def _places(seed: int) -> list[tuple[int, int]]:
    rng = generator("example", "places", seed)
    rows = rng.permutation([60, 120, 180])
    return [(int(rng.integers(40, 150)), int(row)) for row in rows]


def _drawn(seed: int, places: Sequence[tuple[int, int]], stretch: float) -> Image:
    rng = generator("example", "table", seed)
    wood = np.array([188, 160, 120]) + rng.integers(-15, 15, 3)
    rows = np.clip(wood + rng.normal(0.0, 4.0, (HEIGHT_PX, 1, 1)), 0, 255).astype(np.uint8)
    picture = np.repeat(rows, WIDTH_PX, axis=1)
    cv2.circle(picture, BOWL, 42, (225, 225, 228), -1, cv2.LINE_AA)
    cv2.circle(picture, BOWL, 33, (170, 172, 180), -1, cv2.LINE_AA)
    for number, ((x, y), color) in enumerate(zip(places, colors(seed), strict=True)):
        half_x, half_y = round(17 * (stretch if number == 0 else 1.0)), round(17 / (stretch if number == 0 else 1.0))
        low, high = (x - half_x, y - half_y), (x + half_x, y + half_y)
        cv2.rectangle(picture, (low[0] + 4, low[1] + 5), (high[0] + 4, high[1] + 5), (120, 100, 75), -1)
        cv2.rectangle(picture, low, high, COLORS[color], -1)
    return picture
