"""Answers without looking: by chance, by the most frequent answer, by the text of the question alone.

Everything is learnt from questions of other scenes: scenes are dealt into folds by their names, and a question is
answered by what the other folds hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_array

from merton.cognition.words import words
from merton.seeding import derive_seed, generator
from merton_studies.curation.question import Question, polygon

FOLDS = 5
NEIGHBOURS = 15
"""Questions whose answers the blind one sums up. Ours."""

Point = tuple[float, float]


def fold_of(question: Question, seed: int) -> int:
    """The fold of a question's scene."""
    return derive_seed("fold", seed, question.unit_of_intervals) % FOLDS


def summed_up(question: Question, others: Sequence[Question]) -> str | None:
    """One answer from the answers of others: the most frequent, the median number, the middle point; None without any.

    Of a choice the most frequent text among its own choices; where no other has one of them, the most frequent place
    in the list.
    """
    answered = [other for other in others if other.answer and other.answer_kind == question.answer_kind]
    if not answered:
        return None
    if question.answer_kind == "number":
        return f"{float(np.median([float(other.answer) for other in answered])):.6g}"
    if question.answer_kind == "point":
        centers = np.array([inside_point(polygon(other.answer)) for other in answered])
        return point_text(tuple(np.median(centers, axis=0).tolist()))
    texts = Counter(other.answer for other in answered)
    if question.answer_kind != "choice":
        return min(texts, key=lambda text: (-texts[text], text))
    known = [choice for choice in question.choices if texts[choice]]
    if known:
        return max(known, key=lambda choice: texts[choice])
    places = Counter(other.choices.index(other.answer) for other in answered)
    fitting = [place for place in range(len(question.choices)) if places[place]]
    return question.choices[max(fitting, key=lambda place: places[place])] if fitting else None


def at_random(question: Question, draw: Generator) -> str:
    """Any answer of a kind, from nothing but the question."""
    kind = question.answer_kind
    if kind == "choice":
        return question.choices[int(draw.integers(len(question.choices)))]
    if kind == "yes_no":
        return "yes" if draw.random() < 0.5 else "no"
    if kind == "point":
        return point_text((draw.random(), draw.random()))
    return "1" if kind == "number" else "reach" if kind == "actions" else "unknown"


class Majority:
    """Answers with the most frequent answer of the question's source and kind, by `summed_up`, in other scenes."""

    def __init__(self, questions: Sequence[Question], seed: int = 0) -> None:
        self._seed = seed
        self._groups: dict[tuple[str, str], list[Question]] = {}
        for question in questions:
            self._groups.setdefault((question.source, question.answer_kind), []).append(question)
        self._fold = {question.id: fold_of(question, seed) for question in questions}
        self._others: dict[tuple[str, str, int], list[Question]] = {}

    def others(self, question: Question) -> list[Question]:
        """Questions of the same source and kind, of other folds."""
        fold = fold_of(question, self._seed)
        key = (question.source, question.answer_kind, fold)
        if key not in self._others:
            group = self._groups.get(key[:2], [])
            self._others[key] = [other for other in group if self._fold[other.id] != fold and other.answer]
        return self._others[key]

    def answer(self, question: Question) -> str:
        """The answer; by chance where there is no other question."""
        found = summed_up(question, self.others(question))
        return found or at_random(question, generator("majority", self._seed, question.id))


def chance_answer(question: Question, known: Majority, seed: int) -> str:
    """An even draw among the choices, yes and no, or the places of the picture; of the other kinds the answer of any
    question of the same source in another scene."""
    draw = generator("chance", seed, question.id)
    if question.answer_kind in ("choice", "yes_no", "point"):
        return at_random(question, draw)
    others = known.others(question)
    return others[int(draw.integers(len(others)))].answer if others else at_random(question, draw)


