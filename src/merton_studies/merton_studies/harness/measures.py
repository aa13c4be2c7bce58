"""Measures of answers that Embodied Arena's benchmarks use: the score of one answer, 0..1.

Mean relative accuracy is the one of the harness (`merton_studies.harness.reference`). Boxes have edges along the axes;
two opposite corners define one, [x, y, x, y] in a picture or [x, y, z, x, y, z] in a scene, in any unit.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from merton.cognition.words import words
from merton.errors import InputError
from merton.leaderboard.published.items import Counts
from merton.rating.scoring.boxes import overlaps
from merton_studies.curation.question import Question
from merton_studies.harness.pipeline import TOLERANCE
from merton_studies.harness.reference import reference_score, same_text

LEAST_OVERLAP = 0.25
"""Least overlap of a box that counts as found, as intersection over union: the ".25" of Acc@0.25 and F1@0.25."""
SIDES = (4, 6)
"""Numbers of a box: of a picture, of a scene."""

Box = tuple[float, ...]

_PARTED = re.compile(r"[,;\n]")
_GROUP = re.compile(r"\[([^\[\]]*)\]")


def exact_match(question: Question, answer: str) -> float:
    """1 if an answer is a right one, else 0.

    A choice may be named by its letter or its text, a point must lie in the region, a number must be the same number.
    Texts are compared in small letters, without punctuation and articles, as SQuAD does (Rajpurkar and others 2016),
    with numbers and units in one form, whole or behind "the answer is" [ours]. A right text that is one letter, or yes
    or no, is read as such. ScanQA and SQA3D publish no rule for what counts as the same text.
    """
    if question.answer_kind in ("free_text", "actions"):
        return float(any(same_text(question.text, right, answer) for right in (question.answer, *question.also)))
    if question.answer_kind == "number":
        question = question.model_copy(update={"meta": {**question.meta, TOLERANCE: "0"}})
    return reference_score(question, answer)


def mean_relative_accuracy(question: Question, answer: str) -> float:
    """The share of t = .50, .55 ... .95 for which |said - right| / right < 1 - t (VSI-Bench, equation 1).

    The benchmark's program has "at most" for "<", which differs where the error is 5, 10 ... 50 % exactly.
    """
    return reference_score(question, answer)


def overlap(first: Box, second: Box) -> float:
    """Intersection over union of two boxes of as many axes, 0..1; 0 for boxes without any extent."""
    pair = [np.concatenate((low, high - low))[None] for low, high in map(_corners, (first, second))]
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.nan_to_num(overlaps(pair[0], pair[1], np.zeros(1, bool))[0, 0]))


def box_accuracy(right: Box, answer: str) -> float:
    """Acc@0.25 of ScanRefer (Chen and others 2020): 1 if the box overlaps the right one by .25 or more, else 0.

    Of an answer with several boxes the first is scored.
    """
    said = boxes_said(answer, len(right))
    return float(bool(said) and said[0] is not None and overlap(said[0], right) >= LEAST_OVERLAP)


def box_f1(right: Sequence[Box], answer: str) -> float:
    """F1@0.25 of Multi3DRefer (Zhang and others 2023).

    Said and right boxes are paired so that the sum of their overlaps is largest; pairs of .25 or more are found ones;
    F1 = 2 found / (said + right). Where no object is right, 1 for "[]" and 0 for any box. A box that has the wrong
    number of values counts as said. A text without any brackets says nothing, not "none", and scores 0 [ours].
    """
    from scipy.optimize import linear_sum_assignment

    if not _GROUP.search(answer):
        return 0.0
    said = boxes_said(answer, len(right[0]) if right else 0)
    if not right or not said:
        return float(len(right) == len(said))
    shared = np.array([[0.0 if box is None else overlap(box, other) for other in right] for box in said])
    found = int((shared[linear_sum_assignment(shared, maximize=True)] >= LEAST_OVERLAP).sum())
    return 2 * found / (len(said) + len(right))


def label_counts(right: str, said: str) -> Counts:
    """True and false positives and false negatives of an answer that lists labels, such as the steps of a plan.

    Labels are equal by their words, in any order; one that is said twice must be right twice. Micro-F1 is made of the
    sums of these over the questions of a dimension (`merton.leaderboard.published.items.micro_f1_parts`).
    """
    wanted, found = labels(right), labels(said)
    both = (wanted & found).total()
    return Counts(both, found.total() - both, wanted.total() - both)


def labels(text: str) -> Counter[str]:
    """The labels in a text: the entries of a JSON list, or what commas, semicolons and ends of lines part."""
    entries: list[object] = []
    if text.strip().startswith("["):
        try:
            value = json.loads(text)
            entries = value if isinstance(value, list) else []
        except (ValueError, RecursionError):
            entries = []
    entries = entries or list(_PARTED.split(text.strip().strip("[]")))
    found = (" ".join(words(str(entry))) for entry in entries)
    return Counter(label for label in found if label)


def boxes_said(answer: str, size: int) -> list[Box | None]:
    """The boxes in the text of an answer: each innermost pair of brackets with something in it.

    Args:
        size: numbers of a right box; None stands for brackets that hold anything else than so many finite numbers.
    """
    return [_box(inside, size) for inside in _GROUP.findall(answer) if inside.strip()]


def right_boxes(text: str, where: str) -> list[Box]:
    """The right boxes of a question, from the JSON of one box or of a list of boxes, perhaps empty.

    Raises:
        InputError: it is neither, a box has another number of values than `SIDES` or than the first, or is flat.
    """
    try:
        value = json.loads(text, parse_float=float)
    except (ValueError, RecursionError):
        value = None
    several = value if isinstance(value, list) and all(isinstance(box, list) for box in value) else [value]
    found = []
    for box in several:
        if not isinstance(box, list) or len(box) not in SIDES or len(box) != len(several[0]):
            raise InputError(
                f"{where}: gold is {text[:60]!r}; write a box as [x, y, x, y] or [x, y, z, x, y, z], or a list of such "
                "boxes, all of them of one kind"
            )
        numbers = _box(json.dumps(box)[1:-1], len(box))
        if numbers is None or not overlap(numbers, numbers) > 0:
            raise InputError(f"{where}: the box {json.dumps(box)[:60]} in gold has no extent; give opposite corners")
        found.append(numbers)
    return found


def _box(inside: str, size: int) -> Box | None:
    parts = inside.replace(",", " ").split()
    try:
        numbers = tuple(float(part) for part in parts)
    except ValueError:
        return None
    return numbers if len(numbers) == size and all(map(math.isfinite, numbers)) else None


def _corners(box: Box) -> tuple[np.ndarray, np.ndarray]:
    pair = np.array(box, np.float64).reshape(2, -1)
    return pair.min(axis=0), pair.max(axis=0)
