"""The page of `merton rate`, and the tables beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import merton
from merton.files import make_folder, write_file
from merton.leaderboard.rate.examples import LEVEL_WIDTH, Level
from merton.leaderboard.rate.figures import Curve, curves
from merton.leaderboard.rate.finding import rate_finding
from merton.leaderboard.rate.newcomers import Placed
from merton.leaderboard.rate.tail import SOLVED, LongTail, negative_gaps
from merton.leaderboard.site import figures
from merton.pages.environment import environment
from merton.pages.svg import SERIES_COLORS, rating_scale, series_slots
from merton.rating.convergence import MEASURES, Convergence
from merton.rating.predictions import MASTERY
from merton.results.csv_writer import write_csv
from merton.results.text import printable
from merton.statistics.intervals import Interval
from merton.statistics.means import DIGITS

PAGE, NUMBERS = "ratings.html", "ratings.json"
"""Files of the folder: the page, and all its numbers; the tables are beside them."""

LABELS = {
    "likelihood": "likelihood",
    "agi_elo": "AGI-Elo, mean of 20 orders",
    "single_pass": "AGI-Elo, one pass (the paper's)",
}
"""Method to its name on the page."""

PANELS = {
    "mae": "Mean absolute error",
    "mse": "Mean squared error",
    "case_correlation": "Rank correlation of cases",
    "agent_correlation": "Rank correlation of agents",
}
"""Measure to the heading of its panel, in the order of Fig. 4."""


@dataclass(frozen=True)
class Findings:
    """All that a page shows; a section without content is left out.

    Attributes:
        about: subject and method of the rating, for the foot of the page: text by name.
        warnings: of the ratings, one sentence each.
    """

    about: Mapping[str, str]
    warnings: tuple[str, ...]
    convergence: tuple[Convergence, ...] = ()
    tails: tuple[LongTail, ...] = ()
    placed: tuple[Placed, ...] = ()
    levels: tuple[Level, ...] = ()


def write_page(found: Findings, out: Path) -> list[Path]:
    """Write the page, its numbers as JSON, and a CSV table a section; the same findings give the same bytes.

    Returns:
        The files, the page first.

    Raises:
        InputError: the folder is a file.
        InfrastructureError: the folder or a file cannot be written.
    """
    make_folder(out)
    page = environment("merton.leaderboard.rate").get_template("rate_page.html.j2").render(_shown(found))
    numbers = json.dumps(
        _rounded(_without_pictures(found)), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False
    )
    for name, text in ((PAGE, page), (NUMBERS, f"{numbers}\n")):
        write_file(out / name, text.encode("utf-8", "replace"))
    tables = [write_csv(out / name, header, map(_rounded, rows)) for name, (header, rows) in _tables(found).items()]
    return [out / PAGE, out / NUMBERS, *tables]


def _without_pictures(found: Findings) -> dict[str, Any]:
    numbers = asdict(found)
    for level in numbers["levels"]:
        level["examples"] = [
            {key: value for key, value in item.items() if key != "picture"} for item in level["examples"]
        ]
    return numbers


def _shown(found: Findings) -> dict[str, Any]:
    slots = _leaders(found.convergence)
    return {
        "found": found,
        "finding": rate_finding(found.tails, found.convergence, found.placed),
        "labels": LABELS,
        "methods": {item.method: place for place, item in enumerate(found.convergence)},
        "panels": [(name, heading, _panel(found.convergence, name, heading)) for name, heading in PANELS.items()],
        "trajectories": [(item.method, _trajectories(item, slots)) for item in found.convergence],
        "leaders": sorted(slots.items()),
        "tails": [(tail, _distribution(tail), _scale(tail), negative_gaps(tail)) for tail in found.tails],
        "level_width": LEVEL_WIDTH,
        "scale_of_placed": rating_scale([item.standing for item in found.placed]),
        "mastery": MASTERY,
        "solved": SOLVED,
        "version": merton.__version__,
        "show": printable,
    }


def _panel(found: Sequence[Convergence], measure: str, heading: str) -> Any:
    lines = [
        Curve(LABELS[item.method], place, tuple(zip(item.shares, item.measures[measure], strict=True)))
        for place, item in enumerate(found)
    ]
    return curves(lines, f"{heading} against the share of the matches; the same as in the table below", 4)


def _leaders(found: Sequence[Convergence]) -> dict[str, int]:
    """The agents that the first method rates best at the last share, and their colours; the others are quiet."""
    if not found:
        return {}
    last = {name: points[-1].mean for name, points in found[0].agents_by_share.items() if points[-1] is not None}
    return series_slots(sorted(last, key=lambda name: (-last[name], name))[:SERIES_COLORS])


def _trajectories(item: Convergence, slots: Mapping[str, int]) -> Any:
    """The picture of A.3 for one method."""
    lines = [
        Curve(printable(name, 40), slots.get(name), tuple(zip(item.shares, points, strict=True)))
        for name, points in item.agents_by_share.items()
    ]
    title = f"Ratings of {len(lines)} agents by {LABELS[item.method]} against the share of the matches"
    return curves(lines, title, 0, 460.0, 320.0, bands=len(lines) <= SERIES_COLORS)


def _distribution(tail: LongTail) -> Any:
    agents = [(printable(item.name, 40), item.rating) for item in tail.beyond if not item.is_target]
    targets = list(zip(MASTERY, [item.rating for item in reversed(tail.beyond) if item.is_target], strict=True))
    title = f"Ratings of {len(tail.case_ratings)} cases and {len(agents)} agents by {LABELS[tail.method]}"
    return figures.distribution([rating for _, rating in tail.case_ratings], agents, targets, title)


@dataclass(frozen=True)
class _Bar:
    mean: float
    interval: Interval | None
    flag: str


def _scale(tail: LongTail) -> Any:
    return rating_scale([_Bar(item.rating, item.interval, item.flag) for item in tail.beyond if not item.is_target])


_Rows = Iterable[Sequence[object]]
_OVER_ORDERS = ("mean", "low", "high", "deviation", "shuffles")


def _tables(found: Findings) -> dict[str, tuple[Sequence[str], _Rows]]:
    """File name to the header and the rows of each table."""
    tables: dict[str, tuple[Sequence[str], _Rows]] = {}
    if found.convergence:
        of = ("method", "share", "matches")
        tables["convergence.csv"] = (*of, "measure", *_OVER_ORDERS), _convergence_rows(found.convergence)
        tables["agents_by_share.csv"] = (*of, "agent", *_OVER_ORDERS), _agent_rows(found.convergence)
    if found.tails:
        rows = [(tail.method, rank, *case) for tail in found.tails for rank, case in enumerate(tail.case_ratings, 1)]
        tables["cases.csv"] = ("method", "place", "case", "rating"), rows
        below, gaps = ([f"{name}_{100 * p:g}" for p in MASTERY] for name in ("cases_below", "gap_to_hardest"))
        columns = ("method", "player", "rating", "low", "high", *below, "predicted_on_hardest", *gaps)
        tables["long_tail.csv"] = columns, _tail_rows(found.tails)
    if found.placed:
        tables["predictions.csv"] = ("newcomer", "case", "predicted", "score"), _predictions(found.placed)
    return tables


def _convergence_rows(found: Iterable[Convergence]) -> Iterable[Sequence[object]]:
    for item in found:
        for name in MEASURES:
            for share, matches, at in zip(item.shares, item.matches, item.measures[name], strict=True):
                if at is not None:
                    yield item.method, share, matches, name, at.mean, at.low, at.high, at.deviation, at.shuffles


def _agent_rows(found: Iterable[Convergence]) -> Iterable[Sequence[object]]:
    for item in found:
        for name, points in item.agents_by_share.items():
            for share, matches, at in zip(item.shares, item.matches, points, strict=True):
                if at is not None:
                    yield item.method, share, matches, name, at.mean, at.low, at.high, at.deviation, at.shuffles


def _predictions(placed: Iterable[Placed]) -> Iterable[Sequence[object]]:
    for item in placed:
        for case, (predicted, own) in sorted(item.by_case.items()):
            yield item.id, case, predicted, own


def _tail_rows(tails: Iterable[LongTail]) -> Iterable[Sequence[object]]:
    for tail in tails:
        for item in tail.beyond:
            gaps = tuple(gap.gap for gap in item.to_hardest) or (None,) * len(MASTERY)
            yield (
                tail.method,
                item.name,
                item.rating,
                *(item.interval or (None, None)),
                *item.shares,
                item.on_hardest,
                *gaps,
            )


def _rounded(value: Any) -> Any:
    """The same with floats to `DIGITS` decimals, so that the last bits of another processor change no byte."""
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value
