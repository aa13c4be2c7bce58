"""Error rates of `merton gate`, and the number of scenes that it takes: studies resampled from a run of it.

    .venv/bin/python tools/studies/gate_errors.py runs/gate-... [--repetitions 200] [--scenes 2000]

The run needs some hundred scenes of its two agents: with a `--delta` close to their difference none of them ends it.
Each study draws scenes of the run with replacement and exchanges the two agents of a scene by a coin. So both policies
are alike, and their scenes scatter as those of the two agents do. A loss is planted by turning the candidate's
successes into failures by a coin. Same arguments, same table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from merton.experiment.paired import BASELINE, CANDIDATE
from merton.results.records import TestCase
from merton.results.store import open_record
from merton.seeding import generator
from merton.statistics.sequential import Conclusion, first_verdict

DELTAS = (0.0, 0.05, 0.10)
LOSSES = (0.0, 0.05, 0.10, 0.15, 0.20)
Successes = NDArray[np.float64]


def successes(run: Path) -> tuple[list[TestCase], Successes, float]:
    """The cases by id, the (scenes, 2) successes of candidate and baseline, and the mean wall time of a trial [s]."""
    with open_record(run, read_only=True) as store:
        records = store.records()
    sides = [{record.case.id: record for record in records if record.agent == agent} for agent in (CANDIDATE, BASELINE)]
    both = sorted(sides[0].keys() & sides[1].keys())
    values = [[float(bool(side[case].success)) for side in sides] for case in both]
    trial_s = float(np.mean([record.wall_s for record in records]))
    return [sides[0][case].case for case in both], np.array(values), trial_s


def study(found: Successes, loss: float, scenes: int, rng: np.random.Generator) -> list[float]:
    """The differences of one study with a planted loss."""
    drawn = found[rng.integers(len(found), size=scenes)]
    swapped = rng.random(scenes) < 0.5
    candidate, baseline = np.where(swapped, drawn[:, 1], drawn[:, 0]), np.where(swapped, drawn[:, 0], drawn[:, 1])
    kept = rng.random(scenes) >= loss / found.mean()
    return (candidate * kept - baseline).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description="How often merton gate is wrong, and how many scenes it takes.")
    parser.add_argument("run", type=Path)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--scenes", type=int, default=2000, help="the budget of a study")
    arguments = parser.parse_args()
    _, found, trial_s = successes(arguments.run)
    apart = float(np.mean(found[:, 0] != found[:, 1]))
    print(f"{len(found)} scenes; successes {found[:, 0].mean():.3f} and {found[:, 1].mean():.3f}; ", end="")
    print(f"the two differ in {100 * apart:.1f} % of scenes; {trial_s:.2f} s a trial")
    print("| loss, points | delta | passed | failed | not resolved | scenes, median | scenes, 80 % |")
    print("|---|---|---|---|---|---|---|")
    for loss in LOSSES:
        studies = [
            study(found, loss, arguments.scenes, generator("gate errors", loss, number))
            for number in range(arguments.repetitions)
        ]
        for delta in DELTAS:
            ends = [first_verdict(gains, delta) for gains in studies]
            verdicts = [verdict for _, verdict in ends]
            shares = [100 * verdicts.count(verdict) / len(verdicts) for verdict in Conclusion]
            middle, most = np.quantile([scenes for scenes, _ in ends], [0.5, 0.8])
            cells = (f"{100 * loss:g}", f"{100 * delta:g}", *(f"{share:.1f} %" for share in shares))
            print("|", " | ".join((*cells, f"{middle:.0f}", f"{most:.0f}")), "|", flush=True)


if __name__ == "__main__":
    main()
