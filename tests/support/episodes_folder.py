"""Makes the folder of a run of episodes that another program carried out, with invented results and drawn pictures.

Two policies in two tasks of MetaWorld's names, under two distortions. `python tests/support/episodes_folder.py FOLDER`
makes one.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import ErrorCode
from merton.results.records import Outcome, Reference, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.seeding import generator

TASKS = {"drawer-open-v3": "open the drawer", "push-v3": "push the puck to the goal"}
AGENTS = {"act": 0.30, "diffusion": 0.55}
"""Policies to the success that they lose at level 5, invented."""
CAMERAS = {"corner2": (256, 256), "gripper_pov": (320, 120)}
"""Name to width and height [px]: not those of Merton's cell."""
CONDITIONS = (("jpeg", 5), ("max_darken", 3))
BROKEN = ("act.push-v3.3.jpeg.5", "diffusion.drawer-open-v3.8.max_darken.3")
UNENDED = "diffusion.push-v3.6.jpeg.5"
DESIGN = """name: metaworld
description: Two policies of a lab in two tasks of MetaWorld.
seed: 7
distortions: [jpeg, max_darken]
levels: one
distort: {cameras: [corner2, gripper_pov]}
attribute: [cameras]
"""


def _picture(task: str, scene: int, camera: str, level: int) -> NDArray[np.uint8]:
    width, height = CAMERAS[camera]
    rng = generator("picture", task, scene, camera)
    image = np.full((height, width, 3), (170, 150, 120), np.uint8)
    for _ in range(5):
        x, y = int(rng.integers(20, width - 20)), int(rng.integers(20, height - 20))
        color = tuple(int(value) for value in rng.integers(30, 230, 3))
        cv2.rectangle(image, (x - 14, y - 12), (x + 14, y + 12), color, -1, cv2.LINE_AA)
    if level:
        image = cv2.GaussianBlur(image, (0, 0), 1.2 * level)  # type: ignore[assignment]
    return image


def records_of(name: str, agents: Mapping[str, float], scenes: int) -> list[TrialRecord]:
    """All trials: broken pairs and an episode without an end among them; equal arguments, equal results."""
    found = []
    for agent, lost in agents.items():
        for task in TASKS:
            for scene in range(scenes):
                for distortion, level in (("reference", 0), *CONDITIONS):
                    case = TestCase(task, scene, distortion, level)
                    rng = generator("outcome", task, scene)  # a hard scene is hard for all
                    does = rng.random() < 0.9 - lost * level / 5.0
                    found.append(_record(name, agent, case, does, generator(agent, case.id)))
    return found


def _record(name: str, agent: str, case: TestCase, does: bool, rng: np.random.Generator) -> TrialRecord:
    decision = 1.0 if case.is_reference else float(np.round(1.0 - 0.12 * case.level - 0.1 * rng.random(), 4))
    record = TrialRecord(
        name,
        agent,
        case,
        Outcome.SUCCESS if does else Outcome.FAILURE,
        decision=decision,
        progress=1.0 if does else None,
        reference=Reference.NONE,
        steps=int(rng.integers(40, 150)),
        wall_s=float(np.round(20.0 * rng.random(), 3)),
    )
    if record.id in BROKEN:
        why = "first picture 9f86d081 is not that of the undistorted episode, 2c26b46b: no pair"
        code = int(ErrorCode.NOT_PAIRED)
        return TrialRecord(name, agent, case, Outcome.INFRASTRUCTURE, error_code=code, error_message=why, steps=80)
    if record.id == UNENDED:
        why = "the connection was closed after step 61, and no result came"
        code = int(ErrorCode.NO_END)
        return TrialRecord(
            name, agent, case, Outcome.FAILURE, decision=decision, steps=62, error_code=code, error_message=why
        )
    return record


