"""An example of a run of two agents, made without a simulator: its pictures are drawn."""

from __future__ import annotations

import json
from pathlib import Path

from merton.config import dumps
from merton.files import write_file
from merton.perception.images import encode_image
from merton.results.database import RUN_FILE
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton_studies.people.examples.drawing import Motion, colors, episode

NAME = "drawn"
AGENTS: dict[str, tuple[Motion, ...]] = {
    "servo": ("right", "right", "elsewhere", "right", "right", "still"),
    "hold": ("still",) * 6,
}
"""Agent to the motion in each scene."""


def write_run(folder: Path) -> None:
    """Write experiment.yaml, run.json, the record and the trials with their pictures into a new folder.

    Raises:
        InfrastructureError: it cannot be written.
    """
    folder.mkdir(parents=True)
    agents = [{"id": agent, "vlm": "describe", "vla": agent} for agent in AGENTS]
    scenes = len(next(iter(AGENTS.values())))
    experiment = {
        "name": NAME,
        "agents": agents,
        "tasks": ["place"],
        "distortions": [],
        "levels": [0],
        "scenes": scenes,
    }
    write_file(folder / "experiment.yaml", dumps(experiment).encode())
    write_file(folder / "run.json", json.dumps({"id": NAME, "drawn": True}).encode())
    records = []
    for agent, motions in AGENTS.items():
        for seed, motion in enumerate(motions):
            outcome = Outcome.SUCCESS if motion == "right" else Outcome.FAILURE
            record = TrialRecord(NAME, agent, TestCase("place", seed, "reference", 0), outcome, execution=0.0)
            records.append(record)
            _write_trial(folder / "trials" / record.id, seed, motion)
    with ResultStore(folder / RUN_FILE) as store:
        store.record_all(records)


def _write_trial(folder: Path, seed: int, motion: Motion) -> None:
    folder.mkdir(parents=True)
    frames = []
    for step, picture in enumerate(episode(seed, motion)):
        name = f"{step:02d}_top_reference.jpg"
        (folder / name).write_bytes(encode_image(picture, ".jpg"))
        frames.append({"step": step, "camera": "top", "reference": name, "distorted": name})
    about = {"instruction": f"place the {colors(seed)[0]} block in the bowl", "frames": frames}
    write_file(folder / "trial.json", json.dumps(about, indent=1).encode())
