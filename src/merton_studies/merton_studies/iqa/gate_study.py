"""The study of gates from one table: held-out curves, thresholds and their promises, and the line for the robot."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import numpy as np

import merton
from merton.progress import OnStep
from merton.statistics.risk import CONFIDENCE, Curve, Scored, Threshold, curve
from merton_studies.iqa.gate import FOLDS, IMAGES_ONLY, MONITOR, TYPE_FOLDS, Gate, GateDesign, events, gates, study
from merton_studies.iqa.gate_groups import GroupPromise, GroupRow, admitted_by_group, group_promises
from merton_studies.iqa.gate_promise import ALPHAS, RESPLITS, Kept, Promise, fitted_half, promises, resplit
from merton_studies.iqa.gate_table import GateTable
from merton_studies.iqa.monitor_model import MonitorModel, fit

DESIGNS = ("scenes", "types", "subjects")
PROMISED = ("failure", "lost")
"""Events that a threshold is promised for."""
MOST_ALPHA = 0.5
"""The search for an alpha that can be promised ends here."""


@dataclass(frozen=True)
class Setting:
    """A threshold of one value of the image, as the robot takes it.

    Attributes:
        metric: the parameter `quality_metric`.
        value: the parameter `min_image_quality`, in the metric's own units; 0 if all images may pass.
        promise: what it is the threshold of.
    """

    metric: str
    value: float
    promise: Promise

    @property
    def guaranteed(self) -> bool:
        """Whether the threshold is the guaranteed one, not the one that holds on average."""
        return self.promise.guaranteed is not None

    @property
    def lines(self) -> tuple[str, str]:
        """For an experiment's file, or the parameters of arm_node and quality_node."""
        return f"quality_metric: {self.metric}", f"min_image_quality: {self.value:.5g}"


@dataclass(frozen=True)
class GateStudy:
    """Everything that `merton iqa gate` finds.

    Attributes:
        about: versions, seed, hash of the table, settings.
        alpha: the share of admitted trials that may fail.
        trials, scenes: numbers in the table.
        subjects: names.
        designs: those that the table allows, in the order of `DESIGNS`.
        promises: of every gate that a robot can have, for `alpha` and `ALPHAS`.
        kept: of every gate that a robot can have for `alpha`, and of `nearest`; of failures that the image cost, only
            of those of `groups`.
        groups: of the monitors and of the best metric of a single image, at `alpha`.
        by: the grouping that thresholds are calibrated by; None for no other than those of all trials.
        group_promises: then those of the same gates.
        setting: of the metric of a single image that does best where the gates were fitted; None if it has no
            threshold for `alpha`.
        nearest: then the setting of the least alpha (in hundredths) for which it has one on average; else None.
        weights: the monitor that is fitted on all trials.
    """

    about: Mapping[str, Any]
    alpha: float
    trials: int
    scenes: int
    subjects: tuple[str, ...]
    designs: tuple[GateDesign, ...]
    promises: tuple[Promise, ...]
    kept: tuple[Kept, ...]
    groups: tuple[GroupRow, ...]
    by: str | None
    group_promises: tuple[GroupPromise, ...]
    setting: Setting | None
    nearest: Setting | None
    weights: MonitorModel | None

    def kept_by(self, promise: Promise) -> Kept | None:
        """The results of a promise's average threshold over resplits."""
        wanted = (promise.gate, promise.event, promise.alpha, "average")
        return next((one for one in self.kept if (one.gate, one.event, one.alpha, one.kind) == wanted), None)


def gate_study(
    table: GateTable,
    alpha: float,
    seed: int = 0,
    resplits: int = RESPLITS,
    on_progress: OnStep = lambda step: None,
    by: str | None = None,
) -> GateStudy:
    """Study the gates of a table.

    Args:
        alpha: the share of the trials that a gate lets through of which at most may fail, 0..1.
        on_progress: called with the name of each step.
        by: a grouping of `gate_groups.CALIBRATED_BY` that has thresholds of its own, too.

    Raises:
        InputError: alpha outside of 0..1, too few trials or scenes, outcomes that are all equal, or an unknown `by`.
    """
    of_robot = [gate for gate in gates(table) if gate.kind != "reference"]
    took_place = {event: found for event, found in events(table).items() if event in PROMISED and found.any()}
    made = _designs(table, seed, on_progress)
    on_progress("thresholds")
    alphas = sorted({*ALPHAS, alpha})
    given = [
        each
        for gate in of_robot
        for event, found in took_place.items()
        for each in promises(gate, table, event, found, alphas, seed)
    ]
    best = _best_metric(table, seed)
    setting, nearest = _settings(table, best, alpha, seed) if best else (None, None)
    checked = [gate for gate in of_robot if gate.name in (MONITOR, IMAGES_ONLY) or gate == best]
    groups = [
        row
        for promise in given
        if promise.gate in checked and promise.event == "failure" and promise.alpha == alpha
        for row in admitted_by_group(promise, table, table.failed, seed)
    ]
    own = [
        each for gate in checked if by for each in group_promises(gate, table, "failure", table.failed, alpha, by, seed)
    ]
    kept = []
    for gate, (event, found) in product(of_robot, took_place.items()):
        if event == "failure" or gate in checked:
            on_progress(f"{resplits} resplits: {gate.name}, {event}")
            again = [nearest.promise.alpha] if nearest and gate == best and event == "failure" else []
            kept += resplit(gate, table, event, found, [alpha, *again], seed, resplits)
    monitor = next((gate for gate in of_robot if gate.name == MONITOR), None)
    return GateStudy(
        about(table, seed, resplits),
        alpha,
        len(table.trial),
        len(np.unique(table.scene)),
        tuple(np.unique(table.subject).tolist()),
        made,
        tuple(given),
        tuple(kept),
        tuple(groups),
        by,
        tuple(own),
        setting,
        nearest,
        fit(monitor.names, table.values, table.failed) if monitor else None,
    )