def make_episodes_folder(
    folder: Path,
    agents: Mapping[str, float] = AGENTS,
    scenes: int = 10,
    parts: int = 0,
    pictures: bool = True,
    name: str = "metaworld-20261128-101500",
    harness: str = "vla-eval 0.8.0",
) -> list[TrialRecord]:
    """Write a run into a folder that must not exist yet; gives the records of its results.sqlite.

    Args:
        parts: of how many episodes the designs of parts are recorded, in the order of the trials; 0 leaves
            attribution.sqlite out.
    """
    folder.mkdir(parents=True)
    (folder / "design.yaml").write_text(DESIGN)
    records = records_of(name, agents, scenes)
    about = {
        "id": name,
        "kind": "episodes",
        "created": "2026-11-28T10:15:00+00:00",
        "merton": "0.1.0",
        "seed": 7,
        "packages": {"numpy": "2.2.6", "opencv": "4.13.0"},
        "design": {"name": "metaworld", "seed": 7, "distortions": ["jpeg", "max_darken"], "levels": "one"},
        "design_sha256": hashlib.sha256(DESIGN.encode()).hexdigest(),
        "source": {"protocol": "vla-eval", "upstream": "ws://127.0.0.1:8000", "harness": harness},
        "latency": {"p50_ms": 0.84, "p99_ms": 2.61, "n": 18240},
        "counts": {"lost": 3, "beyond": 4},
    }
    (folder / "run.json").write_text(json.dumps(about, indent=1))
    with ResultStore(folder / "results.sqlite") as store:
        store.register_experiment(name, "metaworld", 7, about["design_sha256"], "0.1.0", about["created"])  # type: ignore[arg-type]
        store.record_all(records)
    for record in records:
        _write_trial(folder, record, pictures)
    if parts:
        _write_parts(folder, records, parts)
    return records


def _write_trial(folder: Path, record: TrialRecord, pictures: bool) -> None:
    trial, case = folder / "trials" / record.id, record.case
    trial.mkdir(parents=True)
    frames = [
        {"step": 0, "camera": camera, "reference": f"00_{camera}_reference.jpg", "distorted": f"00_{camera}_distorted.jpg"}
        for camera in CAMERAS
    ]
    for frame in frames if pictures else ():
        for side, level in (("reference", 0), ("distorted", case.level)):
            image = _picture(case.task, case.seed, str(frame["camera"]), level)
            cv2.imwrite(str(trial / str(frame[side])), image[..., ::-1])
    rng = generator("rows", case.task, case.seed)
    clean = rng.normal(0.0, 0.02, (1, 4))
    shown = clean + generator(record.id).normal(0.0, 0.004 * case.level, clean.shape)
    detail: dict[str, Any] = {
        "instruction": TASKS[case.task],
        "task_name": case.task,
        "success": None if record.error_code == ErrorCode.NO_END else record.outcome is Outcome.SUCCESS,
        "ended": record.error_code != ErrorCode.NO_END,
        "first_frame_sha256": hashlib.sha256(f"{case.task} {case.seed}".encode()).hexdigest(),
        "frames": frames if pictures else [],
        "decision": {"reference": {"rows": clean.tolist()}, "distorted": {"rows": shown.tolist()}},
    }
    (trial / "trial.json").write_text(json.dumps(detail, indent=1))


def _write_parts(folder: Path, records: Sequence[TrialRecord], count: int) -> None:
    """The designs of the cameras: all of the loss is the first one's."""
    distorted = [
        record for record in records if not record.case.is_reference and record.outcome is not Outcome.INFRASTRUCTURE
    ]
    whole = {record.id: record for record in records}
    first, _ = CAMERAS
    with ResultStore(folder / "attribution.sqlite") as store:
        for record in distorted[:count]:
            for camera in CAMERAS:
                same = record if camera == first else whole[f"{record.agent}.{record.case.reference.id}"]
                values = {key: getattr(same, key) for key in ("outcome", "decision", "progress", "steps")}
                store.record(TrialRecord(f"cameras.{camera}", record.agent, record.case, **values))




if __name__ == "__main__":
    make_episodes_folder(Path(sys.argv[1]), parts=40)
