"""The threshold of a gate, its promise, and a test of the promise on scenes that were left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.seeding import generator
from merton.statistics.risk import Scored, Threshold, admitted_risk, average_threshold, guaranteed_threshold
from merton_studies.iqa.gate import Gate, scores
from merton_studies.iqa.gate_table import GateTable

ALPHAS = (0.05, 0.1, 0.15, 0.2, 0.25)
RESPLITS = 200
TRAINED, CALIBRATED = 0.4, 0.4
"""Shares of the scenes of a resplit that a gate is fitted on and calibrated on; it is tested on the others."""


@dataclass(frozen=True)
class Promise:
    """The thresholds of a gate for one alpha.

    Attributes:
        event: of `merton_studies.iqa.gate.EVENTS`.
        guaranteed: see `study.risk.guaranteed_threshold`; None if nothing can be promised.
        average: see `study.risk.average_threshold`; None likewise.
    """

    gate: Gate
    event: str
    alpha: float
    guaranteed: Threshold | None
    average: Threshold | None


@dataclass(frozen=True)
class Kept:
    """Results of a kind of threshold over resplits by scene.

    Attributes:
        kind: "guaranteed" or "average".
        found: resplits in which there was a threshold.
        risk: mean of the share of failures among the admitted trials of the scenes left out; NaN if there was none.
        coverage: mean share of the trials that were admitted, of the resplits with a threshold; NaN likewise.
        above: share of all resplits whose risk was above alpha.
    """

    gate: Gate
    event: str
    alpha: float
    kind: str
    resplits: int
    found: int
    risk: float
    coverage: float
    above: float

    @property
    def not_kept(self) -> int:
        """Resplits with a threshold whose share of failures on the scenes left out was above alpha."""
        return round(self.above * self.resplits)


def promises(
    gate: Gate, table: GateTable, event: str, took_place: NDArray[np.bool_], alphas: Sequence[float], seed: int = 0
) -> list[Promise]:
    """The thresholds of a gate that is fitted on half of the scenes, drawn, and calibrated on the other half.

    Each guarantee holds by itself; a gate or an alpha that is chosen by looking at several has none.
    """
    trained = fitted_half(table, seed)
    scored = Scored(scores(gate, table, trained, took_place), took_place, table.scene)
    first, second = scored.part(trained), scored.part(~trained)
    return [
        Promise(gate, event, alpha, guaranteed_threshold(first, second, alpha), average_threshold(first, second, alpha))
        for alpha in alphas
    ]


def fitted_half(table: GateTable, seed: int) -> NDArray[np.bool_]:
    """(n,) the trials in the half of the scenes that `promises` fits gates on."""
    return np.asarray(_parts(table.scene, (0.5,), generator(seed, "halves")) == 0)


def resplit(
    gate: Gate,
    table: GateTable,
    event: str,
    took_place: NDArray[np.bool_],
    alphas: Sequence[float],
    seed: int = 0,
    resplits: int = RESPLITS,
) -> list[Kept]:
    """Results of the thresholds of a gate on scenes that were left out, over many divisions of the scenes.

    The divisions are of the same trials, so their results are alike, and the mean is no surer than the trials are.
    """
    found: dict[tuple[float, str], list[tuple[float, float]]] = {}
    scene = np.unique(table.scene, return_inverse=True)[1].astype(str)  # short names: quick to compare
    for number in range(resplits):
        part = _parts(scene, (TRAINED, CALIBRATED), generator(seed, "resplit", number))
        scored = Scored(scores(gate, table, part == 0, took_place), took_place, scene)
        first, second, third = (scored.part(part == which) for which in range(3))
        for alpha in alphas:
            for kind, threshold in (
                ("guaranteed", guaranteed_threshold(first, second, alpha)),
                ("average", average_threshold(first, second, alpha)),
            ):
                found.setdefault((alpha, kind), []).append(admitted_risk(third, threshold))
    return [_kept(gate, event, alpha, kind, seen) for (alpha, kind), seen in found.items()]


def _kept(gate: Gate, event: str, alpha: float, kind: str, seen: Sequence[tuple[float, float]]) -> Kept:
    admitting = [(coverage, risk) for coverage, risk in seen if not math.isnan(risk)]
    coverage, risk = np.mean(admitting, axis=0).tolist() if admitting else (math.nan, math.nan)
    above = sum(risk > alpha for _, risk in admitting) / len(seen)
    return Kept(gate, event, alpha, kind, len(seen), len(admitting), risk, coverage, above)


def _parts(scenes: NDArray[np.str_], shares: tuple[float, ...], rng: np.random.Generator) -> NDArray[np.int64]:
    """(n,) the part that each scene is in: 0 and on for the shares, the last for the rest."""
    unique, place = np.unique(scenes, return_inverse=True)
    ends = np.rint(np.cumsum(shares) * len(unique))
    return np.asarray(np.searchsorted(ends, rng.permutation(len(unique))[place], side="right"))
