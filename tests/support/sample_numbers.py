"""Numbers of docs/studies/quality.md, recomputed from the opinions and the trials that come with Merton.

No picture is needed: floors, ceiling and gates follow from the shipped tables alone. Each takes up to some seconds.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from page_numbers import Number

from merton.statistics.coefficients import srcc
from merton.statistics.risk import Scored, areas, avoided
from merton_studies.iqa import folds
from merton_studies.iqa.gate import IMAGES_ONLY, MONITOR, Gate, events, gates, held_out_scores
from merton_studies.iqa.gate_promise import promises
from merton_studies.iqa.gate_table import SAMPLE, GateTable, read_gate_table
from merton_studies.iqa.judged import JudgedImages, _own
from merton_studies.iqa.metric_floors import CEILING, FLOORS, reliability
from merton_studies.iqa.metric_table import ALL_SPLITS, Cell, difference
from merton_studies.iqa.sample import MANIFEST, SUBJECTS
from merton_studies.opinions.opinion import Images, SubjectSums, opinions, read_subjects

REPEATS = 10
LEVEL, CELLS, WITH_REFERENCE = list(FLOORS)[:3]


@cache
def subjects() -> SubjectSums:
    """The sums of all subjects; undistorted pictures are among them."""
    return read_subjects(SUBJECTS)


@cache
def judged(stage: str) -> JudgedImages:
    """The distorted pictures with their opinions of a stage, without files and attributes."""
    sums = subjects()
    distorted = sums.level > 0
    unknown = np.full(int(distorted.sum()), "")
    names = sums.reference_id[distorted], unknown, sums.distortion[distorted], unknown
    seen = opinions(sums, Images(*names, sums.level[distorted], unknown, unknown, unknown, unknown))
    attributes = np.full((len(seen.level), 5), math.nan)
    return JudgedImages(stage, seen, (), (), attributes, *_own(sums, seen, stage), {})


@cache
def floors(stage: str, split: str) -> dict[str, Cell]:
    """SRCC over all pictures of each floor and of the ceiling, in every repeat of a split."""
    found: dict[str, list[float]] = {}
    for fold in folds.folds(judged(stage), split, REPEATS):
        for row in folds.floors(judged(stage), fold):
            guess = row.predicted if isinstance(row.predicted, np.ndarray) else row.predicted[stage]
            found.setdefault(row.row, []).append(srcc(guess[fold.test], row.targets[stage][fold.test]))
    nan = math.nan
    return {name: Cell(float(np.mean(v)), nan, nan, nan, nan, len(v), tuple(v)) for name, v in found.items()}


def by_split(row: str) -> dict[str, Number]:
    """A row of the table of metrics: its SRCC on decision in every split."""
    return {split: Number(floors("decision", split)[row].mean) for split in ALL_SPLITS}


def on_cognition() -> dict[str, Number]:
    """Floor and ceiling on cognition, over references."""
    found = floors("cognition", "reference")
    return {"cells": Number(found[CELLS].mean), "halves": Number(found[CEILING].mean)}


def leak() -> dict[str, Number]:
    """By how much the floor that knows the reference is better where other pictures of the reference are known."""
    pair, reference = (floors("decision", split)[WITH_REFERENCE] for split in ("pair", "reference"))
    gap = difference(pair, reference)
    assert gap is not None
    return {"gap": Number(*gap)}


def agreement() -> dict[str, Any]:
    """SRCC of two subjects with the other three, over all divisions and pictures, and the ceiling of a metric."""
    own = judged("decision").own["decision"]
    every = range(len(own))
    halves = [
        srcc(own[list(half)].mean(axis=0), own[[one for one in every if one not in half]].mean(axis=0))
        for half in combinations(every, len(own) // 2)
    ]
    mean = float(np.mean(halves))
    return {
        "subjects": len(own),
        "divisions": len(halves),
        "mean": Number(mean),
        "least": Number(min(halves)),
        "most": Number(max(halves)),
        "ceiling": Number(math.sqrt(reliability(mean))),
    }


def sizes() -> dict[str, Any]:
    """Pictures, references, subjects, and the sizes of both files [MB]."""
    sums = judged("decision").opinions
    return {
        "pictures": len(sums.level),
        "references": len(np.unique(sums.reference_id)),
        "scenes": len(np.unique(sums.scene)) // 2,
        "vlms": len(judged("cognition").subjects),
        "policies": len(judged("decision").subjects),
        "scores": Number(SUBJECTS.stat().st_size / 1e6),
        "keys": Number(MANIFEST.stat().st_size / 1e6),
    }


@cache
def trials() -> GateTable:
    """The trials that come with Merton."""
    return read_gate_table(SAMPLE)


def gate(name: str) -> Gate:
    """One of the gates of the table."""
    return next(each for each in gates(trials()) if each.name == name)


@cache
def gate_areas() -> dict[str, Any]:
    """Of every gate of the table, over scenes: the area under risk and coverage, and failures avoided [%]."""
    table, failed = trials(), events(trials())["failure"]
    names = {"monitor": MONITOR, "images": IMAGES_ONLY, "nr": "merton-nr", "brisque": "brisque", "blur": "blur_effect"}
    scores = {"none": np.zeros(len(failed))}
    for short, name in {**names, "psnr": "psnr"}.items():
        scores[short] = held_out_scores(gate(name), table, "scenes", failed)
    ordered = {short: Scored(each, failed, table.scene) for short, each in scores.items()}
    found: dict[str, Any] = {}
    for short, each in zip(ordered, areas(list(ordered.values())), strict=True):
        alone = short == "none"
        found[short] = Number(each.value, None if alone else each.interval)
        found |= {f"{short}_{share}": Number(100 * avoided(ordered[short], share / 100)) for share in (90, 80, 70)}
    return found


@cache
def monitor_promise() -> dict[str, Number]:
    """Share of the trials [%] that the monitor's thresholds admit, by alpha [%]."""
    found: dict[str, Number] = {}
    for event, shares in (("failure", (10, 15, 20)), ("lost", (10,))):
        alphas = [share / 100 for share in shares]
        for share, one in zip(
            shares, promises(gate(MONITOR), trials(), event, events(trials())[event], alphas), strict=True
        ):
            for kind, threshold in (("guaranteed", one.guaranteed), ("average", one.average)):
                found[f"{event}_{share}_{kind}"] = Number(100 * threshold.coverage if threshold else math.nan)
    return found
