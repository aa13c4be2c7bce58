"""Runs of any size whose trials were never run: for tests of growth and for tools/bench/growth_bench.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from merton.experiment.plan import Trial
from merton.experiment.run import RunDirectory
from merton.results.records import TestCase
from merton.results.schema import AGENTS, CASES, EXPERIMENTS, TRIALS
from merton.results.store import ResultStore

SCENES_OF = ("pick", "push")
DISTORTIONS = ("gaussian_blur", "hsv_saturation", "jpeg", "white_noise", "max_darken", "contrast_change")
SKILLS = {"oracle": 4.0, "hold": -9.0} | {f"servo-{number}": 0.6 * number - 1.0 for number in range(6)}
"""Agents to their skill, in logits: `hold` never does the task."""
TRIALS_A_SCENE = len(SKILLS) * len(SCENES_OF) * (1 + 5 * len(DISTORTIONS))
"""496 of one seed: both tasks, all agents, undistorted and under 30 distortions."""

_CHUNK = 10_000

EXPERIMENT = """name: growth
seed: 1
agents:
{agents}
tasks: [{tasks}]
distortions: [{distortions}]
levels: [0, 1, 2, 3, 4, 5]
scenes: {scenes}
"""


def make_run(folder: Path, scenes: int, with_references: bool = True) -> RunDirectory:
    """A finished run of `scenes` x `TRIALS_A_SCENE` trials below `folder`, without pictures.

    Args:
        with_references: also write a small trial.json of every undistorted trial, as a resumed run reads them.
    """
    policies = {name: name if name in ("oracle", "hold") else "servo" for name in SKILLS}
    agents = "\n".join(f"  - {{id: {name}, vlm: describe, vla: {vla}}}" for name, vla in policies.items())
    file = folder / "growth.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(
        EXPERIMENT.format(agents=agents, tasks=", ".join(SCENES_OF), distortions=", ".join(DISTORTIONS), scenes=scenes)
    )
    run = RunDirectory.create(folder, file, "run")
    trials = run.spec.trials()
    with ResultStore(run.database) as store:
        run.register(store)
        write(store, run.id, trials)
    if with_references:
        for trial in trials:
            if trial.case.is_reference:
                write_trial_file(run, trial)
    return run


def write(store: ResultStore, experiment: str, trials: list[Trial]) -> None:
    """Put a row of each trial into the record in one transaction, without reading any back."""
    rng = np.random.default_rng(0)
    with store.database.transaction() as connection:
        connection.execute(sa.insert(EXPERIMENTS).prefix_with("OR IGNORE"), [{"id": experiment}])
        connection.execute(sa.insert(AGENTS).prefix_with("OR IGNORE"), [{"id": name} for name in SKILLS])
        cases = {trial.case for trial in trials}
        connection.execute(sa.insert(CASES), [_case(case) for case in sorted(cases)])
        rows = _rows(experiment, trials, rng)
        while chunk := list(islice(rows, _CHUNK)):
            connection.execute(sa.insert(TRIALS), chunk)


def write_trial_file(run: RunDirectory, trial: Trial) -> None:
    """A trial.json with answers, a path of 20 points and chunks of 4 deltas, in about 2 kB."""
    rng = np.random.default_rng([trial.case.seed, trial.case.level])
    chunks = {
        side: {"deltas": rng.normal(0, 0.02, (4, 7)).clip(-0.05, 0.05).round(4).tolist(), "step_s": 0.2}
        for side in ("reference", "distorted")
    }
    for chunk in chunks.values():
        for delta in chunk["deltas"]:
            delta[6] = 1.0
    path = rng.normal(0.4, 0.05, (20, 3)).round(4).tolist()
    things = ("cube", "ball", "cylinder", "button", "cup")
    words = [f"{things[number]} {'left' if number % 2 else 'right'}" for number in rng.integers(0, 5, 4)]
    content: dict[str, Any] = {
        "vlm": "describe",
        "vla": trial.agent.vla,
        "success": True,
        "answers": {"reference": ", ".join(words), "distorted": ", ".join(words[: 4 - trial.case.level // 2])},
        "cognition": {"bleu": 0.5, "rouge_l": 0.5, "cider": 5.0},
        "decision": {"position": 0.5, "rotation": 0.5, "state": 0.5, **chunks},
        "path": path,
        "reference_path": path,
        "final_tcp": np.eye(4).tolist(),
        "frames": [],
    }
    folder = run.path / "trials" / trial.id
    folder.mkdir(parents=True)
    (folder / "trial.json").write_text(json.dumps(content))


def _case(case: TestCase) -> dict[str, Any]:
    return {
        "id": case.id,
        "source": "",
        "task": case.task,
        "seed": case.seed,
        "distortion": case.distortion,
        "level": case.level,
    }


def _rows(experiment: str, trials: list[Trial], rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Rows whose success follows skill, scene and level by a logistic curve, and whose scores follow the level."""
    draws = rng.random((len(trials), 4))
    hardness = dict(zip(DISTORTIONS, np.linspace(0.2, 1.2, len(DISTORTIONS)), strict=True))
    for trial, (chance, first, second, third) in zip(trials, draws.tolist(), strict=True):
        case = trial.case
        scene = ((case.seed * 2654435761) % 1000) / 500.0 - 1.0
        logit = SKILLS[trial.agent.id] - scene - hardness.get(case.distortion, 0.0) * case.level
        share = 1.0 / (1.0 + np.exp(-logit))
        success = chance < share
        alike = 1.0 if case.is_reference or trial.agent.id == "hold" else 1.0 - 0.15 * case.level * first
        yield {
            "experiment": experiment,
            "id": trial.id,
            "agent": trial.agent.id,
            "case": case.id,
            "outcome": "success" if success else "emergency_stop" if second > 0.95 else "failure",
            "cognition": round(alike, 6),
            "decision": round(1.0 if trial.agent.id == "hold" else 0.5 + 0.5 * alike, 6),
            "execution": 100.0 if success else 0.0 if second > 0.95 else round(100.0 - 40.0 * third, 6),
            "distance_m": round(0.4 * third, 6),
            "progress": 1.0 if success else 0.0 if second > 0.95 else round(0.9 * first, 6),
            "path_m": round(0.5 * third, 6),
            "angle_rad": round(second, 6),
            "reference": "own",
            "reference_success": 1,
            "cut_short": 0,
            "steps": 3,
            "simulated_s": 6.0,
            "wall_s": 0.5,
            "error_code": 0,
            "error_message": "",
        }