def _designs(table: GateTable, seed: int, on_progress: OnStep) -> tuple[GateDesign, ...]:
    made = []
    for design in DESIGNS:
        names = {"types": table.distortion, "subjects": table.subject}.get(design, table.scene)
        if len(np.unique(names)) > 1:
            on_progress(f"held-out {design}")
            made.append(study(table, design, seed))
    return tuple(made)


def about(table: GateTable, seed: int, resplits: int) -> dict[str, Any]:
    """Versions, settings and the hash of a table's content."""
    digest = hashlib.sha256()
    for column in (table.trial, table.subject, table.scene, table.distortion, table.outcome, table.undistorted):
        digest.update("\n".join(column.tolist()).encode())
    for name, values in table.values.items():
        digest.update(name.encode() + np.ascontiguousarray(values, "<f8").tobytes())
    return {
        "merton": merton.__version__,
        "seed": seed,
        "table_sha256": digest.hexdigest(),
        "confidence": CONFIDENCE,
        "scene_folds": FOLDS,
        "type_folds": TYPE_FOLDS,
        "resplits": resplits,
    }


def as_json(found: GateStudy) -> dict[str, Any]:
    """The numbers of a study; of the curves a hundred points, numbers that are not finite as null."""
    plain = asdict(found)
    for design, made in zip(plain["designs"], found.designs, strict=True):
        for row, one in zip(design["rows"], made.rows, strict=True):
            row["curve"] = thinned(one.curve)
            row["avoided"] = {
                event: {f"{share:g}": each for share, each in shares.items()}
                for event, shares in row["avoided"].items()
            }
    return dict(_finite(plain))


def thinned(whole: Curve, points: int = 100) -> list[tuple[float, float]]:
    """(coverage, risk) at so many points of a curve at most, the last among them."""
    places = np.unique(np.linspace(0, len(whole.risk) - 1, min(points, len(whole.risk))).round().astype(int))
    return [(round(float(whole.coverage[at]), 4), round(float(whole.risk[at]), 4)) for at in places]


def _best_metric(table: GateTable, seed: int) -> Gate | None:
    """The metric of a single image with the least area where the gates are fitted; None without one.

    A choice by the calibration would void its guarantee.
    """
    failed, fitted = table.failed, fitted_half(table, seed)

    def area(gate: Gate) -> float:
        values = gate.sign * table.values[gate.names[0]]
        return curve(Scored(values, failed, table.scene).part(fitted)).area

    images = [gate for gate in gates(table) if gate.kind == "image"]
    return min(images, key=lambda gate: (area(gate), gate.name), default=None)


def _settings(table: GateTable, best: Gate, alpha: float, seed: int) -> tuple[Setting | None, Setting | None]:
    """`GateStudy.setting` and `GateStudy.nearest`.

    The search for the nearest alpha looks at the calibration, so it promises nothing.
    """
    failed = table.failed
    (given,) = promises(best, table, "failure", failed, [alpha], seed)
    for threshold in (given.guaranteed, given.average):
        if threshold is not None:
            return as_setting(given, threshold), None
    for hundredth in range(math.floor(100 * alpha) + 1, round(100 * MOST_ALPHA) + 1):
        (given,) = promises(best, table, "failure", failed, [hundredth / 100], seed)
        if given.average is not None:
            return None, as_setting(replace(given, guaranteed=None), given.average)
    return None, None


def as_setting(given: Promise, threshold: Threshold) -> Setting:
    """The setting of a metric of a single image for one of its thresholds."""
    value = given.gate.sign * threshold.value
    return Setting(given.gate.name, value if math.isfinite(value) else 0.0, given)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, np.ndarray):
        return _finite(value.tolist())
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
