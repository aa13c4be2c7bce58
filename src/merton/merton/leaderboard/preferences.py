"""Preferences between contenders as a board: ratings by Bradley and Terry, points against each opponent, sides."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from merton import __version__
from merton.files import write_file
from merton.rating.battles import POINTS
from merton.rating.bradley_terry import PairFit, fit_pairs
from merton.results.csv_writer import write_csv
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval, ranks

_COLUMNS = ("place", "contender", "rating", "low", "high", "wins", "losses", "ties", "both_bad", "comparisons",
            "scenes")  # fmt: skip


@dataclass(frozen=True)
class Preference:
    """One rater's choice.

    Attributes:
        a, b: the contenders.
        choice: key of `POINTS`.
        left: "a" or "b", the one on the left.
        scene: the unit by which intervals are clustered.
    """

    a: str
    b: str
    choice: str
    left: str
    scene: str


@dataclass(frozen=True)
class Sides:
    """Of the choices that decided for one: the share for the left side, 0.5 without a preference for a side.

    Attributes:
        share: None without such a choice.
        interval: 95 %, clustered by scene.
        n: such choices.
    """

    share: float | None
    interval: Interval | None
    n: int


def board(preferences: Sequence[Preference]) -> PairFit:
    """Ratings of the contenders, clustered by scene; raises InputError without a preference."""
    return fit_pairs((one.a, one.b, POINTS[one.choice], one.scene) for one in preferences)


def sides(preferences: Sequence[Preference]) -> Sides:
    """Whether raters prefer a side whichever contender is there."""
    decided = [one for one in preferences if one.choice in ("a", "b")]
    if not decided:
        return Sides(None, None, 0)
    left = [float(one.choice == one.left) for one in decided]
    return Sides(sum(left) / len(left), mean_interval(left, [one.scene for one in decided]), len(left))


def write_board(preferences: Sequence[Preference], folder: Path) -> list[Path]:
    """Write `ranking.csv`, a row for each contender, best first, and `ranking.json`; same preferences, same bytes.

    The table has: place, contender, rating (Elo points, mean 1500), low and high (its 95 % interval, clustered by
    scene; empty where there is none), wins, losses, ties, both_bad, comparisons, scenes. The other file has the
    method, the counts, the warnings and the share of the left side.
    """
    fitted, left = board(preferences), sides(preferences)
    counts: Counter[tuple[str, str]] = Counter()
    scenes: defaultdict[str, set[str]] = defaultdict(set)
    for one in preferences:
        for name, side in ((one.a, "a"), (one.b, "b")):
            kind = one.choice if one.choice in ("tie", "both_bad") else "win" if one.choice == side else "loss"
            counts[name, kind] += 1
            scenes[name].add(one.scene)
    names = sorted(fitted.contenders, key=lambda name: (-round(fitted.contenders[name].mean, 6), name))
    rows = []
    for name, place in zip(names, ranks(fitted.contenders[name].mean for name in names), strict=True):
        found = fitted.contenders[name]
        ends = [round(end, 6) for end in found.interval] if found.interval else [None, None]
        kinds = (counts[name, kind] for kind in ("win", "loss", "tie", "both_bad"))
        rows.append((place, name, round(found.mean, 6), *ends, *kinds, found.matches, len(scenes[name])))
    about = {
        "method": "Bradley and Terry (1952); ties and both bad are half a preference for each; "
        "95 % intervals clustered by scene",
        "comparisons": fitted.comparisons,
        "scenes": fitted.scenes,
        "warnings": list(fitted.warnings),
        "left": {"share": left.share, "interval": left.interval, "n": left.n},
        "merton_version": __version__,
    }
    file = folder / "ranking.json"
    write_file(file, (json.dumps(about, indent=1) + "\n").encode())
    return [write_csv(folder / "ranking.csv", _COLUMNS, rows), file]


def write_matrix(preferences: Sequence[Preference], path: Path) -> Path:
    """Write `matrix.csv` for `merton leaderboard show` and `build`: each contender's mean points by opponent, 0..1.

    Each opponent is a test case there. So both ratings of that board tell the order; with few opponents their scale is
    another than that of Bradley and Terry, and intervals are over opponents, not scenes, and wider.
    """
    points: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for one in preferences:
        points[one.a, one.b].append(POINTS[one.choice])
        points[one.b, one.a].append(1.0 - POINTS[one.choice])
    names = sorted({name for pair in points for name in pair})

    def mean(one: str, other: str) -> float | None:
        met = points.get((one, other))
        return None if met is None else round(sum(met) / len(met), 9)

    rows = [(name, *(mean(name, other) for other in names)) for name in names]
    return write_csv(path, ("agent", *(f"against {name}" for name in names)), rows)
