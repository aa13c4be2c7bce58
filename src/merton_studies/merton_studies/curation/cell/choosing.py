"""Choice of facts that become questions: shares of the dimensions, balanced answers, questions that repeat others."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from merton.errors import MertonError
from merton.seeding import generator
from merton_studies.curation.cell.fact import Fact

SHARES = {
    "PercepObj": 25.4,
    "SceneAct": 7.6,
    "SpatGeo": 43.1,
    "QuantNum": 13.0,
    "AffdFunc": 3.2,
    "PhysCaus": 1.5,
    "DecPlan": 4.5,
    "DynScene": 1.7,
}
"""Questions of each dimension in a hundred: those of A2Eval, Table 2, so that the pool is as lopsided."""
TWIN_SHARE = 0.2
"""Ours: the share of questions that repeat another one in other words."""
_FILLED_UP = "SpatGeo"
"""The dimension that gives the questions that another one lacks: it has the most facts."""
_FEW_CLASSES = 5
"""A family with so many answers has all of them equally often; one with more would end with its rarest."""
_ONE_ANSWER = 10
"""A family is not asked if so many facts of it all have one answer."""
_SAME = {
    "picture_left": "picture_side",
    "drawer_state": "drawer_open",
    "posture": "fallen",
    "push_falls": "push",
    "kind": "only_one",
    "next_action": "plan",
}
"""Families that ask for the same fact in another form: of a subject only one of them is asked."""


@dataclass(frozen=True)
class Found:
    """A fact and the scene that it is about."""

    scene: str
    fact: Fact

    @property
    def key(self) -> tuple[str, str, str]:
        """No two questions have the same, unless one is planted as the twin of the other."""
        return self.scene, _SAME.get(self.fact.family, self.fact.family), self.fact.subject


def numbers_of(questions: int) -> dict[str, int]:
    """The questions of each dimension, by largest remainder."""
    exact = {name: questions * share / sum(SHARES.values()) for name, share in SHARES.items()}
    counts = {name: math.floor(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: counts[name] - exact[name])
    for name in by_remainder[: questions - sum(counts.values())]:
        counts[name] += 1
    return counts


def chosen(found: Iterable[Found], questions: int, seed: int) -> tuple[list[Found], list[int]]:
    """Facts that are asked, and the numbers of those among them that are asked a second time in other words.

    Both together are as many as `questions`. Raises MertonError if the scenes have too few facts.
    """
    of_dimension: dict[str, list[Found]] = defaultdict(list)
    for one in found:
        of_dimension[one.fact.dimension].append(one)
    counts, missing = numbers_of(questions), 0
    originals: list[Found] = []
    twins: list[int] = []
    for name in sorted(counts, key=lambda name: name == _FILLED_UP):
        wanted = counts[name] + (missing if name == _FILLED_UP else 0)
        repeated = round(TWIN_SHARE * wanted)
        rng = generator("cell pool choice", seed, name)
        facts = _balanced(of_dimension[name], wanted - repeated, rng)
        repeated = min(repeated, len(facts))
        again = sorted(rng.permutation(len(facts))[:repeated].tolist())
        twins += [len(originals) + number for number in again]
        originals += facts
        missing += max(0, wanted - len(facts) - repeated) if name != _FILLED_UP else 0
    if len(originals) + len(twins) < questions:
        raise MertonError(f"the scenes give {len(originals) + len(twins)} questions only, not {questions}")
    return originals, twins


def _balanced(found: Sequence[Found], count: int, rng: np.random.Generator) -> list[Found]:
    """Some facts: families in turns, in a family the answers in turns.

    A family with few answers ends with its rarest answer. Its further facts are taken where all families have ended.
    """
    families: dict[str, dict[str, deque[Found]]] = defaultdict(lambda: defaultdict(deque))
    for index in rng.permutation(len(found)).tolist():
        fact = found[index].fact
        families[fact.family][fact.balance].append(found[index])
    for family, classes in list(families.items()):
        if set(classes) - {""} and len(classes) == 1 and sum(map(len, classes.values())) >= _ONE_ANSWER:
            del families[family]  # its answer is known without looking
    picked: list[Found] = []
    taken: set[tuple[str, str, str]] = set()
    used: dict[str, Counter[str]] = {family: Counter() for family in families}
    for strict in (True, False):
        open_ones = sorted(families)
        while open_ones and len(picked) < count:
            family = min(open_ones, key=lambda name: (used[name].total(), name))
            one = _next(families[family], used[family], taken, strict)
            if one is None:
                open_ones.remove(family)
                continue
            taken.add(one.key)
            used[family][one.fact.balance] += 1
            picked.append(one)
    return picked


def _next(
    classes: Mapping[str, deque[Found]], used: Counter[str], taken: set[tuple[str, str, str]], strict: bool
) -> Found | None:
    """The next fact of a family: of the answer that was asked for least."""
    for name in sorted(classes, key=lambda name: (used[name], name)):
        waiting = classes[name]
        while waiting:
            one = waiting.popleft()
            if one.key not in taken:
                return one
        if strict and len(classes) <= _FEW_CLASSES:
            return None
    return None
