"""The table that gates are studied on: a row per trial, with its outcome and the values known before it began."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.perception.attributes import Attributes, attributes
from merton.perception.quality import METRICS, measure
from merton.results.csv_writer import write_csv
from merton.results.records import Outcome
from merton.results.tables import name_in, number_in, read_rows
from merton.world.observation import Image

Floats = NDArray[np.float64]
Texts = NDArray[np.str_]

WORDS = ("trial", "subject", "scene", "distortion", "outcome", "undistorted")
ATTRIBUTES = tuple(field.name for field in fields(Attributes))
DISAGREEMENT = ("disagreement_m", "disagreement_rad")
OUTCOMES = tuple(each.value for each in Outcome if each not in (Outcome.INFRASTRUCTURE, Outcome.ABSTAINED))
"""Of trials that a gate is studied on. Ours: a trial that another gate refused says nothing about what would be."""
SAMPLE = Path(__file__).parent / "sample_gate_trials.csv"
"""The trials that come with Merton: tools/studies/gate_trials.py makes them again."""
HIGHEST = 100.0
"""Written in place of a larger value, such as the infinite PSNR of two equal images."""


@dataclass(frozen=True)
class GateTable:
    """Trials; the columns have shape (n,).

    As a file (CSV, Parquet or JSON lines) it has the columns of these names and one of each value.

    Attributes:
        trial: unique.
        subject: the policy.
        scene: the unit that is sampled, as `TestCase.scene`.
        distortion: type; "reference" for none.
        level: 0 for none, to 5.
        outcome: one of `OUTCOMES`.
        undistorted: how the same trial ended without distortion; "" where that is not known.
        values: name to (n,): metrics of `METRICS`, the attributes of `perception.attributes`, and the disagreement of
            the policy with itself. Of several cameras a metric has the worst value, an attribute the mean.
    """

    trial: Texts
    subject: Texts
    scene: Texts
    distortion: Texts
    level: NDArray[np.int64]
    outcome: Texts
    undistorted: Texts
    values: Mapping[str, Floats]

    @property
    def failed(self) -> NDArray[np.bool_]:
        """The task was not done."""
        return np.asarray(self.outcome != Outcome.SUCCESS.value)

    @property
    def stopped(self) -> NDArray[np.bool_]:
        """An emergency stop."""
        return np.asarray(self.outcome == Outcome.EMERGENCY_STOP.value)


def is_known(name: str) -> bool:
    """Whether a column may be called so: a metric, an attribute or a part of the disagreement."""
    return name in METRICS or name in ATTRIBUTES or name in DISAGREEMENT


def read_gate_table(path: Path) -> GateTable:
    """The table in a file.

    Raises:
        InputError: no such file, a missing or unknown column, a trial that stands twice, an unknown outcome, or a value
            that is no finite number; the sentence names the line.
    """
    rows = list(read_rows(path, [*WORDS, "level"], [*METRICS, *ATTRIBUTES, *DISAGREEMENT]))
    if not rows:
        raise InputError(f"{path}: has no trials")
    names = [name for name in rows[0][1] if is_known(name)]
    if not names:
        raise InputError(f"{path}: has no column of a metric, an attribute or the disagreement: nothing to gate on")
    seen: set[str] = set()
    for where, row in rows:
        trial, outcome = name_in(where, row, "trial"), name_in(where, row, "outcome")
        if trial in seen:
            raise InputError(f"{where}: trial {trial!r} stands twice")
        if outcome not in OUTCOMES:
            raise InputError(f"{where}: outcome {outcome!r}: choose from: {', '.join(OUTCOMES)}")
        seen.add(trial)
    words = {name: np.array([str(row[name] or "").strip() for _, row in rows]) for name in WORDS}
    for name in ("subject", "scene", "distortion"):
        for where, row in rows:
            name_in(where, row, name)
    return GateTable(
        **words,
        level=np.array([int(number_in(where, row, "level", 0, 5)) for where, row in rows], np.int64),
        values={
            name: np.array([number_in(where, row, name, -math.inf, math.inf) for where, row in rows]) for name in names
        },
    )


def write_gate_table(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Rows of equal columns as CSV, whole or not at all; numbers to five digits.

    Raises InfrastructureError if it cannot be written.
    """
    names = list(rows[0])
    write_csv(path, names, ([_five_digits(row[name]) for name in names] for row in rows))


def _five_digits(cell: object) -> object:
    return float(f"{cell:.5g}") if isinstance(cell, float) else cell


def measured(images: Iterable[tuple[Image, Image]], metrics: Sequence[str]) -> dict[str, float]:
    """The values of one trial's images.

    Args:
        images: (undistorted, distorted) of each camera that the policy looks at, at least one.
        metrics: of `METRICS`.

    Raises:
        InputError, MissingDependencyError: as `measure`.
    """
    pairs = list(images)
    found: dict[str, float] = {}
    for name in metrics:
        of_cameras = [min(measure(name, distorted, reference), HIGHEST) for reference, distorted in pairs]
        found[name] = min(of_cameras) if METRICS[name].better == "higher" else max(of_cameras)
    described = [attributes(distorted) for _, distorted in pairs]
    return found | {name: float(np.mean([getattr(each, name) for each in described])) for name in ATTRIBUTES}
