"""The words of a fact: each benchmark has its house style, each family several wordings (`wordings.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from merton.config import Model, load
from merton_studies.curation.cell.fact import Fact
from merton_studies.curation.question import AnswerKind, BenchmarkSource

_FILE = Path(__file__).with_name("wordings.yaml")
_LICENCE = "Apache-2.0"


class House(Model):
    """A benchmark of the pool.

    Attributes:
        name, description: as in `BenchmarkSource`.
        dimensions: of which it has questions.
        situation: sentences of which one stands before each question; none if empty.
        before: texts of which one begins the question.
        after: kind of answer to the text that ends the question.
    """

    name: str
    description: str
    dimensions: tuple[str, ...]
    situation: tuple[str, ...] = ()
    before: tuple[str, ...]
    after: Mapping[AnswerKind, str]


class Wordings(Model):
    """The file: its benchmarks, and the wordings of each family."""

    sources: tuple[House, ...]
    families: dict[str, tuple[str, ...]]


@lru_cache(maxsize=1)
def wordings() -> Wordings:
    """All wordings."""
    return load(_FILE, Wordings)


def sources() -> list[BenchmarkSource]:
    """The benchmarks as a pool describes them."""
    return [
        BenchmarkSource(
            name=house.name, description=house.description, licence=_LICENCE, citation="Rendered by Merton."
        )
        for house in wordings().sources
    ]


def worded(fact: Fact, rng: np.random.Generator, other_than: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Fields of a `Question`: source, text, situation, choices, and in meta the wording's number.

    Args:
        fact: what is asked.
        rng: chooses.
        other_than: "source" and "wording" of another question about the same fact: this one gets another wording and,
            where there is a choice, another benchmark.
    """
    past = other_than or {}
    houses = [house for house in wordings().sources if fact.dimension in house.dimensions]
    fresh = [house for house in houses if house.name != past.get("source")]
    house = (fresh or houses)[int(rng.integers(len(fresh or houses)))]
    texts = wordings().families[fact.family]
    numbers = [number for number in range(len(texts)) if str(number) != past.get("wording")]
    wording = numbers[int(rng.integers(len(numbers)))]
    before = str(rng.choice(house.before))
    text = texts[wording].format(**fact.words)
    text = before + (text if before.endswith(": ") else text[:1].upper() + text[1:])
    return {
        "source": house.name,
        "text": text + house.after.get(fact.answer_kind, ""),
        "situation": str(rng.choice(house.situation)) if house.situation else "",
        "choices": tuple(str(name) for name in rng.permutation(fact.choices)) if fact.choices else (),
        "meta": {"family": fact.family, "wording": str(wording)},
    }
