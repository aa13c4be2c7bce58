"""Columns of a published table, by the part of a question that each holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from merton.errors import InputError, UnknownNameError

KNOWN: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "question_id", "qid", "pid", "uid", "idx", "index"),
    "text": ("question", "query", "prompt", "text"),
    "choices": ("options", "choices", "answer_options", "endings"),
    "answer": (
        "answer",
        "answers",
        "gt_answer",
        "ground_truth",
        "answerkey",
        "answer_key",
        "correct_answer",
        "label",
        "cop",
    ),
    "also": ("extra_answers",),
    "unit": ("unit",),
    "situation": ("situation", "context"),
    "scene": ("scene", "scene_id", "scene_name", "episode_history", "video_id"),
    "dimension": ("dimension", "category"),
    "frames": ("frames",),
    "stamps": ("stamps",),
}
"""Part of a question to the names of its column in published tables (lmms-eval's tasks: MMBench, MMMU, BLINK, CV-Bench,
EmbSpatial, ERQA, RealWorldQA, VSI-Bench; OpenEQA; SQA3D; HellaSwag; MedMCQA), the first that is there counts. `stamps`
is ours: the seconds of a video at which its frames are taken."""
MEDIA = "media"
PARTS = (*KNOWN, MEDIA, "meta")
_IMAGE = re.compile(r"(image|images|image_path|image_\d+|media|videos?|video_path)", re.IGNORECASE)
_OF_A_CHOICE = re.compile(r"(?:(choice|option|opt|op|ending|answer|ans|sol)[ _.-]*)?(?:([A-Za-z])|(\d\d?))")
_PLAIN = ("id", "unit", "situation", "scene", "dimension")
"""Parts that may be missing: a nested column of their names is not theirs."""


@dataclass(frozen=True)
class Columns:
    """The columns of a table by what they hold.

    Attributes:
        by_part: part of `KNOWN` to its column; "text" is always there.
        pictures: columns of pictures, in their order.
        lettered: columns A, B, C, ..., choice_a, ..., option1, ..., answerA, ..., sol1, ..., each a choice, in their
            order.
        labels: of those: the letters in capitals, or the numbers.
        meta: columns that are kept in `Question.meta`.
        left_out: columns of nested values that nothing is made of.
    """

    by_part: Mapping[str, str]
    pictures: tuple[str, ...]
    lettered: tuple[str, ...]
    labels: tuple[str, ...]
    meta: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return [*dict.fromkeys((*self.by_part.values(), *self.pictures, *self.lettered, *self.meta))]


def columns_of(kinds: Mapping[str, str], given: Mapping[str, tuple[str, ...]], strict: bool, where: str) -> Columns:
    """The columns of a table, by the part of a question that each holds.

    Args:
        kinds: of the table.
        given: part of `PARTS` to columns, where the user says so.
        strict: a column that holds nothing known is refused; else it goes to meta, or is left out if it is nested.
        where: the table's name for messages.

    Raises:
        InputError: no column of questions or of answers, an unknown column, or a part or column that does not exist.
    """
    for part, names in given.items():
        if part not in PARTS:
            raise UnknownNameError("part of a question", part, PARTS)
        for name in names:
            if name not in kinds:
                raise InputError(f"{where} has no column {name!r}; it has {', '.join(kinds)}")
    taken = {name for names in given.values() for name in names}
    by_part = {part: names[0] for part, names in given.items() if part in KNOWN}
    lower = {name.lower(): name for name in kinds if name not in taken}
    for part, names in KNOWN.items():
        found = next((lower[name] for name in names if name in lower), None)
        if part in by_part or found is None or (part in _PLAIN and kinds[found] == "other"):
            continue
        if kinds[found] != "picture" or part == "frames":
            by_part[part] = found
    for part in ("text", "answer"):
        if part not in by_part:
            raise InputError(
                f"{where} has no column of the {'question' if part == 'text' else 'answer'}, called "
                f"{', '.join(KNOWN[part])}; it has {', '.join(kinds)}: name it by --column {part}=NAME"
            )
    taken |= set(by_part.values())
    free = [name for name in kinds if name not in taken]
    pictures = [name for name in free if kinds[name] == "picture" or _IMAGE.fullmatch(name)]
    lettered = _lettered(free) if "choices" not in by_part else {}
    rest = [name for name in free if name not in pictures and name not in lettered.values()]
    if strict and rest:
        raise InputError(
            f"{where} has a column {rest[0]!r}, which holds no known part of a question; name its part by "
            f"--column PART={rest[0]}, with one of {', '.join(PARTS)}"
        )
    nested = [name for name in rest if kinds[name] == "other"]
    return Columns(
        by_part,
        tuple(dict.fromkeys((*given.get(MEDIA, ()), *pictures))),
        tuple(lettered.values()),
        tuple(lettered),
        tuple(dict.fromkeys((*given.get("meta", ()), *(name for name in rest if name not in nested)))),
        tuple(nested),
    )


def _lettered(names: Sequence[str]) -> dict[str, str]:
    """Label to column of the columns that are a choice each; empty if there are none.

    Letters begin with A and B, numbers with 0 or 1. Letters alone are those of one case, and small ones follow each
    other without a gap: x, y and z are no choices.
    """
    families: dict[tuple[str, str], dict[str, str]] = {}
    for name in names:
        found = _OF_A_CHOICE.fullmatch(name) or _OF_A_CHOICE.fullmatch(name.lower())
        if found and (found[1] or found[2]):
            kind = "number" if found[3] else "small" if found[2].islower() and not found[1] else "letter"
            families.setdefault((found[1] or "", kind), {})[found[3] or found[2].upper()] = name
    for (_, kind), found_in in sorted(families.items(), reverse=True):
        order = sorted(found_in, key=lambda label: (len(label), label))
        if kind == "number":
            start = int(order[0])
            whole = start < 2 and [int(label) for label in order] == list(range(start, start + len(order)))
        else:
            whole = order[:2] == ["A", "B"] and (kind != "small" or order == [chr(65 + at) for at in range(len(order))])
        if whole and len(order) > 1:
            return {label: found_in[label] for label in order}
    return {}
