"""A curated benchmark in small: 24 questions of two sources, three dimensions, six kept."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import cv2
import numpy as np

from merton_studies.curation.agents import Balance, Critique, Finding, Round
from merton_studies.curation.assignment import Assignment, write_assignment
from merton_studies.curation.benchmark import write_benchmark
from merton_studies.curation.curated import ASSIGNMENTS, BALANCE, CURATION, MEMORY, REDUNDANCY, TAXONOMY
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import BenchmarkSource, Medium, Question
from merton_studies.curation.sampling import Kept
from merton_studies.curation.taxonomy import Dimension, Taxonomy, write_taxonomy

DIMENSIONS = ("Object", "Space", "Number")
TAXONOMY_OF = Taxonomy(
    name="three",
    origin="Made for a test.",
    dimensions=tuple(Dimension(name=name, title=name, definition=f"Asks for {name}.") for name in DIMENSIONS),
)
VOTERS = ("first", "second", "third")
NASTY = "<script>alert(1)</script> | **bold**"


def pool(folder: Path) -> Pool:
    """Questions 0 to 23 with pictures; every second one of the source "cell", the others of "web" without licence."""
    (folder / "media").mkdir(parents=True)
    pictures = []
    for value in range(3):
        name = f"media/{value}.png"
        cv2.imwrite(str(folder / name), np.full((24, 32, 3), 60 + 80 * value, np.uint8))
        pictures.append(Medium(path=name, sha256=hashlib.sha256((folder / name).read_bytes()).hexdigest()))
    questions = [
        Question(
            id=f"{number:02d}",
            source="web" if number % 2 else "cell",
            text=NASTY if number == 1 else f"Which of the things is number {number}?",
            answer_kind="choice",
            choices=("this", "that"),
            answer="this",
            media=(pictures[number % 3],),
            scene=f"scene {number // 4}",
        )
        for number in range(24)
    ]
    return Pool.of(questions, [BenchmarkSource(name="cell", licence="Apache-2.0"), BenchmarkSource(name="web")], folder)


def make(folder: Path, out: Path) -> Pool:
    """Write the curated benchmark of `pool(folder)` into `out`; returns the whole pool."""
    everything = pool(folder)
    names = (*DIMENSIONS, "Other")
    dimension = tuple(names[min(number // 8, 3)] if number < 22 else "Other" for number in range(24))
    contested = np.array([number % 5 == 0 for number in range(24)])
    votes = tuple((name, None, "Space") if odd else (name,) * 3 for name, odd in zip(dimension, contested, strict=True))
    assignment = Assignment(
        TAXONOMY_OF,
        VOTERS,
        tuple(question.id for question in everything.questions),
        votes,
        ((),) * 24,
        dimension,
        np.where(contested, 1 / 3, 1.0),
        contested,
        np.zeros(24, bool),
    )
    kept = [Kept(8 * group + place, DIMENSIONS[group], place, 0.1) for group in range(3) for place in range(2)]
    write_benchmark(everything, kept, out, {"seed": 0})
    write_assignment(assignment, out / ASSIGNMENTS)
    write_taxonomy(TAXONOMY_OF, out / TAXONOMY)
    balance = assignment.balance([one.dimension for one in kept])
    (out / BALANCE).write_text(balance.model_dump_json())
    (out / MEMORY).write_text("".join(one.model_dump_json() + "\n" for one in _rounds(balance)))
    (out / REDUNDANCY).write_text(json.dumps(_redundancy(everything)))
    (out / CURATION).write_text(
        json.dumps({"merton": "0", "seeds": {"sampling": 0}, "inputs": [{"name": "pool", "sha256": "0" * 64}]})
    )
    return everything


def scores(out: Path) -> Path:
    """A folder of `merton curate evaluate` with two models."""
    out.mkdir()
    mean = {"mean": 0.5, "interval": [0.25, 0.75], "n": 2, "scenes": 2}
    none = {"mean": None, "interval": None, "n": 0, "scenes": 0}
    found = {
        "blind": {"overall": mean, "dimensions": {"Object": mean, "Space": none}, "failed": 0, "unasked": 2},
        "sharp": {"overall": {**mean, "mean": 0.9}, "dimensions": {"Object": mean}, "failed": 1, "unasked": 0},
    }
    (out / "scores.json").write_text(json.dumps({"form": "merton scores 1", "made": {}, "answerers": found}))
    return out


def _rounds(balance: Balance) -> list[Round]:
    finding = Finding(kind="redundant", action="merge", dimensions=("Object", "Space"), text="They ask for the same.")
    return [
        Round(outer=1, inner=1, taxonomy=TAXONOMY_OF, critique=Critique(findings=(finding,))),
        Round(outer=1, inner=2, taxonomy=TAXONOMY_OF, critique=Critique(summary="Good."), balance=balance),
    ]


def _redundancy(everything: Pool) -> dict[str, object]:
    ids = [question.id for question in everything.questions]
    covered = {"dropped": 6, "distance": 0.2, "uniform": 0.4, "ratio": 0.5, "interval": [0.4, 0.6], "better": 1.0}
    return {
        "form": "merton redundancy 1",
        "least_cosine": 0.92,
        "pair_count": 7,
        "share_with_near_duplicate": 0.25,
        "pairs": [{"one": ids[0], "other": ids[2], "cosine": 0.98}, {"one": ids[1], "other": ids[3], "cosine": 0.95}],
        "restated": {"pair_count": 1, "share": 0.08, "pairs": [{"one": ids[4], "other": ids[6], "cosine": 0.6}]},
        "planted": {"pairs": 3, "both_kept": 1, "avoided": 0.667, "interval": [0.2, 0.9]},
        "similarity": {
            "sources": ["cell", "web"],
            "cosine": [[0.8, 0.3], [0.3, 0.7]],
            "nearest": [[0.9, 0.5], [0.6, 0.9]],
        },
        "coverage": {"Object": covered},
        "maps": {"Object": {"x": [0.0, 1, 2], "y": [0.0, 2, 1], "kept": [True, False, True], "explained": [0.3, 0.2]}},
    }
