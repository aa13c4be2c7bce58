"""The coefficients that Embodied-IQA prints for fifteen metrics, and its claims, recomputed from them.

Tables 2 (decision), 4 (cognition) and 8a (cross-database) of arXiv:2505.16815, digit by digit, in
`config/published/embodied_iqa.csv`. They stand beside the numbers of a study; a study is not expected to reproduce
them, since the images behind them are not public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from merton.errors import UnknownNameError
from merton_studies.opinions.published import Claim, ClaimVerdict, printed_rows

TABLES = {"decision": "Table 2", "cognition": "Table 4", "cross": "Table 8a"}
"""Name to the paper's table."""
INCONSISTENT = 0.02
"""A KRCC that is further than this from the one that belongs to its SRCC is named."""


@dataclass(frozen=True)
class Published:
    """A printed triple; `krcc` is NaN in Table 8a, which has none.

    Attributes:
        table: one of `TABLES`.
        group: "zero_shot", "full_reference" or "no_reference".
        metric: as printed, such as "TOPIQ-FR".
        column: as `merton iqa benchmark` names it, such as "position", "first", "mild" or "level_1"; in Table 8a the
            database: "live", "tid2013" or "cognition".
        srcc, krcc, plcc: as printed: without a sign.
    """

    table: str
    group: str
    metric: str
    column: str
    srcc: float
    krcc: float
    plcc: float


@lru_cache(maxsize=1)
def _all() -> tuple[Published, ...]:
    return tuple(
        Published(
            row["table"], row["group"], row["metric"], row["column"],
            float(row["srcc"]), float(row["krcc"] or math.nan), float(row["plcc"]),
        )
        for row in printed_rows("embodied_iqa")
    )  # fmt: skip


def published(table: str) -> tuple[Published, ...]:
    """The printed triples of a table, in its order; raises UnknownNameError for another table than `TABLES`."""
    if table not in TABLES:
        raise UnknownNameError("published table", table, TABLES)
    return tuple(row for row in _all() if row.table == table)


def expected_krcc(srcc: float) -> float:
    """The KRCC of a bivariate normal distribution with this SRCC (Kruskal 1958): for a check of plausibility."""
    return 2 / math.pi * math.asin(min(1.0, 2 * math.sin(math.pi / 6 * srcc)))


def inconsistent() -> tuple[Published, ...]:
    """Triples of Tables 2 and 4 whose KRCC is more than `INCONSISTENT` from that of their SRCC."""
    return tuple(
        row
        for row in (*published("decision"), *published("cognition"))
        if abs(row.krcc - expected_krcc(row.srcc)) > INCONSISTENT
    )


def permuted() -> tuple[tuple[Published, Published], ...]:
    """(of Table 4, of Table 2) triples of one metric that have the same three numbers in another order or column."""
    first = published("decision")
    return tuple(
        (row, other)
        for row in published("cognition")
        for other in first
        if row.metric == other.metric and sorted(_triple(row)) == sorted(_triple(other))
    )


def claims() -> tuple[Claim, ...]:
    """The paper's claims about Tables 2, 4 and 8a, and their consistency, recomputed."""
    decision, cognition = _Grid(published("decision")), _Grid(published("cognition"))
    return (
        *_consistency(),
        _easiest(decision),
        _below(decision),
        _more_often("Severe distortion results in a higher SRCC", "severe", "mild", decision, cognition),
        _more_often("Most methods perform better on third-person images", "third", "first", decision, cognition),
        _more_often("Most methods perform better on real images", "real", "simulation", decision, cognition),
        _levels(decision),
        _topiq(decision),
        _frozen(decision),
        _best(decision),
        _cognition_is_easier(decision, cognition),
        *_cross(),
    )


class _Grid:
    """The SRCC of a table as an array (metric, column)."""

    def __init__(self, rows: Sequence[Published]) -> None:
        self.metrics = list(dict.fromkeys(row.metric for row in rows))
        self.columns = list(dict.fromkeys(row.column for row in rows))
        self.group = {row.metric: row.group for row in rows}
        places = [(self.metrics.index(row.metric), self.columns.index(row.column)) for row in rows]
        self.values = np.full((len(self.metrics), len(self.columns)), np.nan)
        for place, row in zip(places, rows, strict=True):
            self.values[place] = row.srcc

    def column(self, name: str, group: str = "") -> NDArray[np.float64]:
        """SRCC of all metrics, or of those of a group, in a column."""
        chosen = [not group or self.group[metric] == group for metric in self.metrics]
        return np.asarray(self.values[chosen, self.columns.index(name)])

    def mean(self, metric: str) -> float:
        """Of a metric over all columns."""
        return float(self.values[self.metrics.index(metric)].mean())


def _triple(row: Published) -> tuple[float, float, float]:
    return row.srcc, row.krcc, row.plcc


def _consistency() -> Iterator[Claim]:
    odd = inconsistent()
    named = "; ".join(
        f"{TABLES[row.table]}, {row.metric}, {row.column}: SRCC {row.srcc:.4f} and KRCC {row.krcc:.4f}, "
        f"which {expected_krcc(row.srcc):.4f} would match"
        for row in odd
    )
    yield Claim("KRCC and SRCC of a triple belong together", f"{len(odd)} of 450 do not: {named}", "noted")
    pairs = permuted()
    metrics = sorted({row.metric for row, _ in pairs})
    columns = ", ".join(f"{row.column} = {other.column}" for row, other in pairs)
    yield Claim(
        "All of Table 4 is about Cognition",
        f"{len(pairs)} triples of {', '.join(metrics)} are those of Table 2, KRCC and PLCC exchanged ({columns} there)",
        "noted",
    )


