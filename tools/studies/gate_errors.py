"""Error rates of `merton gate`, and the number of scenes that it takes: studies resampled from the scenes of a run.

    .venv/bin/python tools/studies/gate_errors.py [RUN] [--repetitions 200] [--scenes 1400]

Each study draws scenes with replacement and exchanges the two agents of a scene by a coin. So both policies are alike,
and their scenes scatter as those of the two agents do. A loss is planted by turning the candidate's successes into
failures by a coin. Without RUN the scenes are those of docs/reference/gate_errors.md, by their counts. RUN needs
some hundred scenes of its two agents: with a `--delta` close to their difference none of them ends it.

The second table draws scenes in which the two differ, and scenes in which they do not, so that they differ in a given
share of scenes. The mean at the stop is that of studies with this verdict. Same arguments, same tables.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from merton.experiment.paired import BASELINE, CANDIDATE
from merton.results.store import open_record
from merton.seeding import generator
from merton.statistics.sequential import Conclusion, first_verdict

DELTAS = (0.0, 0.05, 0.10)
LOSSES = (0.0, 0.05, 0.10, 0.15, 0.20)
SHARES = (0.08, 0.15, 0.30, 0.50)
"""Of scenes in which the two agents differ, in the second table."""
SHARE_DELTA, SHARE_LOSSES = 0.05, (0.0, 0.05, 0.10, 0.20)
DOCUMENTED = ((265, 1.0, 1.0), (9, 1.0, 0.0), (16, 0.0, 1.0), (10, 0.0, 0.0))
"""The 300 scenes of docs/reference/gate_errors.md: their number, and the successes of `glance` and `servo`."""

Successes = NDArray[np.float64]


def successes(run: Path) -> Successes:
    """The (scenes, 2) successes of candidate and baseline."""
    with open_record(run, read_only=True) as store:
        records = store.records()
    sides = [{record.case.id: record for record in records if record.agent == agent} for agent in (CANDIDATE, BASELINE)]
    both = sorted(sides[0].keys() & sides[1].keys())
    return np.array([[float(bool(side[case].success)) for side in sides] for case in both])


def documented() -> Successes:
    """The (300, 2) successes of `DOCUMENTED`."""
    return np.array([values for number, *values in DOCUMENTED for _ in range(number)])


def study(
    found: Successes, loss: float, scenes: int, rng: np.random.Generator, share: float | None = None
) -> list[float]:
    """The differences of one study with a planted loss; with `share`, the agents differ in that share of scenes."""
    place = rng.integers(len(found), size=scenes)
    if share is not None:
        apart = found[:, 0] != found[:, 1]
        kinds = np.flatnonzero(~apart), np.flatnonzero(apart)
        of_kind = [kind[rng.integers(len(kind), size=scenes)] for kind in kinds]
        place = np.where(rng.random(scenes) < share, of_kind[1], of_kind[0])
    drawn = found[place]
    swapped = rng.random(scenes) < 0.5
    candidate, baseline = np.where(swapped, drawn[:, 1], drawn[:, 0]), np.where(swapped, drawn[:, 0], drawn[:, 1])
    kept = rng.random(scenes) >= loss / _mean_success(found, share)
    return (candidate * kept - baseline).tolist()


def _mean_success(found: Successes, share: float | None) -> float:
    """Of both agents over the scenes as they are drawn."""
    if share is None:
        return float(found.mean())
    alike = found[found[:, 0] == found[:, 1]]
    return share / 2.0 + (1.0 - share) * float(alike.mean())


def percent(count: int, number: int) -> str:
    """A share of studies and its exact 95 % interval (Clopper and Pearson), in percent."""
    low, high = binomtest(count, number).proportion_ci(0.95, "exact")
    return f"{100 * count / number:.1f} % [{100 * low:.0f}, {100 * high:{'.0f' if count else '.1f'}}]"


def cells(studies: list[list[float]], delta: float, with_means: bool = False) -> list[str]:
    """The shares of verdicts, the median and the 80 % quantile of scenes, and the mean differences at either stop."""
    ends = [first_verdict(gains, delta) for gains in studies]
    verdicts = [verdict for _, verdict in ends]
    found = [percent(verdicts.count(verdict), len(verdicts)) for verdict in Conclusion]
    found += [f"{scenes:.0f}" for scenes in np.quantile([scenes for scenes, _ in ends], [0.5, 0.8])]
    for verdict in (Conclusion.NOT_WORSE, Conclusion.WORSE) if with_means else ():
        means = [
            math.fsum(gains[:end]) / end for gains, (end, own) in zip(studies, ends, strict=True) if own is verdict
        ]
        found.append(f"{100 * math.fsum(means) / len(means):+.1f}" if means else "-")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="How often merton gate is wrong, and how many scenes it takes.")
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--scenes", type=int, default=1400, help="the budget of a study")
    arguments = parser.parse_args()
    found = successes(arguments.run) if arguments.run else documented()
    apart = float(np.mean(found[:, 0] != found[:, 1]))
    print(f"{len(found)} scenes; successes {found[:, 0].mean():.3f} and {found[:, 1].mean():.3f}; ", end="")
    print(f"the two differ in {100 * apart:.1f} % of scenes")

    def studies_of(loss: float, share: float | None) -> list[list[float]]:
        names = ("gate errors", loss) if share is None else ("gate errors", loss, share)
        numbers = range(arguments.repetitions)
        return [study(found, loss, arguments.scenes, generator(*names, number), share) for number in numbers]

    print("| loss, points | delta | passed | failed | not resolved | scenes, median | scenes, 80 % |")
    print("|---|---|---|---|---|---|---|")
    for loss in LOSSES:
        studies = studies_of(loss, None)
        for delta in DELTAS:
            row = (f"{100 * loss:g}", f"{100 * delta:g}", *cells(studies, delta))
            print("|", " | ".join(row), "|", flush=True)
    print("\n| differ in | loss | passed | failed | not resolved | scenes, median | 80 % | mean: passed | failed |")
    print("|---|---|---|---|---|---|---|---|---|")
    for share in SHARES:
        for loss in SHARE_LOSSES:
            row = (f"{100 * share:g} %", f"{100 * loss:g}", *cells(studies_of(loss, share), SHARE_DELTA, True))
            print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
