"""A program that carries episodes out: a policy that reads the brightness of its pictures, in scenes of one number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from merton.episodes.design import Condition
from merton.episodes.episode import Episode
from merton.episodes.run import EpisodesRun

CAMERAS = ("front", "wrist")


def pictures(scene: int, step: int = 0) -> dict[str, NDArray[np.uint8]]:
    """The pictures of a scene at a step, of 48 x 64 pixels: a gradient whose brightness is the scene's and step's."""
    slope = np.add.outer(np.arange(48), np.arange(64))[..., None]
    return {
        name: np.clip(slope + 7 * scene + step + 40 * place, 0, 255).astype(np.uint8).repeat(3, axis=2)
        for place, name in enumerate(CAMERAS)
    }


def decide(seen: dict[str, NDArray[np.uint8]]) -> list[float]:
    """An action of two numbers: mean and deviation of the first camera's pixels."""
    pixels = seen[CAMERAS[0]]
    return [float(pixels.mean()), float(pixels.std())]


def act(episode: Episode, steps: int = 3, scene: int | None = None) -> None:
    """Carry out the steps of an episode, and ask the policy about undistorted pictures where that is wanted."""
    for step in range(steps):
        clean = pictures(episode.scene if scene is None else scene, step)
        answer = decide(clean) if episode.asks_clean(step) else None
        episode.decided(step, decide(episode.show(step, clean)), answer, added_s=0.001)


def carry_out(
    run: EpisodesRun, scenes: Iterable[int], visits: int, agent: str = "policy", task: str = "push-v3", steps: int = 3
) -> list[Condition]:
    """Visit scenes in their order, again and again; an episode succeeds up to level 2. Returns the conditions given."""
    order, given = list(scenes), []
    for _ in range(visits):
        for scene in order:
            episode = run.begin(agent, task, scene)
            act(episode, steps)
            episode.end(episode.condition.level <= 2)
            given.append(episode.condition)
    return given
