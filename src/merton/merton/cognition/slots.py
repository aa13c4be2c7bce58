"""Slots: the share of things and actions that two answers name alike, with colour, size, place and negation.

A second score beside the paper's (`merton.cognition.score`), which counts words: there a "not", or one colour, is one
word of many. Ours. The words are those of the grammar of scenes and instructions (`merton.world.nouns`,
`merton.world.tasks`): things, their colours, sizes and places, and actions. All others are passed over, so an answer in
other words about the same scene is alike, and nothing is known of what the grammar has no word for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from merton.cognition.unanswered import unanswered
from merton.cognition.words import words
from merton.world.nouns import COLORS, MIDDLES, PLACES, SIZES
from merton.world.tasks import action_words, kinds_of_things

_CLAUSE = re.compile(r"[.,;:!?\n\u2026\u2013\u2014()]+|\s-\s|\bbut\b", re.IGNORECASE)
_NEGATIONS = {"no", "not", "never", "none", "nothing", "neither", "nor", "without", "cannot", "unseen", "unable"}
"""And every word that ends in "n't"."""


class Mention(NamedTuple):
    """A thing or an action as an answer names it.

    Attributes:
        word: the kind of thing, such as "mug", or the action, such as "twist"; "" for attributes of nothing named.
        attributes: its colours, sizes and places.
        negated: whether it is denied: "no red cup", "not on the mat", "cannot reach".
    """

    word: str
    attributes: frozenset[str]
    negated: bool


def slots(reference: str, candidate: str) -> float | None:
    """The share of `mentions` that two answers have in common, 0..1: of all in either (Jaccard's index).

    A mention is alike if all its slots are: a colour, a place or a "not" makes another thing, or the opposite, of it.
    Compared slot by slot, one wrong colour in an answer with eight slots would cost an eighth, less than it costs by
    words. It is symmetric: a thing that is left out costs as much as one that is added.

    Returns:
        None where neither answer names anything that the grammar knows, or one is no answer
        (`merton.cognition.unanswered`).

    Raises:
        InputError: an answer is not text.
    """
    if any(unanswered(reference, candidate)):
        return None
    one, other = mentions(reference), mentions(candidate)
    return len(one & other) / len(one | other) if one or other else None


def slots_batch(references: Sequence[str], candidates: Sequence[str]) -> NDArray[np.float64]:
    """`slots` of each reference and the candidate at the same index, (n,); NaN where it is None."""
    found = [slots(*pair) for pair in zip(references, candidates, strict=True)]
    return np.array([np.nan if value is None else value for value in found], dtype=np.float64)


@lru_cache(maxsize=65_536)
def mentions(text: str) -> frozenset[Mention]:
    """The things and actions that an answer names; raises InputError if it is not text.

    Attributes belong to the thing directly behind them ("left red cube"), else to what was named last ("red cube far
    left", "turn it left"). A negation denies what its clause names next, else what it named last ("the cup is not
    visible"). "The cube" without attributes is the cube that was named before.
    """
    found: list[_Open] = []
    for clause in _CLAUSE.split(text) if isinstance(text, str) else [text]:
        _Clause(found).read(words(clause.replace("-", " ") if isinstance(clause, str) else clause))
    return frozenset(Mention(item.word, frozenset(item.attributes), item.negated) for item in found)


@dataclass
class _Open:
    """A mention while the text is read."""

    word: str
    attributes: set[str] = field(default_factory=set)
    negated: bool = False


class _Clause:
    """One clause, whose mentions are added to those `found` before it."""

    def __init__(self, found: list[_Open]) -> None:
        self._found = found
        self._latest: _Open | None = None
        self._adjacent: set[str] = set()  # attributes with nothing behind them yet
        self._early: set[str] = set()  # attributes before the first mention: "on the left is a cup"
        self._denied = False

    def read(self, said: Sequence[str]) -> None:
        for word in said:
            kind, known = _vocabulary().get(word, ("", word))
            if kind == "negation" or word.endswith("n't"):
                self._denied = True
            elif kind == "attribute":
                self._adjacent.add(known)
            elif kind == "thing":
                self._name(known, self._adjacent)
                self._adjacent = set()
            else:
                self._settle()
                if kind == "action":
                    self._name(known, set())
        self._settle()
        self._end()

    def _name(self, word: str, attributes: set[str]) -> None:
        """A thing or an action is named."""
        same = next((item for item in reversed(self._found) if item.word == word), None)
        if same is None or attributes or self._denied:
            same = _Open(word, set(attributes), self._denied)
            self._found.append(same)
        same.attributes |= self._early
        self._latest, self._early, self._denied = same, set(), False

    def _settle(self) -> None:
        """The attributes have no thing directly behind them."""
        (self._early if self._latest is None else self._latest.attributes).update(self._adjacent)
        self._adjacent = set()

    def _end(self) -> None:
        """Attributes and a negation that no mention took belong to what was named last, or stand alone."""
        if self._early:
            if not self._found:
                self._found.append(_Open(""))
            self._found[-1].attributes |= self._early
        if self._denied and self._latest is not None:
            self._latest.negated = True
        elif self._denied:
            self._found.append(_Open("", negated=True))


@lru_cache(maxsize=1)
def _vocabulary() -> dict[str, tuple[str, str]]:
    """Word to its kind and to the word that stands for it and its like."""
    things = {form: ("thing", kind) for kind in kinds_of_things() for form in (kind, f"{kind}s", f"{kind}es")}
    attributes = {word: ("attribute", word) for word in (*COLORS, *SIZES, *PLACES, *MIDDLES)}
    actions = {form: ("action", action) for form, action in action_words().items()}
    negations = {word: ("negation", word) for word in _NEGATIONS}
    return {**actions, **things, **attributes, "centre": ("attribute", "center"), **negations}