class Blind:
    """Answers from the text alone: `summed_up` over the questions of other scenes that read most alike.

    Likeness is the cosine of TF-IDF vectors (Salton and Buckley 1988) of situation, question and choices. A model that
    does not beat it has not been shown to look at the pictures.
    """

    def __init__(self, questions: Sequence[Question], seed: int = 0) -> None:
        self._questions = questions
        self._seed = seed
        self._majority = Majority(questions, seed)

    @cached_property
    def _row(self) -> dict[str, int]:
        return {question.id: row for row, question in enumerate(self._questions)}

    @cached_property
    def _fold(self) -> np.ndarray:
        return np.array([fold_of(question, self._seed) for question in self._questions])

    @cached_property
    def _kind(self) -> np.ndarray:
        return np.array([question.answer_kind for question in self._questions])

    @cached_property
    def _vectors(self) -> csr_array:
        """(questions, words) rows of norm 1."""
        texts = [Counter(words(question.full_text)) for question in self._questions]
        column = {word: place for place, word in enumerate(sorted({word for text in texts for word in text}))}
        rows = [row for row, text in enumerate(texts) for _ in text]
        columns = [column[word] for text in texts for word in text]
        counts = np.array([count for text in texts for count in text.values()], float)
        rarity = np.log((1 + len(texts)) / (1 + np.bincount(columns, minlength=len(column)))) + 1
        values = counts * rarity[columns]
        norms = np.sqrt(np.bincount(rows, values**2, len(texts)))
        return csr_array((values / norms[rows], (rows, columns)), (len(texts), len(column)))

    def answer(self, question: Question) -> str:
        """The answer; the majority's where no question of another scene shares a word."""
        row = self._row[question.id]
        likeness = (self._vectors @ self._vectors[[row]].T).toarray().ravel()
        allowed = (self._fold != self._fold[row]) & (self._kind == question.answer_kind) & (likeness > 0)
        near = np.flatnonzero(allowed)
        near = near[np.argsort(-likeness[near].round(9), kind="stable")][:NEIGHBOURS]
        found = summed_up(question, [self._questions[place] for place in near.tolist()])
        return found or self._majority.answer(question)


def wrong_answer(question: Question, known: Majority, draw: Generator) -> str:
    """An answer that is not right: another choice, the other word, a number off by a half to three times as much, a
    point outside, or the answer to another question."""
    right = {question.answer, *question.also}
    kind = question.answer_kind
    if kind == "choice":
        wrong = [choice for choice in question.choices if choice not in right]
        return wrong[int(draw.integers(len(wrong)))] if wrong else question.answer
    if kind == "yes_no":
        return "no" if question.answer == "yes" else "yes"
    if kind == "number":
        value = float(question.answer)
        off = (abs(value) or 1.0) * draw.uniform(0.55, 2.0)
        return f"{value + off if draw.random() < 0.5 or value < off else value - off:.6g}"
    if kind == "point":
        corners = polygon(question.answer)
        points = draw.random((64, 2))
        return point_text(
            next((tuple(point) for point in points.tolist() if not is_inside(tuple(point), corners)), (0.0, 0.0))
        )
    others = [other.answer for other in known.others(question) if other.answer not in right]
    return others[int(draw.integers(len(others)))] if others else ""


def point_text(point: Sequence[float]) -> str:
    """A point as an answer."""
    return f"[{point[0]:.4f}, {point[1]:.4f}]"


def region_center(answer: str) -> str:
    """A point well inside the region of a point's answer, as an answer."""
    return point_text(inside_point(polygon(answer)))


def inside_point(corners: Sequence[Point]) -> Point:
    """The centre of a polygon's corners if it is inside; else the middle of the widest piece of a line through it."""
    shape = np.array(corners)
    center = (float(shape[:, 0].mean()), float(shape[:, 1].mean()))
    if is_inside(center, corners):
        return center
    best: tuple[float, Point] = (-1.0, center)
    heights = np.unique(shape[:, 1])
    for y in ((heights[1:] + heights[:-1]) / 2).tolist():
        edges = zip(corners, [*corners[1:], corners[0]], strict=True)
        hits = sorted(x1 + (x2 - x1) * (y - y1) / (y2 - y1) for (x1, y1), (x2, y2) in edges if (y1 > y) != (y2 > y))
        for left, right in zip(hits[::2], hits[1::2], strict=True):
            best = max(best, (right - left, ((left + right) / 2, y)))
    return best[1]


def is_inside(point: Point, corners: Sequence[Point]) -> bool:
    """Whether a point is inside a polygon: the border's winding about it is not 0; on the border either may be."""
    x, y = point
    winding = 0
    for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True):
        left = (x2 - x1) * (y - y1) - (x - x1) * (y2 - y1)
        winding += (y1 <= y < y2 and left > 0) - (y2 <= y < y1 and left < 0)
    return winding != 0
