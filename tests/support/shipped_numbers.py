"""Numbers that the pages print, recomputed from data in the repository through Merton's own functions.

Counts, intervals, sizes, and the studies whose results are shipped. The sentences that print them are rows of
`tests/studies/project/test_page_numbers.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import astuple
from datetime import date, datetime, timedelta, timezone
from functools import cache
from typing import Any

import numpy as np
from page_numbers import Number
from scipy.stats import binomtest

import hostile
from merton.cognition.models.base import MODELS
from merton.cognition.score import score as answer_score
from merton.config import load
from merton.decision.models.base import POLICIES
from merton.decision.score import score
from merton.execution.kinematics import ROBOTS
from merton.experiment.plan import ExperimentSpec
from merton.files import resource
from merton.graph.spec import load_graph
from merton.leaderboard.published.taxonomy import load_taxonomy
from merton.leaderboard.submissions.evaluation import due_day
from merton.leaderboard.submissions.receipts import next_window
from merton.perception.distortion import DEPTH_FAULTS, DISTORTIONS
from merton.perception.distortion.depth import FOCAL_BASELINE_PX_M
from merton.perception.quality import METRICS
from merton.perception.quality.learned import TRAINABLE
from merton.simulation.stereo import BASELINE_M, DISPARITIES
from merton.simulation.varied import verbs_of
from merton.statistics.coefficients import srcc
from merton.statistics.correlation import fisher_interval
from merton.statistics.means import mean_interval
from merton.statistics.sequential import first_verdict
from merton.world.action import checked_chunk
from merton.world.tasks import TASKS
from merton_studies.curation.cell.wording import wordings
from merton_studies.iqa.demo import EXECUTION
from merton_studies.iqa.gate_table import SAMPLE, read_gate_table
from merton_studies.opinions.published import printed_rows
from sources import LIBRARY

WEIGHTS = {
    "cognition": LIBRARY / "cognition" / "models",
    "decision": LIBRARY / "decision" / "models",
    "quality": LIBRARY / "perception" / "quality" / "learned",
}


def exact(successes: int, trials: int) -> tuple[float, float]:
    """The exact 95 % interval of a share (Clopper and Pearson 1934)."""
    low, high = binomtest(successes, trials).proportion_ci(0.95, "exact")
    return float(low), float(high)


@cache
def experiment(name: str) -> ExperimentSpec:
    """An experiment that comes with Merton."""
    return load(resource("merton_bringup", f"config/experiments/{name}.yaml"), ExperimentSpec)


@cache
def counts(name: str) -> dict[str, int]:
    """Sizes of an experiment."""
    spec = experiment(name)
    cases = spec.cases()
    return {
        "trials": spec.trial_count,
        "agents": len(spec.agents),
        "distorted": len(spec.agents) * sum(not case.is_reference for case in cases),
        "of_an_agent": sum(not case.is_reference for case in cases),
        "references": sum(case.is_reference for case in cases),
        "reference_trials": len(spec.agents) * sum(case.is_reference for case in cases),
        "scenes": len({case.scene for case in cases}),
        "types": len(spec.distortions),
        "tasks": len(spec.tasks),
        "nodes": len(load_graph("sim").nodes),
    }


def fisher() -> dict[str, Number]:
    """Fisher's intervals of the paper's two bounds, with its thirty types."""
    high, low = fisher_interval(0.6, len(DISTORTIONS)), fisher_interval(0.5, len(DISTORTIONS))
    ends = {"high_from": high.low, "high_to": high.high, "low_from": low.low, "low_to": low.high}
    return {name: Number(value) for name, value in ends.items()}


@cache
def gate_trials() -> dict[str, Any]:
    """Counts of the trials that come with `merton iqa gate`."""
    table = read_gate_table(SAMPLE)
    plain = table.distortion == "reference"
    return {
        "trials": len(table.trial),
        "distorted": int((~plain).sum()),
        "scenes": len(np.unique(table.scene)),
        "failures": int(table.failed.sum()),
        "undistorted": Number(100 * table.failed[plain].mean()),
        "lost": int((table.failed & (table.undistorted == "success")).sum()),
        "stops": int(table.stopped.sum()),
    }


@cache
def execution() -> dict[str, Any]:
    """Numbers of the execution study that comes with Merton: coefficients, differences and metrics by a short name."""
    study = json.loads(EXECUTION.read_text(encoding="utf-8"))
    found: dict[str, Any] = {"trials": study["trials"], "scenes": study["scenes"]}
    means = {name: [row["means"][name] for row in study["types"]] for name in ("cognition", "decision", "execution")}
    found["solved_types"] = sum(value > 99 for value in means["execution"])
    for stage in ("cognition", "decision"):
        found[f"{stage}_of_means"] = Number(srcc(means[stage], means["execution"]))
    for row in study["coefficients"]:
        if row["outcome"] == "execution":
            name = f"{row['predictor']}_{row['source']}_{row['unit']}"
            found |= {name: Number(row["srcc"], row["interval"]), f"n_{row['unit']}": row["n"]}
    for row in study["differences"]:
        if row["outcome"] == "execution":
            found[f"difference_{row['source']}_{row['unit']}"] = Number(row["value"], row["interval"])
    for row in study["metrics"]:
        name = f"{row['metric']}_{row['unit']}".replace("-", "_")
        found |= {name: Number(row["srcc"], row["interval"]), f"{name}_alone": Number(row["srcc"])}
    return found


def parameters(kind: str, name: str) -> dict[str, Number]:
    """Size of the shipped weights of a model: millions of numbers, kilobytes and megabytes."""
    file = WEIGHTS[kind] / f"{name}.npz"
    with np.load(file) as arrays:
        millions = sum(arrays[key].size for key in arrays.files) / 1e6
    size = file.stat().st_size
    return {"millions": Number(millions), "kb": Number(size / 1e3), "mb": Number(size / 1e6)}


def exact_of_fifty() -> dict[str, Number]:
    """Ends of the exact interval [%] of 20, 35, 40, 45 and 48 of 50."""
    found: dict[str, Number] = {}
    for count in (20, 35, 40, 45, 48):
        low, high = exact(count, 50)
        found |= {f"low_{count}": Number(100 * low), f"high_{count}": Number(100 * high)}
    return found


def mcnemar(one: int, other: int) -> dict[str, Any]:
    """The p of McNemar's exact test on the scenes that one of two agents alone did."""
    return {"one": one, "other": other, "p": Number(binomtest(one, one + other).pvalue)}


