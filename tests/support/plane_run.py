"""Makes a run folder of a pretend world "plane", which is on no machine: points in a plane, no tool, no orientation.

Two agents that are in no catalogue do two tasks, which share their scenes, under two distortions. A trial has a
decision score without parts, and an execution score for success alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from merton.results.records import Outcome, Reference, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.seeding import generator

NAME, GROUP, FRAME = "plane", "board", "the board's corner [px]"
VERSIONS = {"gym-plane": "0.2.0", "mujoco": "3.1.6", "renderer": "software"}
AGENTS, TASKS, SCENES = ("planner", "drifter"), ("circle", "corner"), 3
DISTORTIONS, LEVELS = ("gaussian_blur", "jpeg"), (2, 4)
SIZE_PX = 96


def world(**changes: Any) -> dict[str, Any]:
    """The entry `world` of run.json; changes are of its description."""
    task = {"scenes": 50, "group": GROUP, "max_rows": 40}
    column = {"unit": "px", "low": 0.0, "high": 512.0, "spread": 300.0}
    action = {
        "form": "rows",
        "columns": [{"name": name, **column} for name in ("x", "y")],
        "period_s": 0.1,
        "spread_from": "206 demonstrations",
    }
    description = {
        "cameras": [{"name": "above", "width_px": SIZE_PX, "height_px": SIZE_PX}],
        "tasks": [{"name": name, "instruction": f"go to the {name}", **task} for name in TASKS],
        "action": action,
        "frame": FRAME,
        "distorted_at": "the picture as the environment renders it",
        "abilities": [],
        "versions": VERSIONS,
    }
    return {"name": NAME, "description": {**description, **changes}, "entry": {"class": "plane_world.py:Plane"}}


def make_plane_run(
    directory: Path,
    *,
    has_path: bool = True,
    versions: Mapping[str, str] | None = None,
    of_world: str = NAME,
    seed: int = 3,
) -> list[TrialRecord]:
    """Write a run into `directory`, which must not exist yet, and return its records; equal arguments, equal runs."""
    directory.mkdir(parents=True)
    versions = versions or VERSIONS
    views = [("reference", 0), *((name, level) for name in DISTORTIONS for level in LEVELS)]
    records = [
        _record(directory.name, agent, TestCase(task, scene, *view, GROUP), seed)
        for agent in AGENTS
        for task in TASKS
        for scene in range(SCENES)
        for view in views
    ]
    entry = world(versions=dict(versions), frame=FRAME if has_path else "") | {"name": of_world}
    facts = {
        "id": directory.name,
        "created": "2026-11-20T10:00:00+00:00",
        "merton": "0.1.0",
        "packages": {"numpy": "2.4.6", "opencv": "5.0.0"},
        "arm": "UR5",
        "seed": seed,
        "blind_agents": [],
        "finished": True,
        "wall_s": 30.5,
        "world": entry,
    }
    (directory / "run.json").write_text(json.dumps(facts, indent=1))
    agents = "".join(f"  - {{id: {agent}, vla: {agent}_net}}\n" for agent in AGENTS)
    (directory / "experiment.yaml").write_text(
        f"name: plane\nworld: {of_world}\nseed: {seed}\nagents:\n{agents}tasks: [{', '.join(TASKS)}]\n"
        f"distortions: [{', '.join(DISTORTIONS)}]\nlevels: [0, 2, 4]\nscenes: {SCENES}\n"
    )
    with ResultStore(directory / "results.sqlite") as store:
        store.record_all(records)
        store.register_experiment(directory.name, name="plane", seed=seed, world=of_world, world_versions=versions)
    for record in records:
        _write_trial(directory / "trials" / record.id, record, has_path)
    return records


def _record(run: str, agent: str, case: TestCase, seed: int) -> TrialRecord:
    rng = generator("plane", seed, agent, case.id)
    harm = (0.15 if agent == "planner" else 0.3) * case.level
    done = rng.random() > harm
    return TrialRecord(
        experiment=run,
        agent=agent,
        case=case,
        outcome=Outcome.SUCCESS if done else Outcome.FAILURE,
        decision=round(1.0 - 0.8 * harm * float(rng.random()), 4),
        execution=100.0 if done else 0.0,
        progress=1.0 if done else None,
        reference=Reference.OWN,
        reference_success=True,
        steps=int(rng.integers(4, 9)),
        simulated_s=4.0,
        wall_s=0.1,
    )


def _write_trial(folder: Path, record: TrialRecord, has_path: bool) -> None:
    folder.mkdir(parents=True)
    rng, case = generator("plane trial", record.id), record.case
    target = generator("plane scene", case.seed).uniform(60.0, 450.0, 2)
    image = np.full((SIZE_PX, SIZE_PX, 3), 235, np.uint8)
    cv2.circle(image, tuple(int(value * SIZE_PX / 512) for value in target), 7, (40, 90, 200), -1)
    for side, picture in (("reference", image), ("distorted", cv2.GaussianBlur(image, (0, 0), 0.1 + case.level))):
        cv2.imwrite(str(folder / f"00_above_{side}.jpg"), picture)
    share = np.linspace(0.0, 1.0, 20)[:, None]
    clean = np.hstack([(1 - share) * [256.0, 256.0] + share * target, np.zeros((20, 1))])
    off = share * [*rng.normal(0.0, 20.0 * case.level, 2), 0.0]
    rows = np.hstack([target + rng.normal(0.0, 5.0 * case.level, 2) for _ in range(2)]).reshape(2, 2)
    detail = {
        "id": record.id,
        "agent": record.agent,
        "vlm": "describe",
        "vla": f"{record.agent}_net",
        **case.facts,
        "instruction": f"go to the {case.task}",
        "question": "",
        "outcome": record.outcome.value,
        "success": record.success,
        "judged_by": "the world",
        "cognition": {},
        "decision": {
            "total": record.decision,
            "reference": {"rows": np.vstack([target, target]).round(3).tolist(), "step_s": 0.1},
            "distorted": {"rows": rows.round(3).tolist(), "step_s": 0.1},
        },
        "execution": {"score": record.execution, "distance_m": None, "path_m": None, "angle_rad": None},
        "path": (clean + off).round(3).tolist() if has_path else [],
        "reference_path": clean.round(3).tolist() if has_path else [],
        "final_tcp": None,
        "frames": [
            {"step": 0, "camera": "above", "reference": "00_above_reference.jpg", "distorted": "00_above_distorted.jpg"}
        ],
    }
    (folder / "trial.json").write_text(json.dumps(detail))
