"""An embedding without a network, and a pool of eight families of questions, for tests of the computed voters."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from merton_studies.curation.pool import Pool
from merton_studies.curation.question import AnswerKind, BenchmarkSource, Question

FAMILIES: dict[str, tuple[str, AnswerKind]] = {
    "QuantNum": ("How many {} are on the table?", "number"),
    "SceneAct": ("Is the {} open or closed?", "free_text"),
    "SpatGeo": ("Is the {} left or right of the robot, or behind it?", "free_text"),
    "PhysCaus": ("Would the {} fall or tip if it is pushed?", "free_text"),
}
THINGS = (
    "cup",
    "block",
    "drawer",
    "box",
    "bottle",
    "bowl",
    "plate",
    "lid",
    "knob",
    "button",
    "ring",
    "can",
    "jar",
    "pen",
)


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """A bag of words with a direction for each word, of norm 1; the vectors of texts without a common word differ."""
    vectors = np.zeros((len(texts), 512), np.float32)
    for row, text in zip(vectors, texts, strict=True):
        for word in re.findall(r"\w+", text.lower()):
            row[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4]) % 512] += 1
        row /= max(float(np.linalg.norm(row)), 1e-9)
    return vectors


def family_pool(each: int = 14) -> Pool:
    """Questions of each family about as many things; `dimension` is the family."""
    questions = [
        Question(
            id=f"{family} {thing}",
            source="made",
            text=wording.format(thing),
            answer_kind=kind,
            scene=thing,
            dimension=family,
        )
        for family, (wording, kind) in FAMILIES.items()
        for thing in THINGS[:each]
    ]
    return Pool.of(questions, [BenchmarkSource(name="made")])
