"""Studies of paired differences whose truth is planted: drops of success under distortion, and differences of drops.

Each scene has one undistorted trial and `TYPES` distorted ones, which all share it, so that the differences of a scene
are alike. Used by interval_coverage.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from merton.seeding import generator

Floats = NDArray[np.float64]
Chances = tuple[Floats, Floats]
"""(scenes,) of success undistorted, and (scenes, TYPES) distorted."""

TYPES = 6
MANY = 400_000
_PROBIT = 0.35
"""By 1 / sqrt(1 + so much of the variance) a logistic's mean over a normal is nearer to .5."""


def _graded(before: float, after: float, spread: float = 1.0, of_types: float = 0.7) -> Callable[..., Chances]:
    """Scenes differ in difficulty by a normal of so many logits, and each distortion hits each scene differently."""

    def draw(rng: np.random.Generator, scenes: int) -> Chances:
        hard, hit = rng.standard_normal((scenes, 1)) * spread, rng.standard_normal((scenes, TYPES)) * of_types
        first = logit(before) * math.sqrt(1.0 + _PROBIT * spread**2) + hard[:, 0]
        wider = math.sqrt(1.0 + _PROBIT * (spread**2 + of_types**2 + 0.1))
        return expit(first), expit(logit(after) * wider + hard + hit + np.linspace(-0.5, 0.5, TYPES))

    return draw


def _rare(share: float) -> Callable[..., Chances]:
    """Nearly all trials of a few scenes are lost, and hardly one of the others."""

    def draw(rng: np.random.Generator, scenes: int) -> Chances:
        after = np.where(rng.random(scenes) < share, 0.03, 0.985)
        return np.full(scenes, 0.99), np.tile(after[:, None], TYPES)

    return draw


def _fixed(before: float, lost: float, gained: float) -> Callable[..., Chances]:
    """A policy without chance: a scene is done or not, and each distortion turns it over so often."""

    def draw(rng: np.random.Generator, scenes: int) -> Chances:
        done = rng.random(scenes) < before
        return done.astype(float), np.tile(np.where(done, 1.0 - lost, gained)[:, None], TYPES)

    return draw


AGENTS: dict[str, Callable[..., Chances]] = {
    ".81 to .50": _graded(0.81, 0.50),
    ".81, no effect": _graded(0.81, 0.81),
    ".97 to .90": _graded(0.97, 0.90),
    ".99 to .96": _graded(0.99, 0.96),
    ".15 to .10": _graded(0.15, 0.10),
    ".13 to .05": _graded(0.13, 0.05),
    ".08 to .02": _graded(0.08, 0.02),
    ".04 to .02": _graded(0.04, 0.018),
    ".04, no effect": _graded(0.04, 0.04),
    ".30 to .50": _graded(0.30, 0.50),
    "scenes of all kinds, .6 to .4": _graded(0.6, 0.4, 2.5, 0.3),
    "5 % of scenes lose nearly all": _rare(0.05),
    "13 % of scenes lose nearly all": _rare(0.13),
    "30 % of scenes lose nearly all": _rare(0.30),
    "no chance, .8, loses .1": _fixed(0.8, 0.1, 0.0),
    "no chance, .8, loses .02": _fixed(0.8, 0.02, 0.0),
    "no chance, .5, loses and gains .3": _fixed(0.5, 0.3, 0.3),
    "no chance, .9, loses and gains .005": _fixed(0.9, 0.005, 0.005),
}
PAIRS = (
    (".81 to .50", ".81 to .50"),
    (".81 to .50", ".81, no effect"),
    (".81 to .50", ".15 to .10"),
    (".97 to .90", ".97 to .90"),
    (".13 to .05", ".04, no effect"),
    ("13 % of scenes lose nearly all", "13 % of scenes lose nearly all"),
    ("13 % of scenes lose nearly all", "no chance, .8, loses .02"),
    ("no chance, .8, loses .1", "no chance, .8, loses .02"),
)
"""Of two agents in the same scenes, whose drops are compared."""


def differences(agents: tuple[str, ...], scenes: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
    """The drop of each distorted trial of one agent, or the difference of the drops of two, (n,); and its scene."""
    drops = []
    for agent in agents:
        before, after = AGENTS[agent](rng, scenes)
        done = (rng.random(before.shape) < before)[:, None].astype(float)
        drops.append((done - (rng.random(after.shape) < after)).ravel())
    scene = np.repeat(np.arange(scenes), TYPES)
    return (drops[0] if len(drops) == 1 else drops[0] - drops[1]), scene


@cache
def truth(agents: tuple[str, ...]) -> float:
    """The mean of `differences` over all scenes that there could be."""
    drops = []
    for agent in agents:
        before, after = AGENTS[agent](generator("truth of differences", agent), MANY)
        drops.append(float(before.mean() - after.mean()))
    return drops[0] if len(drops) == 1 else drops[0] - drops[1]
