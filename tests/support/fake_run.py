"""Makes a run directory like that of an experiment, with invented scores and drawn camera images.

`python tests/support/fake_run.py DIRECTORY` makes a large one and its report.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.results.records import SETTLED_PROGRESS, Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.seeding import generator

WIDTH, HEIGHT = 424, 240
COLORS = {"red": (178, 42, 44), "green": (52, 130, 62), "blue": (38, 74, 160), "yellow": (222, 178, 40)}
TASKS = {"reach": "reach above the red cube", "push": "push the red cube to the left", "pick": "pick up the red cube"}
PLACES = ("on the left", "on the right", "in the middle", "close to the robot", "far from the robot")
Image = NDArray[np.uint8]


def draw_scene(object_xy_m: Sequence[float], rng: np.random.Generator) -> Image:
    """A top view (RGB) of a wooden table with a red cube at (x, y) [m, base_link], three more blocks and a gripper."""
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    wood = (
        0.94 + 0.03 * np.sin(rows / 5.0 + 1.5 * np.sin(columns / 70.0)) + 0.015 * rng.standard_normal((HEIGHT, WIDTH))
    )
    light = 1.08 - 0.28 * (((columns - 170) / 300.0) ** 2 + ((rows - 90) / 190.0) ** 2)
    image = np.clip(np.array([196, 164, 128]) * (wood * light)[..., None], 0, 255).astype(np.uint8)
    cv2.rectangle(image, (60, 150), (128, 214), (84, 96, 112), -1, cv2.LINE_AA)
    red = ("red", float(object_xy_m[0]), float(object_xy_m[1]))
    for color, x, y in (("green", 0.62, 0.28), ("blue", 0.38, -0.30), ("yellow", 0.66, -0.12), red):
        u, v = int(212 - 420 * y), int(120 - 420 * (x - 0.5))
        shade = tuple(int(0.62 * channel) for channel in COLORS[color])
        if color == "blue":
            cv2.ellipse(image, (u + 5, v + 6), (17, 16), 0, 0, 360, (120, 98, 76), -1, cv2.LINE_AA)
            cv2.circle(image, (u, v + 3), 15, shade, -1, cv2.LINE_AA)
            cv2.circle(image, (u, v), 15, COLORS[color], -1, cv2.LINE_AA)
        else:
            cv2.rectangle(image, (u - 9, v - 7), (u + 21, v + 23), (120, 98, 76), -1, cv2.LINE_AA)
            cv2.rectangle(image, (u - 15, v - 11), (u + 15, v + 19), shade, -1, cv2.LINE_AA)
            cv2.rectangle(image, (u - 15, v - 15), (u + 15, v + 15), COLORS[color], -1, cv2.LINE_AA)
    cv2.rectangle(image, (198, 206), (226, 239), (54, 58, 64), -1, cv2.LINE_AA)
    for u in (200, 218):
        cv2.rectangle(image, (u, 186), (u + 6, 210), (88, 92, 98), -1, cv2.LINE_AA)
    return cv2.GaussianBlur(image, (0, 0), 0.6).astype(np.uint8)


def _blocks(image: Image, level: int, rng: np.random.Generator) -> Image:
    out = image.copy()
    for _ in range(12 * level):
        u, v = int(rng.integers(0, WIDTH // 16)) * 16, int(rng.integers(0, HEIGHT // 16)) * 16
        out[v : v + 16, u : u + 16] = 128
    return out


def _noise(image: Image, level: int, rng: np.random.Generator) -> Image:
    return np.clip(image + rng.normal(0, 11.0 * level, image.shape), 0, 255).astype(np.uint8)


def _jpeg(image: Image, level: int, rng: np.random.Generator) -> Image:
    quality = (100, 43, 36, 24, 7, 4)[level]
    return cv2.imdecode(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1], cv2.IMREAD_COLOR)  # type: ignore[return-value]


def _hue(image: Image, level: int, rng: np.random.Generator) -> Image:
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
    hsv[..., 0] = (hsv[..., 0].astype(int) + 14 * level) % 180
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)  # type: ignore[return-value]


DISTORTIONS: dict[str, tuple[float, Callable[[Image, int, np.random.Generator], Image]]] = {
    "gaussian_blur": (0.8, lambda image, level, rng: cv2.GaussianBlur(image, (0, 0), 1.4 * level)),  # type: ignore[dict-item, return-value]
    "white_noise": (0.6, _noise),
    "jpeg": (0.35, _jpeg),
    "max_darken": (1.4, lambda image, level, rng: (255 * (image / 255.0) ** (1 + 0.9 * level)).astype(np.uint8)),
    "block_lost": (0.7, _blocks),
    "color_shift": (1.1, _hue),
    "resolution_limit": (
        0.5,
        lambda image, level, rng: cv2.resize(  # type: ignore[dict-item, return-value]
            cv2.resize(image, None, fx=0.5 / level, fy=0.5 / level, interpolation=cv2.INTER_AREA),
            (WIDTH, HEIGHT),
            interpolation=cv2.INTER_NEAREST,
        ),
    ),
}
"""Name to severity (invented) and drawing function."""

SENSITIVITY = {"oracle": 0.0, "servo": 1.0, "blobs": 1.6, "hold": 0.0}


def make_fake_run(
    directory: Path,
    agents: Sequence[str] = ("oracle", "servo", "hold"),
    distortions: Sequence[str] = tuple(DISTORTIONS),
    tasks: Sequence[str] = tuple(TASKS),
    seeds: int = 1,
    levels: Sequence[int] = (1, 2, 3, 4, 5),
) -> list[TrialRecord]:
    """Write a run into `directory`, which must not exist yet, and return its records; equal arguments, equal runs."""
    directory.mkdir(parents=True)
    cases = [TestCase(task, seed, "reference", 0) for task in tasks for seed in range(seeds)]
    cases += [
        TestCase(task, seed, name, level)
        for task in tasks
        for seed in range(seeds)
        for name in distortions
        for level in levels
    ]
    records = []
    with ResultStore(directory / "results.sqlite") as store:
        for agent in agents:
            for case in cases:
                record = _record(agent, case, generator(agent, case.id))
                store.record(record)
                records.append(record)
                _write_trial(directory, record)
    facts = {
        "id": "quickstart-20260314-092653",
        "created": "2026-03-14T09:26:53+00:00",
        "merton": "0.1.0",
        "git": "0123456789abcdef0123456789abcdef01234567",
        "python": "3.11.2",
        "platform": "Linux-6.1-x86_64, 2 cores",
        "packages": {"numpy": "2.4.6", "mujoco": "4.0.0", "opencv": "5.0.0"},
        "arm": "UR5",
        "seed": 7,
        "experiment_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "blind_agents": [agent for agent in agents if SENSITIVITY.get(agent) == 0.0],
        "wall_s": 412.6,
        "throughput": 0.902,
    }
    (directory / "run.json").write_text(json.dumps(facts, indent=1))
    (directory / "experiment.yaml").write_text(
        f"name: quickstart\nseed: 7\nagents: [{', '.join(agents)}]\ntasks: [{', '.join(tasks)}]\n"
        f"distortions: [{', '.join(distortions)}]\nlevels: [0, 1, 2, 3, 4, 5]\nscenes: {seeds}\n"
    )
    return records


def _record(agent: str, case: TestCase, rng: np.random.Generator) -> TrialRecord:
    sensitivity = SENSITIVITY.get(agent, 0.8)
    harm = sensitivity * DISTORTIONS.get(case.distortion, (0.5, None))[0] * case.level / 5.0
    draw = rng.random()
    distance: float | None = float(0.02 + 0.5 * harm * rng.random())
    outcome, code, message = Outcome.SUCCESS, 0, ""
    if agent == "hold":
        outcome, distance = Outcome.FAILURE, float(rng.uniform(0.25, 0.42))
    elif draw < 0.12 * harm:
        outcome, code = Outcome.EMERGENCY_STOP, 302
        message = "the left finger met the table with 41 N, more than the allowed 20 N"
    elif draw < 0.75 * harm:
        outcome = Outcome.FAILURE
        code, message = (
            (0, "") if draw > 0.3 * harm else (201, "the object was not found, so no target could be reached")
        )
    elif rng.random() < 0.006 and not case.is_reference:
        outcome, code, message = Outcome.INFRASTRUCTURE, 401, "no image from the camera 'side' within 5 s"
        distance = None
    execution = {
        Outcome.SUCCESS: 100.0,
        Outcome.EMERGENCY_STOP: 0.0,
        Outcome.INFRASTRUCTURE: None,
        Outcome.FAILURE: max(0.0, 100.0 - 100.0 * (distance or 0.0)),
    }[outcome]
    quality = float(np.clip(1.0 - 0.6 * harm - 0.05 * harm * rng.standard_normal(), 0.0, 1.0))
    infrastructure = outcome is Outcome.INFRASTRUCTURE
    return TrialRecord(
        experiment="quickstart",
        agent=agent,
        case=case,
        outcome=outcome,
        cognition=None if infrastructure else float(np.clip(quality - 0.15 * (case.level > 2), 0, 1)),
        decision=None if infrastructure else quality,
        execution=execution,
        distance_m=distance,
        progress=_progress(agent, outcome, distance),
        steps=0 if agent == "hold" else int(rng.integers(3, 9)),
        simulated_s=float(rng.uniform(4, 12)),
        wall_s=float(rng.uniform(0.5, 2.0)),
        error_code=code,
        error_message=message,
    )


def _progress(agent: str, outcome: Outcome, distance_m: float | None) -> float | None:
    """Of a failure that moved, half of the way a metre off and almost all of it close by."""
    if outcome is not Outcome.FAILURE:
        return SETTLED_PROGRESS.get(outcome)
    return 0.0 if agent == "hold" else 0.99 / (1.0 + (distance_m or 0.0))


def _reach(start: NDArray[np.float64], end: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    share = np.linspace(0.0, 1.0, 40)[:, None]
    path = start + (end - start) * (3 * share**2 - 2 * share**3)
    path[:, 2] += 0.08 * np.sin(np.pi * share[:, 0])
    return path + 0.002 * np.cumsum(rng.standard_normal(path.shape), axis=0) * share


def _write_trial(directory: Path, record: TrialRecord) -> None:
    folder = directory / "trials" / record.id
    folder.mkdir(parents=True)
    case = record.case
    scene = generator("scene", case.task, case.seed)
    target = np.array([scene.uniform(0.42, 0.68), scene.uniform(-0.18, 0.2), 0.03])
    start, rng = np.array([0.32, 0.0, 0.36]), generator("trial", record.id)
    reference = _reach(start, target, generator("path", case.task, case.seed))
    direction = rng.standard_normal(3)
    direction[2] = abs(direction[2]) * 0.4
    miss = (record.distance_m or 0.0) * direction / np.linalg.norm(direction)
    path = reference[:1].repeat(3, axis=0) if record.agent == "hold" else _reach(start, target + miss, rng)
    frames = []
    if case.level in (0, 5):
        image = draw_scene(target.tolist(), generator("image", case.task, case.seed))
        distort = DISTORTIONS.get(case.distortion, (0.0, lambda image, level, rng: image))[1]
        for kind, picture in (("reference", image), ("distorted", distort(image, case.level, rng))):
            quality = [cv2.IMWRITE_JPEG_QUALITY, 90]
            cv2.imwrite(str(folder / f"00_top_{kind}.jpg"), cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), quality)
        frames = [
            {"step": 0, "camera": "top", "reference": "00_top_reference.jpg", "distorted": "00_top_distorted.jpg"}
        ]
    place, other = (PLACES[int(draw)] for draw in scene.permutation(len(PLACES))[:2])
    seen = {"reference": f"I see a red cube {place}, with three more objects on the table."}
    guess = f"I see a red cube {place}" if (record.cognition or 0) > 0.7 else f"I see a dark cylinder {other}"
    seen["distorted"] = (
        f"{guess}, with {'three' if (record.cognition or 0) > 0.5 else 'two'} more objects on the table."
    )
    motion = rng.uniform(-0.05, 0.05, (2, 7)).round(4)
    motion[:, 6] = np.abs(motion[:, 6])
    deltas = (0.0 * motion if record.agent == "hold" else motion).tolist()
    detail = {
        "id": record.id,
        "agent": record.agent,
        "task": case.task,
        "seed": case.seed,
        "distortion": case.distortion,
        "level": case.level,
        "instruction": TASKS.get(case.task, case.task),
        "question": f"You are asked to {TASKS.get(case.task, case.task)}. Where is it?",
        "outcome": record.outcome.value,
        "success": record.outcome is Outcome.SUCCESS,
        "answers": seen,
        "cognition": {
            "total": record.cognition,
            "bleu": (record.cognition or 0) * 0.9,
            "rouge_l": record.cognition,
            "cider": 10 * (record.cognition or 0),
        },
        "decision": {
            "total": record.decision,
            "position": record.decision,
            "rotation": 1.0,
            "state": 1.0,
            "reference": {"deltas": deltas},
            "distorted": {"deltas": deltas},
        },
        "execution": {"score": record.execution, "distance_m": record.distance_m},
        "path": path.round(5).tolist(),
        "reference_path": reference.round(5).tolist(),
        "final_tcp": np.eye(4).tolist(),
        "frames": frames,
        "simulated_s": record.simulated_s,
        "wall_s": record.wall_s,
        "error_code": record.error_code,
        "error_message": record.error_message,
    }
    (folder / "trial.json").write_text(json.dumps(detail))


if __name__ == "__main__":
    from merton.study.report import write_report

    make_fake_run(Path(sys.argv[1]), agents=("oracle", "servo", "blobs", "hold"), seeds=3)
    print(write_report(Path(sys.argv[1])))
