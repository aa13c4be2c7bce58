"""World models as evaluators: a generated video beside the real one, from 0 to 3 (GigaBrain Challenge 2026)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field

from merton.config import Model
from merton.errors import InputError
from merton.leaderboard.published.world_model import (
    COLUMNS,
    COUNT_COLUMNS,
    Annotation,
    Evaluation,
    Rules,
    evaluate,
    load_rules,
)
from merton.results.csv_writer import write_csv
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.project import ANNOTATORS
from merton_studies.people.protocol import Protocol, Scale
from merton_studies.people.sheets import first_answers

Defect = Literal["deformed", "implausible", "other_motion", "chaotic"]
DEFECTS: tuple[str, ...] = get_args(Defect)
"""Defects that a video may have, beside another outcome; their words are in config/leaderboards/world_model.yaml."""


class EpisodeAnswer(Model):
    """A score, and the outcome and defects that were seen.

    Attributes:
        score: 0 to 3; the annotator decides, also against `suggested`.
        same_outcome: the objects end as in the real one: both with success, or both with failure, and none is gone.
        defects: of `DEFECTS`.
    """

    score: Annotated[int, Field(ge=0, le=3)]
    same_outcome: bool
    defects: list[Defect] = Field([], max_length=len(DEFECTS))


def suggested(same_outcome: bool, defects: Sequence[str]) -> int:
    """The score that follows from what was seen. Ours: the rubric defines scores, and no tree of decisions.

    0 if the outcome differs, and the motion too or the picture falls apart; 1 if the outcome differs otherwise; 2 if it
    is the same and there is any defect, a picture that falls apart among them; 3 without one. The rubric joins each
    case of 0 with another final state.
    """
    if same_outcome:
        return 2 if defects else 3
    return 0 if {"other_motion", "chaotic"} & set(defects) else 1


@cache
def _rules() -> Rules:
    return load_rules()


class Episodes(Protocol):
    """The reference and a video of a team play together; the rubric stands beside them.

    Items have the media "reference" and "video", and the facts `team`, `task`, `video` and, where it is known,
    `real_videos`: the number of real videos of the task.
    """

    name: ClassVar[str] = "episodes"
    title: ClassVar[str] = "Generated videos"
    roles: ClassVar[tuple[str, ...]] = ("reference", "video")
    criteria: ClassVar[Mapping[str, Scale]] = {"score": "ordinal", "outcome": "nominal"}
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"score": (0.0, 3.0)}
    panel_raters: ClassVar[int | None] = ANNOTATORS
    panel_items: ClassVar[int | None] = 10

    @property
    def answer(self) -> type[Model]:
        return EpisodeAnswer

    def panel(self, item: Item) -> str | None:
        return f"{item.facts['team']}\n{item.facts['task']}"

    def check_items(self, items: Sequence[Item]) -> None:
        """Refuses a gold video of a team that competes: its score is known, so it is in no sheet, and counts 0."""
        teams = {item.facts["team"] for item in items if item.gold is None}
        for item in items:
            if item.gold is not None and item.facts["team"] in teams:
                raise InputError(
                    f"{item.id} is a gold item, and {item.facts['team']!r} has other videos: scores of gold items are "
                    "on no board, so put them into the folder of a team of their own, such as control"
                )

    def view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        """`instruction`; `languages`: code of a language to the words of the form and the rubric, as `Words` has them.

        With `blind` false also `team`.
        """
        words = {code: words.model_dump(mode="json") for code, words in _rules().languages.items()}
        view: dict[str, Any] = {"instruction": item.texts.get("instruction", ""), "languages": words}
        return view if blind else {**view, "team": item.facts["team"]}

    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        return {"score": float(answer["score"]), "outcome": "same" if answer["same_outcome"] else "other"}

    def is_right(self, item: Item, answer: Mapping[str, Any]) -> bool:
        """Whether the score is the known one; the rest of the answer is free."""
        assert item.gold is not None
        return bool(answer["score"] == item.gold["score"])

    def export(
        self, items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]
    ) -> list[Path]:
        """The tables that `merton leaderboard world-model sheet.csv --ground-truth counts.csv` reads, and the reasons.

        `sheet.csv`: each annotator's first score of each video; `counts.csv`: real videos of each task (if their number
        is not known, those that any team has); `seen.csv`: every score beside what was seen and what it suggests.
        `left_out.csv`, if there is anything in it: scores that the rubric has no room for, which happens only where
        another annotator took over from one who left.
        """
        by_id = {item.id: item for item in items}
        taken, left = _within_the_rules(first_answers(answers), by_id)
        sheet = sorted(_row(answer, by_id, names) for answer in taken)
        files = [
            write_csv(out / "sheet.csv", COLUMNS, sheet),
            write_csv(out / "counts.csv", COUNT_COLUMNS, _counts(items).items()),
            write_csv(out / "seen.csv", (*COLUMNS, *_SEEN), [_seen_row(a, by_id, names) for a in answers]),
        ]
        if left:
            rows = sorted((*_row(answer, by_id, names), why) for answer, why in left)
            files.append(write_csv(out / "left_out.csv", (*COLUMNS, "reason"), rows))
        return files


@dataclass(frozen=True)
class EpisodeBoard:
    """The board of a study.

    Attributes:
        evaluation: the board and the agreement of the annotators.
        left_out: scores that the rubric has no room for (see `Episodes.export`).
    """

    evaluation: Evaluation
    left_out: int


def board_of(items: Sequence[Item], answers: Sequence[Answer]) -> EpisodeBoard:
    """The board of the scores so far; a task of which a video has no score yet is missing.

    Args:
        items: of the project.
        answers: that stand.
    """
    by_id = {item.id: item for item in items}
    taken, left = _within_the_rules(first_answers(answers), by_id)
    marks = [Annotation(*_row(answer, by_id, {})) for answer in taken]
    submitted = Counter((item.facts["team"], item.facts["task"]) for item in items if item.gold is None)
    return EpisodeBoard(evaluate(marks, _counts(items), _rules(), submitted), len(left))


_SEEN = ("kind", "suggested", "same_outcome", *DEFECTS, "seconds")


def _row(answer: Answer, by_id: Mapping[str, Item], names: Mapping[str, str]) -> tuple[str, str, str, str, int]:
    facts, rater = by_id[answer.item].facts, names.get(answer.rater, answer.rater)
    return facts["team"], facts["task"], facts["video"], rater, answer.answer["score"]


def _seen_row(answer: Answer, by_id: Mapping[str, Item], names: Mapping[str, str]) -> tuple[object, ...]:
    same, defects = answer.answer["same_outcome"], answer.answer["defects"]
    seen = (answer.kind, suggested(same, defects), int(same), *(int(name in defects) for name in DEFECTS))
    return (*_row(answer, by_id, names), *seen, answer.seconds)


def _within_the_rules(
    answers: Sequence[Answer], by_id: Mapping[str, Item]
) -> tuple[list[Answer], list[tuple[Answer, str]]]:
    """Scores of at most so many annotators a team and task, and videos of each, as the rubric says; the rest, why.

    The annotators with most videos stay, of equal ones the first by pseudonym; of an annotator the first videos.
    """
    panels: dict[tuple[str, str], dict[str, list[Answer]]] = defaultdict(lambda: defaultdict(list))
    for answer in answers:
        facts = by_id[answer.item].facts
        panels[facts["team"], facts["task"]][answer.rater].append(answer)
    rules, taken, left = _rules(), list[Answer](), list[tuple[Answer, str]]()
    for by_rater in panels.values():
        order = sorted(by_rater, key=lambda rater: (-len(by_rater[rater]), rater))
        for place, rater in enumerate(order):
            if place >= rules.annotators:
                left += [
                    (answer, f"the team and task have {rules.annotators} annotators") for answer in by_rater[rater]
                ]
                continue
            taken += by_rater[rater][: rules.videos_per_annotator]
            beyond = by_rater[rater][rules.videos_per_annotator :]
            left += [(answer, f"beyond {rules.videos_per_annotator} videos of an annotator") for answer in beyond]
    return taken, left


def _counts(items: Sequence[Item]) -> dict[str, int]:
    """Task to the number of its real videos, by name; tasks that gold items alone have are none of the board's."""
    known: dict[str, int] = {}
    seen: dict[str, set[str]] = defaultdict(set)
    for item in items:
        if item.gold is not None:
            continue
        seen[item.facts["task"]].add(item.facts["video"])
        if "real_videos" in item.facts:
            known[item.facts["task"]] = int(item.facts["real_videos"])
    return {task: known.get(task, len(seen[task])) for task in sorted(seen)}
