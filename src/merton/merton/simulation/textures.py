"""Procedural textures: the share of dark in a surface, (SIDE_PX, SIDE_PX) float32 in 0..1, from a random generator.

The pools of training and of the split `shift` have no texture in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

SIDE_PX = 512
Pattern = NDArray[np.float32]
Array = NDArray[np.floating]


def texture(name: str, rng: np.random.Generator) -> Pattern:
    """One texture of a kind, one of `TRAINED` or `SHIFTED`."""
    return np.clip(_KINDS[name](rng), 0.0, 1.0).astype(np.float32)


def noise(rng: np.random.Generator, cells: tuple[int, int], octaves: int = 4) -> Pattern:
    """Smooth noise about 0.5: sums of random grids, each twice as fine and half as strong as the one before.

    Args:
        cells: rows and columns of the coarsest grid; more of one than of the other make a grain.
    """
    total, weight = np.zeros((SIDE_PX, SIDE_PX), np.float32), 0.0
    for octave in range(octaves):
        shape = tuple(min(SIDE_PX, side * 2**octave) for side in cells)
        grid = rng.random(shape, dtype=np.float32)
        total += cv2.resize(grid, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_CUBIC) / 2**octave
        weight += 1 / 2**octave
    return total / np.float32(weight)


def _axes() -> tuple[Pattern, Pattern]:
    line = np.linspace(0.0, 1.0, SIDE_PX, endpoint=False, dtype=np.float32)
    rows, columns = np.meshgrid(line, line, indexing="ij")
    return rows, columns


def _plain(rng: np.random.Generator) -> Array:
    return 0.3 + 0.1 * noise(rng, (4, 4))


def _wood(rng: np.random.Generator) -> Array:
    rows, _ = _axes()
    rings = np.sin(2 * math.pi * (rng.uniform(4, 10) * rows + 2.5 * noise(rng, (4, 2), 3)))
    return 0.35 + 0.25 * rings + 0.6 * (noise(rng, (96, 4), 3) - 0.5)


def _planks(rng: np.random.Generator) -> Array:
    boards = int(rng.integers(4, 9))
    rows, _ = _axes()
    number = np.floor(rows * boards).astype(int)
    tone = rng.uniform(0.1, 0.6, boards).astype(np.float32)[number]
    return np.where(rows * boards % 1.0 < 0.03, 1.0, tone + 0.5 * (noise(rng, (128, 4), 3) - 0.5))


def _speckle(rng: np.random.Generator) -> Array:
    fine = noise(rng, (96, 96), 2)
    return 0.2 + 0.8 * (fine > np.quantile(fine, rng.uniform(0.75, 0.93))) * rng.uniform(0.4, 1.0)


def _cloth(rng: np.random.Generator) -> Array:
    rows, columns = _axes()
    threads = rng.uniform(40, 70)
    weave = np.sin(2 * math.pi * threads * rows) * np.sin(2 * math.pi * threads * columns)
    return 0.4 + 0.25 * weave + 0.5 * (noise(rng, (6, 6)) - 0.5)


def _concrete(rng: np.random.Generator) -> Array:
    return 0.5 + 1.1 * (noise(rng, (3, 3), 6) - 0.5)


def _marble(rng: np.random.Generator) -> Array:
    rows, columns = _axes()
    angle = rng.uniform(0, math.pi)
    along = rows * math.cos(angle) + columns * math.sin(angle)
    return 1.0 - np.abs(np.sin(math.pi * (rng.uniform(2, 5) * along + 3.0 * noise(rng, (3, 3), 5)))) ** 0.4


def _tiles(rng: np.random.Generator) -> Array:
    rows, columns = _axes()
    across = int(rng.integers(4, 10))
    joint = (rows * across % 1.0 < 0.05) | (columns * across % 1.0 < 0.05)
    tone = rng.uniform(0.05, 0.35, (across, across)).astype(np.float32)
    return np.where(joint, 1.0, tone[(rows * across).astype(int), (columns * across).astype(int)])


def _stripes(rng: np.random.Generator) -> Array:
    rows, columns = _axes()
    angle = rng.uniform(0, math.pi)
    along = rows * math.cos(angle) + columns * math.sin(angle)
    return 0.5 + 0.5 * np.tanh(6 * np.sin(2 * math.pi * rng.uniform(6, 16) * along))


def _checks(rng: np.random.Generator) -> Array:
    rows, columns = _axes()
    across = int(rng.integers(6, 14))
    return ((np.floor(rows * across) + np.floor(columns * across)) % 2) * 0.9


_KINDS: dict[str, Callable[[np.random.Generator], Array]] = {
    "plain": _plain,
    "wood": _wood,
    "planks": _planks,
    "speckle": _speckle,
    "cloth": _cloth,
    "concrete": _concrete,
    "marble": _marble,
    "tiles": _tiles,
    "stripes": _stripes,
    "checks": _checks,
}
TRAINED = ("plain", "wood", "planks", "speckle", "cloth", "concrete")
SHIFTED = ("marble", "tiles", "stripes", "checks")