def _easiest(grid: _Grid) -> Claim:
    names = ("position", "state", "rotation")
    means = [float(grid.column(name).mean()) for name in names]
    best = [float(grid.column(name, "full_reference").max()) for name in names]
    return Claim(
        "Position is the easiest to predict, followed by State, with Rotation being the most difficult",
        f"{_listed(names, means)} on average; {_listed(names, best)} at best with a reference",
        _judged(means == sorted(means, reverse=True), best == sorted(best, reverse=True)),
    )


def _below(grid: _Grid) -> Claim:
    names = ("position", "rotation", "state")
    full = [float(grid.column(name, "full_reference").max()) for name in names]
    none = [float(grid.column(name, "no_reference").max()) for name in names]
    held = [one < 0.65 and other < 0.6 for one, other in zip(full, none, strict=True)]
    return Claim(
        "The SRCC of FR methods is less than 0.65, that of NR less than 0.6",
        f"the best with a reference: {_listed(names, full)}; without: {_listed(names, none)}",
        _judged(all(held), any(held)),
    )


def _more_often(claim: str, higher: str, lower: str, decision: _Grid, cognition: _Grid) -> Claim:
    copied = {row.metric for row, _ in permuted() if row.column in (higher, lower)}
    kept = [metric not in copied for metric in cognition.metrics]
    pairs = [(decision.column(higher), decision.column(lower))]
    pairs.append((cognition.column(higher)[kept], cognition.column(lower)[kept]))
    most, told = [], []
    for table, (high, low) in zip(("Table 2", "Table 4"), pairs, strict=True):
        count = int(np.sum(high > low))
        most.append(count > len(high) / 2 and high.mean() > low.mean())
        told.append(f"{count} of {len(high)} metrics in {table} (mean {high.mean():.3f} against {low.mean():.3f})")
    without = f"; {', '.join(sorted(copied))} of Table 4 left out, a copy of Table 2" if copied else ""
    return Claim(claim, f"{told[0]}, {told[1]}{without}", _judged(all(most), any(most)))


def _levels(grid: _Grid) -> Claim:
    names = [f"level {level}" for level in range(1, 6)]
    means = [float(grid.column(name.replace(" ", "_")).mean()) for name in names]
    return Claim(
        "For the five distortion levels, the performance does not change much",
        f"{_listed(names, means)} on average: {means[-1] - means[0]:.3f} from the first to the last",
        _judged(max(means) - min(means) < 0.1, False),
    )


def _topiq(grid: _Grid) -> Claim:
    means = [grid.mean("TOPIQ-FR"), grid.mean("TOPIQ-NR")]
    return Claim(
        "TOPIQ maintains the leading performance, with an SRCC of about 0.75",
        f"mean over the 15 columns {_listed(('TOPIQ-FR', 'TOPIQ-NR'), means)}",
        _judged(all(abs(mean - 0.75) < 0.02 for mean in means), False),
    )


def _frozen(grid: _Grid) -> Claim:
    names = ("LPIPS", "DISTS", "CLIPIQA")
    means = [grid.mean(name) for name in names]
    baseline = [grid.mean(name) for name in ("SSIM", "Q-Align")]
    below = [mean < max(baseline) for mean in means]
    return Claim(
        "LPIPS, DISTS and CLIPIQA are even worse than the zero-shot baseline",
        f"means {_listed(names, means)}; {_listed(('SSIM', 'Q-Align'), baseline)}",
        _judged(all(below), any(below)),
    )


def _best(grid: _Grid) -> Claim:
    winners = [grid.metrics[int(place)] for place in np.argmax(grid.values, axis=0)]
    counts = {name: winners.count(name) for name in dict.fromkeys(winners)}
    return Claim(
        "TOPIQ leads in most cases",
        "best in a column of Table 2: " + ", ".join(f"{name} {count} of 15" for name, count in counts.items()),
        _judged(counts.get("TOPIQ-FR", 0) > 7, False),
    )


def _cognition_is_easier(decision: _Grid, cognition: _Grid) -> Claim:
    copied = {row.metric for row, _ in permuted()}
    kept = [metric not in copied for metric in decision.metrics]
    easier = cognition.values[kept] > decision.values[kept]
    return Claim(
        "Metrics predict Cognition better than Decision",
        f"in {easier.sum()} of {easier.size} cells, {', '.join(sorted(copied))} left out",
        _judged(easier.sum() > easier.size / 2, False),
    )


def _cross() -> Iterator[Claim]:
    rows = published("cross")
    low = [f"{row.metric} {row.srcc:.4f}" for row in rows if row.column == "live" and row.srcc < 0.4]
    yield Claim(
        "Trained on Decision, the SRCC is even lower than 0.4 on LIVE",
        f"{', '.join(low)}; of the other {10 - len(low)} it is not",
        _judged(len(low) == 10, bool(low)),
    )
    best = max((row for row in rows if row.column == "cognition"), key=lambda row: row.srcc)
    yield Claim(
        "Trained on Decision, the SRCC on Cognition can reach 0.7",
        f"{best.metric} {best.srcc:.4f}",
        _judged(best.srcc >= 0.7, False),
    )


def _listed(names: Sequence[str], values: Sequence[float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in zip(names, values, strict=True))


def _judged(wholly: bool, partly: bool) -> ClaimVerdict:
    return "holds" if wholly else "holds in part" if partly else "does not hold"
