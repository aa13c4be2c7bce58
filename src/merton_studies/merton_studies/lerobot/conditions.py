"""The condition of each episode of a distorted dataset: dealt out evenly, by a seed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from numpy.random import Generator

from merton.episodes.shown import EVERYTHING, EpisodePictures, ShownPart, pictures_seed
from merton.errors import InputError
from merton.experiment.plan import drawn_level
from merton.perception.distortion.setting import UNDISTORTED, Setting
from merton.results.records import TestCase
from merton.seeding import generator
from merton_studies.lerobot.folder import Episode


@dataclass(frozen=True)
class Plan:
    """The conditions that are dealt out.

    Attributes:
        settings: distortions, each above level 0.
        clean: share of the episodes that stay as they are; None for as many as each setting has.
        seed: of the deal and of all noise.
        part: the cameras (by their keys) and frames that are distorted.
        one_level: the level of each episode is drawn, in place of that of its setting.
    """

    settings: tuple[Setting, ...]
    clean: float | None = None
    seed: int = 0
    part: ShownPart = EVERYTHING
    one_level: bool = False

    def __post_init__(self) -> None:
        if not self.settings or any(not setting.level for setting in self.settings):
            raise InputError("name at least one distortion, each with a level of 1 to 5: what is clean is --clean")
        if self.clean is not None and not 0.0 <= self.clean < 1.0:
            raise InputError(f"the share of clean episodes must be at least 0 and below 1, got {self.clean}")
        for setting in self.settings:
            pictures_of(setting, 0, self.seed)  # refuses a fault of depth

    @property
    def clean_share(self) -> float:
        """Of the episodes."""
        return 1.0 / (len(self.settings) + 1) if self.clean is None else self.clean


def pictures_of(setting: Setting, episode: int, seed: int, part: ShownPart = EVERYTHING) -> EpisodePictures:
    """The pictures of an episode under a setting: equal seeds, episodes and pictures give equal results.

    Raises:
        InputError: a fault of depth, of which a colour picture shows nothing.
    """
    case = TestCase("dataset", episode, setting.distortion, setting.level)
    return EpisodePictures(setting.distortion, setting.level, pictures_seed(seed, case), part)


def dealt(episodes: Sequence[Episode], plan: Plan) -> dict[int, Setting]:
    """The setting of each episode; `UNDISTORTED` for one that stays as it is.

    The episodes are shuffled within their task, and the conditions dealt task by task: over the dataset, and up to one
    within each task, every setting has as many episodes as any other, and the clean ones their share.
    """
    by_task: dict[tuple[str, ...], list[int]] = {}
    for episode in episodes:
        by_task.setdefault(episode.tasks, []).append(episode.index)
    cards = _cards(plan, generator(plan.seed, "deal"))
    found: dict[int, Setting] = {}
    for task, unordered in sorted(by_task.items()):
        numbers = sorted(unordered)
        order = generator(plan.seed, "episodes", *task).permutation(len(numbers))
        found |= {numbers[place]: next(cards) for place in order}
    if plan.one_level:
        for number, setting in found.items():
            if setting.level:
                level = drawn_level(plan.seed, "dataset", number, setting.distortion)
                found[number] = Setting(setting.distortion, level)
    return dict(sorted(found.items()))


def _cards(plan: Plan, draw: Generator) -> Iterator[Setting]:
    """Settings without end: in each round every one once, and clean ones between them at their share."""
    share, dealt_out, clean = plan.clean_share, 0, 0
    offset = float(draw.random())
    distorted = _rounds(plan.settings, draw)
    while True:
        dealt_out += 1
        if math.floor(dealt_out * share + offset) > clean:
            clean += 1
            yield UNDISTORTED
        else:
            yield next(distorted)


def _rounds(settings: Collection[Setting], draw: Generator) -> Iterator[Setting]:
    every = list(settings)
    while True:
        for place in draw.permutation(len(every)):
            yield every[place]
