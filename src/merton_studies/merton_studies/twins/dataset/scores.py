"""The scores: how alike answers are, in units of the demonstrations' spread, and the floors that they stand beside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from merton.decision.spread import Rows, Spread, likeness
from merton.errors import InputError
from merton.perception.distortion.setting import Setting
from merton.seeding import generator
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval, mean_scatter
from merton_studies.lerobot import layout
from merton_studies.lerobot.folder import LeRobotFolder
from merton_studies.twins.dataset.asked import Answer, AskedFrame

UNCHANGED = 0.995
"""A mean likeness that is written as 1.00."""


@dataclass(frozen=True)
class ScoredFrame:
    """One frame under one setting.

    Attributes:
        asked: the frame with its answers.
        setting: of the pictures.
        to_clean: likeness of the answer to the one on the clean pictures, 0..1; None if one of them is no action.
        to_recorded: likeness of the answer to the recorded actions from this frame on; None if it is no action.
        clean_to_recorded: the same of the answer on the clean pictures.
    """

    asked: AskedFrame
    setting: Setting
    to_clean: float | None
    to_recorded: float | None
    clean_to_recorded: float | None


@dataclass(frozen=True)
class Mean:
    """A mean over frames with its 95 % interval and its standard error, clustered by episode.

    Attributes:
        frames, episodes: numbers of them.
    """

    value: float
    interval: Interval
    error: float
    frames: int
    episodes: int


@dataclass(frozen=True)
class Floors:
    """Values beside which likenesses stand; None where there was nothing to take them from.

    Attributes:
        chance: of the answers to two clean frames of different episodes.
        demonstrator: of the answer on the clean pictures to the recorded actions.
        repeated: of two answers to the same clean frame with different seeds of noise; 1 of a policy without chance.
    """

    chance: Mean | None
    demonstrator: Mean | None
    repeated: Mean | None


@dataclass(frozen=True)
class SettingScore:
    """All frames under one setting.

    Attributes:
        to_clean, to_recorded: means; None if no frame has one.
        worse: how much less alike to the recorded actions the answers are than those on the clean pictures; paired.
        to_chance: share of the way from 1 to the floor of chance, which the mean has gone: 0 as clean, 1 as the answer
            to another episode's frame; None without that floor, or where it is `UNCHANGED`: there is no way then.
        no_action: frames with an answer on the clean pictures and none on the distorted ones.
        least: the frame with the answer least like the clean one; None if no frame has one.
    """

    setting: Setting
    to_clean: Mean | None
    to_recorded: Mean | None
    worse: Mean | None
    to_chance: float | None
    no_action: int
    least: ScoredFrame | None


@dataclass(frozen=True)
class DatasetTwins:
    """Twins of a dataset.

    Attributes:
        about: versions, seeds and hashes, JSON values.
        units: names of the columns of an action.
        spread: of them, over the demonstrations.
        recorded: (episode, frame) to the recorded actions from that frame on, as far as they are compared.
        notes: sentences on what was left out, or is unsure.
    """

    about: Mapping[str, Any]
    units: tuple[str, ...]
    spread: Spread
    frames: tuple[ScoredFrame, ...]
    recorded: Mapping[tuple[int, int], Rows]
    floors: Floors
    scores: tuple[SettingScore, ...]
    notes: tuple[str, ...]


def spread_of(folder: LeRobotFolder) -> Spread:
    """The spread of the demonstrations' actions, over all frames.

    The q01 and q99 of meta/stats.json are not taken: LeRobot 0.6 (`aggregate_feature_stats`) writes the means of those
    of each episode there, between which a column that differs from episode to episode hardly varies.

    Raises:
        InputError: the dataset has no actions, one is not finite, or none of their columns varies.
    """
    if layout.ACTION not in folder.vectors([layout.ACTION]):
        raise InputError(f"{folder.path} has no feature {layout.ACTION!r} of numbers: there is nothing to compare with")
    tables = folder.columns_of_all(layout.ACTION)
    if not all(np.isfinite(rows).all() for rows in tables):
        raise InputError(_not_finite(folder))
    try:
        spread = Spread.of([_rows(rows) for rows in tables])
    except InputError as error:
        raise InputError(f"{folder.path}, {layout.ACTION!r}: {error}") from None
    if not (spread.width > 0).any():
        raise InputError(
            f"{folder.path}: no column of {layout.ACTION!r} varies, so there is no unit to compare actions in"
        )
    return spread


def _not_finite(folder: LeRobotFolder) -> str:
    """A sentence on the first action that is not finite."""
    for episode in folder.episodes:
        wrong = np.argwhere(~np.isfinite(_rows(folder.rows(episode, [layout.ACTION])[layout.ACTION])))
        if len(wrong):
            return (
                f"{folder.path / episode.data}: {layout.ACTION!r} of episode {episode.index}, frame {wrong[0][0]}, is "
                "not finite: there is nothing to compare with"
            )
    return f"{folder.path}: {layout.ACTION!r} is not finite in a row of no episode"


def scored(
    folder: LeRobotFolder,
    about: Mapping[str, Any],
    asked: Sequence[AskedFrame],
    settings: Sequence[Setting],
    spread: Spread,
) -> DatasetTwins:
    """The scores of all answers, in units of a spread: `spread_of` the folder.

    Raises:
        InputError: a fault in the dataset.
    """
    recorded = _recorded(folder, asked)
    frames = tuple(
        _scored(frame, setting, recorded[frame.episode, frame.frame], spread) for setting in settings for frame in asked
    )
    floors = Floors(
        _mean(_chance(asked, spread, int(about["seed"]))),
        _mean([
            (like, frame.episode)
            for frame in asked
            if (like := _like(frame.clean, Answer(recorded[frame.episode, frame.frame]), spread)) is not None
        ]),
        _mean([
            (like, frame.episode)
            for frame in asked
            if frame.again is not None and (like := _like(frame.clean, frame.again, spread)) is not None
        ]),
    )  # fmt: skip
    scores = tuple(_setting(setting, [one for one in frames if one.setting == setting], floors) for setting in settings)
    return DatasetTwins(
        about, _units(folder, len(spread.width)), spread, frames, recorded, floors, scores,
        tuple(_notes(folder, asked, spread, floors)),
    )  # fmt: skip


def _rows(values: Any) -> Rows:
    """Actions as rows: one number an action is a column."""
    return np.asarray(values, np.float64).reshape(len(values), -1)


def _recorded(folder: LeRobotFolder, asked: Sequence[AskedFrame]) -> dict[tuple[int, int], Rows]:
    """From each frame on, as long as the longest answer to it, or to the end of the episode."""
    actions: dict[int, Rows] = {}
    found = {}
    for frame in asked:
        if frame.episode not in actions:
            actions[frame.episode] = _rows(folder.rows(folder.episodes[frame.episode], [layout.ACTION])[layout.ACTION])
        answers = (frame.clean, *frame.shown.values())
        longest = max((len(one.rows) for one in answers if one.rows is not None), default=1)
        found[frame.episode, frame.frame] = actions[frame.episode][frame.frame : frame.frame + longest]
    return found


def _like(one: Answer, other: Answer, spread: Spread) -> float | None:
    if one.rows is None or other.rows is None:
        return None
    return likeness(one.rows, other.rows, spread)


def _scored(frame: AskedFrame, setting: Setting, recorded: Rows, spread: Spread) -> ScoredFrame:
    shown, demonstrated = frame.shown[setting], Answer(recorded)
    return ScoredFrame(
        frame, setting, _like(frame.clean, shown, spread), _like(demonstrated, shown, spread),
        _like(demonstrated, frame.clean, spread),
    )  # fmt: skip


def _chance(asked: Sequence[AskedFrame], spread: Spread, seed: int) -> list[tuple[float, int]]:
    """Each frame's clean answer against that of one frame of another episode, drawn."""
    draw, found = generator(seed, "chance", 0), []
    for frame in asked:
        others = [other for other in asked if other.episode != frame.episode and other.clean.rows is not None]
        if others:
            like = _like(frame.clean, others[int(draw.integers(len(others)))].clean, spread)
            if like is not None:
                found.append((like, frame.episode))
    return found