def alike_scenes() -> dict[str, Number]:
    """The lower end of the interval of a mean of 1 in each of four scenes."""
    return {"low": Number(mean_interval(np.ones(4), np.arange(4)).low)}


def fewest_scenes() -> dict[str, int]:
    """Scenes in which equal agents are found not worse by `merton gate`, for a delta of 5 and of 10 points."""
    return {name: first_verdict([0.0] * 200, delta)[0] for name, delta in (("five", 0.05), ("ten", 0.1))}


def lengths(name: str) -> dict[str, float]:
    """The lengths [m] of an arm."""
    return dict(zip(("d1", "a2", "a3", "d4", "d5", "d6"), astuple(ROBOTS[name].lengths), strict=True))


def arena() -> dict[str, int]:
    """Sizes of the taxonomy of Embodied Arena."""
    taxonomy = load_taxonomy()
    return {
        "capabilities": len(taxonomy.capabilities),
        "dimensions": sum(len(each.dimensions) for each in taxonomy.capabilities),
        "benchmarks": len({each.name for task in taxonomy.tasks for each in task.benchmarks}),
    }


def families() -> dict[str, int]:
    """The families of the cell's questions, and the fewest and most wordings of one."""
    numbers = [len(each) for each in wordings().families.values()]
    return {"families": len(numbers), "least": min(numbers), "most": max(numbers)}


def nearest() -> dict[str, Number]:
    """Nearest distance [m] that the cell's stereo sees, at the focal lengths of three sizes of image."""
    focal_px = {"small": 212.0, "middle": 384.0, "large": 640.0}
    return {name: Number(focal * BASELINE_M / DISPARITIES) for name, focal in focal_px.items()}


def coarse() -> dict[str, Number]:
    """Distances [m] of one, two and three steps of the coarsest disparity, and the disparity at a metre [px]."""
    step = DEPTH_FAULTS["depth_quantization"].levels[-1]
    found = {name: Number(FOCAL_BASELINE_PX_M / (k * step)) for k, name in enumerate(("one", "two", "three"), 1)}
    return {"at_1_m": Number(FOCAL_BASELINE_PX_M), **found}


def windows() -> dict[str, date]:
    """Windows of the board that follow on 2026-11-15, and the day an evaluation is due."""
    first = next_window(datetime(2026, 11, 15, tzinfo=timezone.utc))
    days = {name: first + timedelta(days=14 * k) for k, name in enumerate(("first", "second", "third"))}
    return {**days, "due": due_day(datetime(2026, 11, 21, tzinfo=timezone.utc), 7)}


