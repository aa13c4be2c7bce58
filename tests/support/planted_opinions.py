"""Opinions with planted effects, without models or images."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from merton_studies.opinions.opinion import VALUES, Images, Opinions, SubjectSums, opinions

CAMERAS = ("side", "top", "wrist")
CHANCE = {"cognition": 1.0, "decision": 2.0}

Mean = Callable[[str, int], float]


def planted_sums(
    types: list[str], mean: Mean, scenes: int = 12, subjects: int = 2, noise: float = 0.2, seed: int = 0
) -> tuple[SubjectSums, Images]:
    """Sums of VLMs and VLAs on three references a scene and one random level a type.

    Args:
        types: of distortion; the first is number 01.
        mean: type and level to the score that all values scatter about.
        scenes: each adds an effect of its own.
        subjects: of each stage.
        noise: standard deviation of scenes, and of single scores.
        seed: of levels and scatter.
    """
    rng = np.random.default_rng(seed)
    names = [f"s{number:02d}_{camera}" for number in range(scenes) for camera in CAMERAS]
    reference = np.repeat(names, len(types))
    kinds = np.tile(np.arange(len(types)), len(names))
    level = rng.integers(1, 6, len(reference))
    distortion = np.array(types)[kinds]
    scene = np.array([name.partition("_")[0] for name in reference.tolist()])
    expected = np.array([mean(kind, one) for kind, one in zip(distortion.tolist(), level.tolist(), strict=True)])
    expected += np.repeat(rng.normal(0.0, noise, scenes), len(CAMERAS) * len(types))
    models = [f"{stage}-{number}" for stage in ("vla", "vlm") for number in range(subjects)]
    values = {}
    for name in VALUES:
        own = np.clip(expected + rng.normal(0.0, noise, (len(models), len(level))), 0.0, 5.0)
        mine = np.array([(model[:3] == "vlm") == (VALUES.index(name) < 4) for model in models])
        values[name] = np.where(mine[:, None], own, np.nan)
    numbers = np.array([f"{1 + kind:02d}" for kind in kinds.tolist()])
    wrist = np.array(["first_person" if name.endswith("wrist") else "third_person" for name in reference.tolist()])
    halves = np.where([name[-1] in "02468" for name in scene.tolist()], "block", "tool")
    fixed = [np.full(len(level), word) for word in ("simulation", "room")]
    images = Images(
        reference, numbers, distortion, np.full(len(level), "blur"), level, fixed[0], wrist, halves, fixed[1]
    )
    about = {"chance": {model: {stage: CHANCE[stage] for stage in CHANCE} for model in models}, "dataset": "planted"}
    return SubjectSums(np.array(models), scene, reference, distortion, level, values, 5, about), images


def planted(types: list[str], mean: Mean, **settings: float) -> Opinions:
    """The mean opinions of `planted_sums`."""
    return opinions(*planted_sums(types, mean, **settings))  # type: ignore[arg-type]


def permuted(found: Opinions, seed: int = 0) -> Opinions:
    """The same rows in another order."""
    order: NDArray[np.int64] = np.random.default_rng(seed).permutation(len(found.level))
    return found.where(order)