def _mean(values: Sequence[tuple[float, int]]) -> Mean | None:
    """Of values in 0..1, each with its episode."""
    if not values:
        return None
    likes, episodes = [value for value, _ in values], [episode for _, episode in values]
    error = math.sqrt(mean_scatter(np.array(likes), episodes).variance)
    return Mean(math.fsum(likes) / len(likes), mean_interval(likes, episodes), error, len(likes), len(set(episodes)))


def _setting(setting: Setting, frames: Sequence[ScoredFrame], floors: Floors) -> SettingScore:
    known = [one for one in frames if one.to_clean is not None]
    to_clean = _mean([(one.to_clean, one.asked.episode) for one in known if one.to_clean is not None])
    pairs = [
        (one.clean_to_recorded - one.to_recorded, one.asked.episode)
        for one in known
        if one.to_recorded is not None and one.clean_to_recorded is not None
    ]
    halved = _mean([((1.0 + worse) / 2.0, episode) for worse, episode in pairs])
    to_chance = None
    if to_clean is not None and floors.chance is not None and floors.chance.value < UNCHANGED:
        to_chance = (1.0 - to_clean.value) / (1.0 - floors.chance.value)
    return SettingScore(
        setting,
        to_clean,
        _mean([(one.to_recorded, one.asked.episode) for one in known if one.to_recorded is not None]),
        halved
        and replace(
            halved,
            value=2.0 * halved.value - 1.0,
            interval=halved.interval.scaled(2.0, -1.0),
            error=2.0 * halved.error,
        ),
        to_chance,
        sum(one.asked.clean.rows is not None and one.asked.shown[setting].rows is None for one in frames),
        min(known, key=lambda one: one.to_clean or 0.0, default=None),
    )