def registries() -> dict[str, int]:
    """How many distortions, tasks, learned models and metrics come with Merton."""
    return {
        "types": len(DISTORTIONS),
        "tasks": len(TASKS),
        "policies": len(list(WEIGHTS["decision"].glob("*.npz"))),
        "vlms": len(list(WEIGHTS["cognition"].glob("*.npz"))),
        "untrained": sum(metric.group == "zero_shot" for metric in METRICS.values()),
        "trainable": len(TRAINABLE),
    }


def models() -> dict[str, int]:
    """Entries of the catalogue that are models of the paper."""
    return {
        "vlms": sum(bool(entry.paper) for entry in MODELS.values()),
        "vlas": sum(bool(entry.paper) for entry in POLICIES.values()),
    }


def printed_tables() -> dict[str, int]:
    """Values of the paper's tables of metrics."""
    rows = printed_rows("embodied_iqa")
    return {"values": sum(bool(row[name]) for row in rows for name in ("srcc", "krcc", "plcc"))}


def share_of_dimension(name: str) -> dict[str, Number]:
    """Share [%] of a dimension in the questions of A2Eval, Table 2."""
    questions = {
        row["row"]: int(row["printed"])
        for row in printed_rows("a2eval")
        if (row["table"], row["column"]) == ("2", "source")
    }
    return {"share": Number(100 * questions[name] / questions["Total"])}


def verbs() -> dict[str, int]:
    """How often the verbs come in 150 scenes of a split: those of an object, and the others."""
    often = Counter(verb for seed in range(150) for verb in verbs_of(seed))
    times = {often[verb] for verb in ("reach", "push", "pick", "place", "move")}, set(often.values())
    (of_objects,) = times[0]
    (others,) = times[1] - times[0]
    return {"often": of_objects, "scenes": 150, "seldom": others}


def fall_at_20_cm() -> dict[str, Number]:
    """By how much the decision score falls if the end of a chunk is 20 cm away."""
    near, far = (checked_chunk([[x, 0, 0, 0, 0, 0, 1]], step_s=0.2) for x in (0.0, 0.2))
    return {"fall": Number(1 - score(near, far).total)}


def hostile_programs() -> dict[str, int]:
    """Programs of tests/hostile.py, and their runs by both engines."""
    return {"programs": len(hostile.ALL), "both": 2 * len(hostile.ALL)}


def word_scores(reference: str, candidate: str) -> dict[str, Number]:
    """BLEU and ROUGE-L of two answers."""
    found = answer_score(reference, candidate)
    return {"bleu": Number(found.bleu), "rouge": Number(found.rouge_l)}


def annotation() -> dict[str, Any]:
    """Requests of the paper's dataset, and the hours of models by their published speeds."""
    references, tasks, types = 1230, 5, len(DISTORTIONS)
    requests = references * (1 + types) * tasks
    hours = requests / 3600
    seconds = {"openvla": 0.307, "cogact": 0.181, "octo": 1 / 13, "ecot_least": 5, "ecot_most": 10}
    seconds |= {"five": 5 * 0.307, "slow": 1, "middle": 1 / 5, "fast": 1 / 20}
    millions = {"thirty": 30 * requests / 1e6, "copies": 30 * references * types * tasks / 1e6}
    return (
        {"requests": requests}
        | {k: Number(v) for k, v in millions.items()}
        | {name: Number(hours * each) for name, each in seconds.items()}
    )


def branches() -> dict[str, Number]:
    """Share [%] of 20,000 random postures of a UR5 by the number of branches that lead to their pose."""
    arm = ROBOTS["UR5"]
    postures = np.random.default_rng(0).uniform(-np.pi, np.pi, (20_000, 6))
    number = (~np.isnan(arm.inverse(arm.forward(postures))[..., 0])).sum(axis=-1)
    return {f"n{count}": Number(100 * (number == count).mean()) for count in (8, 6, 4, 2)}


def readings() -> dict[str, Number]:
    """Mean distance [m] from a UR5 of the arms that the paper's Table 3 describes by its readings."""
    rows = [row for row in printed_rows("ur5") if row["column"] == "mean distance from a UR5, m"]
    return dict(
        zip(("standard", "negative", "modified"), (Number(float(row["recomputed"])) for row in rows[:3]), strict=True)
    )


def fitting_triples() -> dict[str, int]:
    """Triples of Embodied-IQA's Tables 2 and 4, and those whose KRCC fits their SRCC."""
    rows = [row for row in printed_rows("embodied_iqa") if row["table"] != "cross"]
    return {"triples": len(rows), "fitting": sum("it fits its SRCC" in row["reason"] for row in rows)}
