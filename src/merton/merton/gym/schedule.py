"""Which distortion an episode of an environment gets, and with which seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from merton.episodes.shown import EpisodePictures
from merton.errors import InputError
from merton.perception.distortion.stream import REFERENCE
from merton.seeding import derive_seed

Condition = tuple[str, float]
"""A type of images or a fault of time, and its level 0 .. 5."""
ByEpisode = Sequence[Condition] | Callable[[int], Condition]
"""The conditions of the episodes: repeated in this order, or given by the number of the episode, from 0."""


class Schedule:
    """The conditions of the episodes of an environment, one after the other.

    Args:
        distortion, level: of every episode, if there is no `by_episode`.
        by_episode: a condition for each episode instead.
        seed: of all noise and faults, >= 0.

    Raises:
        InputError: no such distortion or level, an empty sequence, or both ways at once.
    """

    def __init__(self, distortion: str, level: float, by_episode: ByEpisode | None, seed: int) -> None:
        if by_episode is None:
            by_episode = [(distortion, level)]
        elif (distortion, level) != (REFERENCE, 0):
            raise InputError("give either a distortion and its level or a schedule")
        if not callable(by_episode) and (isinstance(by_episode, str) or not isinstance(by_episode, Sequence)):
            raise InputError(
                "a schedule is a list of pairs, or a function of the number of the episode, got a "
                f"{type(by_episode).__name__}"
            )
        self._by_episode = by_episode if callable(by_episode) else tuple(by_episode)
        if not callable(self._by_episode):
            if not self._by_episode:
                raise InputError("a schedule needs at least one pair of a distortion and a level")
            for condition in self._by_episode:
                EpisodePictures(*_pair(condition), seed=seed)
        self.seed, self.episodes = seed, 0

    def begin(self, *scene: object) -> EpisodePictures:
        """The pictures of the next episode.

        Noise and faults depend on the seed, the scene and the condition, not on the number of the episode: an episode
        in the same scene under the same condition shows the same pictures again.

        Args:
            scene: all that tells the scene, such as the seed of the reset.
        """
        episode, self.episodes = self.episodes, self.episodes + 1
        by_episode = self._by_episode
        chosen = by_episode(episode) if callable(by_episode) else by_episode[episode % len(by_episode)]
        distortion, level = _pair(chosen)
        return EpisodePictures(distortion, level, derive_seed(self.seed, "distortion", *scene, distortion, level))


def _pair(condition: Condition) -> Condition:
    if not isinstance(condition, Sequence) or isinstance(condition, str) or len(condition) != 2:
        raise InputError(f"an episode's condition is a pair such as ('lens_blur', 3), got {condition!r}")
    return condition[0], condition[1]