def _units(folder: LeRobotFolder, columns: int) -> tuple[str, ...]:
    names = folder.features[layout.ACTION].get("names")
    if isinstance(names, dict):  # as datasets of ALOHA have it
        names = next((value for value in names.values() if isinstance(value, list)), None)
    if isinstance(names, list) and len(names) == columns:
        return tuple(map(str, names))
    return tuple(f"column {number}" for number in range(columns))


def _notes(folder: LeRobotFolder, asked: Sequence[AskedFrame], spread: Spread, floors: Floors) -> list[str]:
    notes = []
    if lost := [frame for frame in asked if frame.clean.rows is None]:
        notes.append(
            f"{len(lost)} of {len(asked)} frames have no action on their clean pictures, and so no twins; the first "
            f"because: {lost[0].clean.why}"
        )
    if folder.depth:
        notes.append(f"cameras of depth are not read, and no policy was shown them: {', '.join(folder.depth)}")
    if folder.other:
        notes.append(
            f"cameras without three channels are not read, and no policy was shown them: {', '.join(folder.other)}"
        )
    if not any(frame.task for frame in asked):
        notes.append("the dataset has no instructions: the policy was given an empty one")
    if still := int((spread.width <= 0).sum()):
        notes.append(f"{still} of {len(spread.width)} columns of the actions never change, and are not compared")
    if floors.chance is not None and floors.chance.value >= UNCHANGED:
        notes.append(
            "the policy's answers hardly differ from episode to episode (chance is 1.00), so there is no share of the "
            "way to chance"
        )
    if floors.chance is None:
        notes.append("there is no floor of chance, because one episode alone was asked about")
    return notes
