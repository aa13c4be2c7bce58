"""Worth of refusing to act on bad images: gates compared on held-out scenes, types and subjects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.perception.distortion.stream import REFERENCE
from merton.perception.quality import METRICS
from merton.results.records import Outcome
from merton.seeding import generator
from merton.statistics.risk import (
    Curve,
    Estimate,
    Scored,
    area_differences,
    areas,
    avoided_failures,
    check_outcomes,
    curve,
)
from merton_studies.iqa.gate_table import DISAGREEMENT, GateTable
from merton_studies.iqa.monitor_model import fit, inputs_of

Floats = NDArray[np.float64]

COVERAGES = (0.9, 0.8, 0.7)
FOLDS = 10
"""Parts of the scenes; a monitor judges the trials of one part, and is fitted on the others."""
TYPE_FOLDS = 6
"""Parts of the types of distortion, likewise."""

NO_GATE, PERFECT = "no gate", "knows the outcome"
MONITOR, IMAGES_ONLY, OWN_DISAGREEMENT = "monitor", "monitor, images alone", "disagreement"
ZERO_SHOT = "zero_shot"
KINDS = {"fitted": "fitted", "image": "one value", "reference": "with the reference", "bound": "a bound"}
"""Of gates: fitted on other trials; one value of the image; one that needs the undistorted image, as no robot has."""

EVENTS = {
    "failure": "the task was not done",
    "lost": "the task was not done, and is done without distortion: what the image cost",
    "stop": "an emergency stop",
}
"""Events that a gate is to avoid."""


@dataclass(frozen=True)
class Gate:
    """A way to order trials by what is known before they begin.

    Attributes:
        name: of the monitor, or of a metric.
        kind: of `KINDS`.
        names: values it looks at.
        sign: 1 if more of a single value is better, -1 if less is; 0 for a fitted gate.
    """

    name: str
    kind: str
    names: tuple[str, ...] = ()
    sign: int = 0


@dataclass(frozen=True)
class GateRow:
    """A gate in a design.

    Attributes:
        area: under its risk-coverage curve, failures counted.
        gain: the area less that of no gate; below 0 is better than no gate.
        avoided: event to coverage to the share of these events among the refused trials, 0..1.
    """

    gate: Gate
    area: Estimate
    gain: Estimate
    avoided: Mapping[str, Mapping[float, Estimate]]
    curve: Curve = field(repr=False)


@dataclass(frozen=True)
class GateDesign:
    """Gates on trials of one kind that they were not fitted on.

    Attributes:
        name: "scenes", "types" or "subjects": what of each trial is new.
        trials, scenes: their numbers.
        events: event to the number of trials with it.
        rows: best area first.
    """

    name: str
    trials: int
    scenes: int
    events: Mapping[str, int]
    rows: tuple[GateRow, ...]


def events(table: GateTable) -> dict[str, NDArray[np.bool_]]:
    """(n,) whether each of `EVENTS` took place, of those that the table knows about."""
    found = {"failure": table.failed, "stop": table.stopped}
    distorted = table.distortion != REFERENCE
    if (table.undistorted[table.failed & distorted] != "").any():
        found["lost"] = table.failed & distorted & (table.undistorted == Outcome.SUCCESS.value)
    return {name: found[name] for name in EVENTS if name in found}


def gates(table: GateTable, of_any_type: bool = True) -> list[Gate]:
    """The gates that the values of a table allow.

    Args:
        of_any_type: fitted gates may look at metrics that were trained on opinions, which have seen every type of
            distortion.
    """
    found = []
    usable = [name for name in table.values if of_any_type or name not in METRICS or METRICS[name].group == ZERO_SHOT]
    names, alone = inputs_of(usable), inputs_of(usable, images_only=True)
    own = tuple(name for name in DISAGREEMENT if name in table.values)
    if own and alone:
        found.append(Gate(MONITOR, "fitted", names))
    if alone:
        found.append(Gate(IMAGES_ONLY, "fitted", alone))
    if own:
        found.append(Gate(OWN_DISAGREEMENT, "fitted", own))
    for name in table.values:
        if name in METRICS:
            metric = METRICS[name]
            kind = "reference" if metric.needs_reference else "image"
            found.append(Gate(name, kind, (name,), 1 if metric.better == "higher" else -1))
    return found


def scores(gate: Gate, table: GateTable, trained: NDArray[np.bool_], event: NDArray[np.bool_]) -> Floats:
    """(n,) the scores of all trials by a gate that was fitted on some of them; higher is better.

    Raises:
        InputError: the trials to be fitted on all have, or all lack, the event.
    """
    if gate.sign:
        return gate.sign * table.values[gate.names[0]]
    fitted = {name: table.values[name][trained] for name in gate.names}
    return fit(gate.names, fitted, event[trained]).chance({name: table.values[name] for name in gate.names})


def held_out_scores(gate: Gate, table: GateTable, design: str, event: NDArray[np.bool_], seed: int = 0) -> Floats:
    """(n,) each trial's score by a gate that saw neither its scene nor, as the design says, its type or subject.

    Undistorted trials are of no type: the monitors of "types" have seen others of them.
    """
    if gate.sign:
        return scores(gate, table, np.ones(len(event), bool), event)
    scene_fold = _folds(table.scene, FOLDS, seed)
    other_fold = {
        "scenes": np.zeros(len(event), np.int64),
        "types": np.where(table.distortion == REFERENCE, -1, _folds(table.distortion, TYPE_FOLDS, seed)),
        "subjects": np.unique(table.subject, return_inverse=True)[1],
    }[design]
    found = np.full(len(event), np.nan)
    for scene in np.unique(scene_fold):
        for other in np.unique(other_fold):
            judged = (scene_fold == scene) & (other_fold == other)
            if judged.any():
                trained = (scene_fold != scene) & ((other_fold != other) | (design == "scenes") | (other < 0))
                found[judged] = scores(gate, table, trained, event)[judged]
    return found


def study(table: GateTable, name: str, seed: int = 0) -> GateDesign:
    """The gates in a design; intervals are clustered by scene.

    Args:
        name: "scenes", "types" (distorted trials alone are judged) or "subjects".

    Raises:
        InputError: too few trials or scenes, outcomes that are all equal, or a single type or subject.
    """
    found, judged = events(table), np.ones(len(table.trial), bool)
    if name == "types":
        judged = table.distortion != REFERENCE
    of = {"types": table.distortion[judged], "subjects": table.subject}.get(name)
    if of is not None and len(np.unique(of)) < 2:
        raise InputError(f"held-out {name} need at least two of them in the table")
    failed = found["failure"]
    blind = Scored(np.zeros(len(failed)), failed, table.scene).part(judged)
    check_outcomes(blind)
    ways = [Gate(NO_GATE, "bound"), *gates(table, of_any_type=name != "types"), Gate(PERFECT, "bound")]
    ordered = [_score(gate, table, name, failed, seed)[judged] for gate in ways]
    of_event = {
        event: [Scored(score, took_place[judged], table.scene[judged]) for score in ordered]
        for event, took_place in found.items()
    }
    trials = of_event["failure"]
    avoided = {
        event: {share: avoided_failures(scored, share) for share in COVERAGES} for event, scored in of_event.items()
    }
    whole, gains = areas(trials), area_differences(trials, blind)
    rows = [
        GateRow(
            gate,
            whole[at],
            gains[at],
            {event: {share: each[at] for share, each in shares.items()} for event, shares in avoided.items()},
            curve(trials[at]),
        )
        for at, gate in enumerate(ways)
    ]
    numbers = {event: int(took_place[judged].sum()) for event, took_place in found.items()}
    by_area = sorted(rows, key=lambda row: (row.area.value, row.gate.name))
    return GateDesign(name, len(blind.scores), len(np.unique(blind.scenes)), numbers, tuple(by_area))


def _score(gate: Gate, table: GateTable, design: str, failed: NDArray[np.bool_], seed: int) -> Floats:
    if gate.name == NO_GATE:
        return np.zeros(len(failed))
    if gate.name == PERFECT:
        return -failed.astype(np.float64)
    return held_out_scores(gate, table, design, failed, seed)


def _folds(names: NDArray[np.str_], folds: int, seed: int) -> NDArray[np.int64]:
    """(n,) the part that each name is in: parts of about equally many names, drawn."""
    unique, place = np.unique(names, return_inverse=True)
    return np.asarray(generator(seed, "folds", folds).permutation(len(unique))[place] % folds)
