"""The page of twins of a dataset: likeness by distortion beside its floors, and the frames that changed most."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from merton.decision.spread import Rows
from merton.files import write_file
from merton.pages.environment import environment
from merton.pages.svg import tag
from merton.pages.words import interval_words, number, readable
from merton.results.text import printable
from merton.study.figures import Point, Series, line_chart
from merton.world.observation import Image
from merton_studies.lerobot.conditions import pictures_of
from merton_studies.lerobot.folder import LeRobotFolder
from merton_studies.twins.dataset.asked import together
from merton_studies.twins.dataset.scores import UNCHANGED, DatasetTwins, Mean, ScoredFrame, SettingScore
from merton_studies.twins.page import embedded

MOST_FIGURES = 24
"""So many settings have pictures on the page, those that changed most; all are in the tables."""
_WIDTH, _HEIGHT, _EDGE = 300.0, 90.0, 6.0


def write_page(found: DatasetTwins, folder: LeRobotFolder, target: Path) -> Path:
    """Write a self-contained page, and return its path; equal twins give equal bytes.

    Raises InfrastructureError if it cannot be written.
    """
    ranked = sorted((one for one in found.scores if one.to_clean), key=_likeness)
    figures = [_figure(score.least, found, folder) for score in ranked[:MOST_FIGURES] if score.least is not None]
    page = (
        environment("merton_studies.twins", line_chart=line_chart)
        .get_template("dataset.html.j2")
        .render(
            found=found,
            finding=finding(found),
            charts=charts(found),
            figures=figures,
            most=MOST_FIGURES,
            frames=len({(one.asked.episode, one.asked.frame) for one in found.frames}),
            episodes=len({one.asked.episode for one in found.frames}),
            fps=folder.fps,
        )
    )
    write_file(target, page.encode("utf-8", "replace"))
    return target


def finding(found: DatasetTwins) -> str:
    """The first sentence: the distortion under which the answers are least like the clean ones, beside the floors."""
    known = [score for score in found.scores if score.to_clean is not None]
    policy = printable(str(found.about["policy"]), 60)
    if not known:
        return f"{policy} gave no action that could be compared."
    worst = min(known, key=_likeness)
    assert worst.to_clean is not None
    mean, chance = worst.to_clean, found.floors.chance
    beside = f"; another episode's frame gives {number(chance.value)}" if chance else ""
    if mean.value >= UNCHANGED and not any(score.no_action for score in found.scores):
        return (
            f"No distortion changed the answers of {policy}: the likeness to those on the clean pictures is at least "
            f"{number(mean.value)} {interval_words(mean.interval)} of 1{beside} (n = {mean.frames} frames of "
            f"{mean.episodes} episodes)."
        )
    return (
        f"{policy} changed its answers most under {readable(worst.setting.distortion)} {worst.setting.level}: their "
        f"likeness to those on the clean pictures is {number(mean.value)} {interval_words(mean.interval)} of 1{beside} "
        f"(n = {mean.frames} frames of {mean.episodes} episodes)."
    )


def charts(found: DatasetTwins) -> list[tuple[str, list[Series]]]:
    """Distortion to its lines over the levels: likeness to the clean answer, to the recorded actions, and chance."""
    by_name: dict[str, list[SettingScore]] = {}
    for score in found.scores:
        by_name.setdefault(score.setting.distortion, []).append(score)
    return [
        (name, _lines(sorted(scores, key=lambda one: one.setting.level), found)) for name, scores in by_name.items()
    ]


def _lines(scores: Sequence[SettingScore], found: DatasetTwins) -> list[Series]:
    clean = [_point(score.setting.level, score.to_clean) for score in scores]
    recorded = [_point(0, found.floors.demonstrator), *(_point(one.setting.level, one.to_recorded) for one in scores)]
    chance = [_point(level, found.floors.chance, with_error=False) for level in (0, 5)]
    lines = (("as the clean answer", clean), ("as the recorded actions", recorded), ("chance", chance))
    return [Series(label, index, tuple(filter(None, points))) for index, (label, points) in enumerate(lines)]


def _point(level: int, mean: Mean | None, with_error: bool = True) -> Point | None:
    if mean is None:
        return None
    error = mean.error if with_error and mean.episodes > 1 else None
    return Point(level, mean.value, error, mean.frames, mean.episodes)


def _likeness(score: SettingScore) -> float:
    return score.to_clean.value if score.to_clean else 1.0


def _figure(least: ScoredFrame, found: DatasetTwins, folder: LeRobotFolder) -> dict[str, Any]:
    """The frame of a setting whose answer is least like the clean one: its pictures, and the column that moved most."""
    asked = least.asked
    clean, distorted = _pictures(least, folder, int(found.about["seed"]))
    camera = max(clean, key=lambda key: float(np.abs(clean[key].astype(int) - distorted[key]).mean()))
    one, other = asked.clean.rows, asked.shown[least.setting].rows
    assert one is not None
    assert other is not None
    length = min(len(one), len(other))
    width = np.where(found.spread.width > 0, found.spread.width, np.inf)
    column = int((np.abs(one[:length] - other[:length]) / width).mean(axis=0).argmax())
    recorded = found.recorded[asked.episode, asked.frame]
    return {
        "frame": least,
        "camera": folder.cameras[camera].name,
        "pictures": [embedded(clean[camera]), embedded(distorted[camera])],
        "unit": found.units[column],
        "lines": lines([recorded[:length, column], one[:length, column], other[:length, column]]),
    }


def _pictures(least: ScoredFrame, folder: LeRobotFolder, seed: int) -> tuple[dict[str, Image], dict[str, Image]]:
    asked, shown = least.asked, pictures_of(least.setting, least.asked.episode, seed)
    frames = range(asked.frame + 1) if shown.stream is not None else [asked.frame]
    pictures: dict[str, Image] = {}
    distorted: dict[str, Image] = {}
    for frame, pictures in together(folder, folder.episodes[asked.episode], frames):
        distorted = shown.show_all(frame, pictures)
    return pictures, distorted


def lines(values: Sequence[Rows]) -> Markup:
    """One column over the rows of an answer: recorded, on the clean picture, on the distorted one; of one row, dots.

    The recorded one may end earlier, with its episode, and is drawn so.
    """
    every, longest = np.concatenate(values), max(map(len, values))
    low, high = float(every.min()), float(every.max())
    span = (high - low) or 1.0

    def place(at: int, value: float) -> tuple[float, float]:
        across = 0.5 if longest < 2 else at / (longest - 1)
        return (
            _EDGE + (_WIDTH - 2 * _EDGE) * across,
            _HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * (float(value) - low) / span,
        )

    parts = [tag("rect", x=0, y=0, width=_WIDTH, height=_HEIGHT, rx=4, class_="panel")]
    for name, column in zip(("demonstrated", "recorded", "twin"), values, strict=True):
        corners = [place(at, value) for at, value in enumerate(column)]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        ends = [tag("circle", cx=corners[-1][0], cy=corners[-1][1], r=3.0, class_="mark")]
        parts.append(tag("g", tag("polyline", points=drawn, class_="line"), *ends, class_=name))
    label = f"from {number(low, 3)} to {number(high, 3)}, over {longest} rows"
    return tag("svg", *parts, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", class_="paths", role="img", aria_label=label)
