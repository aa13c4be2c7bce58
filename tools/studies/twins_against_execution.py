"""Twins of simulated trials against execution.

    .venv/bin/python tools/studies/twins_against_execution.py OUT.csv --policies glance servo

Each policy runs undistorted in scenes of the tasks it claims; the pictures are kept as a recording keeps them, as PNG
and as JPEG. For each scene some distortions are drawn, types without replacement and levels 1 to 5 alike, the same for
all policies. A twin predicts each, and then it is executed in the embedded cell with the same seeds. Left is what has
gone more than 2 cm from the undistorted run, path or end; lost is a task that only the undistorted run did. Prints
agreement, sensitivity and specificity with 95 % intervals that are clustered by scene. With --table, prints them for
a table of before.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from merton.decision.models.base import POLICIES
from merton.experiment.plan import single_trial
from merton.perception.distortion import DISTORTIONS
from merton.perception.distortion.setting import Setting
from merton.results.csv_writer import write_csv
from merton.seeding import generator
from merton.simulation.scene import scene_seeds
from merton.statistics.clustered import scene_draws
from merton.statistics.correlation import correlations_with_intervals
from merton.statistics.intervals import Interval, interval_text
from merton.statistics.resampling import interval
from merton_studies.twins.agreement import Checked, PredictionAgreement, Share, left, lost
from merton_studies.twins.executed import WatchedPorts, pairs_of

VERBS = ("reach", "push", "pick", "place", "press", "move", "pour")
PLAIN = ("servo",)
"""Policies that see no more than plain scenes; the others get those of the split test."""


def settings_of(seed: int, task: str, scene: int, count: int) -> list[Setting]:
    """The distortions of a scene."""
    rng = generator("twins", seed, task, scene)
    names = rng.choice(list(DISTORTIONS), count, replace=False)
    return [Setting(str(name), int(rng.integers(1, 6))) for name in names]


def rows(policies: Sequence[str], scenes: int, count: int, seed: int) -> Iterator[Checked]:
    """The pairs of every policy, verb and scene."""
    with WatchedPorts() as ports:
        for policy in policies:
            for verb in VERBS:
                task = verb if policy in PLAIN else f"test-{verb}"
                for scene in scene_seeds(task, scenes):
                    spec, _ = single_trial(policy, task, scene=scene, seed=seed)
                    drawn = settings_of(seed, task, scene, count)
                    yield from (pair.checked() for pair in pairs_of(ports, spec, task, scene, drawn))


def show(name: str, pairs: Sequence[Checked]) -> None:
    """Print what is known of some pairs."""
    print(f"{name}: {len(pairs)} pairs in {len({pair.scene for pair in pairs})} scenes")
    _show_agreement("left, 2 cm", left(pairs))
    for other_cm in (1.0, 5.0):
        _show_agreement(f"left, {other_cm:g} cm", left(pairs, other_cm))
    _show_agreement("lost", lost(pairs))
    for label, by_chance in (("left, types without chance", False), ("left, types with chance", True)):
        _show_agreement(label, left([pair for pair in pairs if DISTORTIONS[pair.distortion].stochastic == by_chance]))
    _show_agreement("left, pictures as JPEG", left([replace(pair, predicted_cm=pair.jpeg_cm) for pair in pairs]))
    predicted, executed = (np.array([getattr(pair, key) for pair in pairs]) for key in ("predicted_cm", "executed_cm"))
    names, scene = np.unique([pair.scene for pair in pairs], return_inverse=True)
    times = scene_draws(0, names)[:, scene]
    correlations, ends = correlations_with_intervals(np.stack([predicted, executed]), scene)
    error = np.array([_median(np.abs(predicted - executed), weights) for weights in times])
    for label, value, between in (
        ("rank correlation of distances", correlations[0, 1], Interval(*ends[0, 1].tolist())),
        ("median error, cm", error[0], interval(error[1:])),
    ):
        print(f"  {label} {value:.3f} {interval_text(between, '.3f')}")


def _median(values: np.ndarray, weights: np.ndarray) -> float:
    return float(np.median(np.repeat(values, weights.astype(int))))


def _show_agreement(name: str, found: PredictionAgreement) -> None:
    parts = (("agreement", found.agreement), ("sensitivity", found.sensitivity), ("specificity", found.specificity))
    print(f"  {name}: " + "; ".join(f"{label} {_told(share)}" for label, share in parts) + f"; yes {_told(found.yes)}")


def _told(share: Share) -> str:
    return f"{share.value:.3f} {share.interval:.3f} of {share.n}"


def read(path: Path) -> list[Checked]:
    """The pairs of a table that this program wrote."""
    kinds: dict[str, Any] = dict(Checked.__annotations__)
    as_value = {"str": str, "int": int, "float": float, "bool": lambda text: text == "True"}
    with path.open(encoding="utf-8", newline="") as file:
        return [Checked(**{k: as_value[kinds[k]](v) for k, v in row.items()}) for row in csv.DictReader(file)]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path, nargs="+", help="the table to write; with --table, tables to read")
    parser.add_argument(
        "--policies", nargs="+", choices=sorted(POLICIES), metavar="POLICY", default=["glance", "servo"]
    )
    parser.add_argument("--table", action="store_true", dest="read")
    parser.add_argument("--scenes", type=int, default=8, help="of each verb")
    parser.add_argument("--settings", type=int, default=4, help="distortions of each scene")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.read:
        pairs = [pair for path in given.table for pair in read(path)]
    else:
        pairs = list(rows(given.policies, given.scenes, given.settings, given.seed))
        write_csv(given.table[0], list(Checked.__annotations__), [tuple(asdict(pair).values()) for pair in pairs])
    for policy in sorted({pair.policy for pair in pairs}):
        show(policy, [pair for pair in pairs if pair.policy == policy])
    for name, is_open in (("open loop", True), ("closed loop", False)):
        group = [pair for pair in pairs if pair.open_loop == is_open]
        if group:
            show(f"all of {name}", group)


if __name__ == "__main__":
    main()
