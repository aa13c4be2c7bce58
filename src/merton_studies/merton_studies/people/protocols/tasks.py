"""Five subjects write five tasks of an image, and an expert verifies them (Embodied-IQA, appendix E and Fig. 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from merton.config import Model
from merton.errors import InputError, UnknownNameError
from merton.perception.dataset.tags import CATEGORIES, TASKS_PER_IMAGE
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.protocol import OrderedProtocol, Scale
from merton_studies.people.protocols import tasks_chain, tasks_export
from merton_studies.people.protocols.tasks_chain import LONGEST_REASON, LONGEST_TASK, Chain, chain, cleaned

FLAGS = {
    "display": "The picture cannot be shown properly",
    "offensive": "The picture is offensive or unfit for work",
    "no_task": "No further, harder task is possible",
}
"""Flags that a subject may raise against an image instead of writing a task: name to the words of the page."""

_Text = Annotated[str, Field(max_length=LONGEST_TASK), AfterValidator(cleaned)]
_Place = Annotated[int, Field(ge=0, lt=TASKS_PER_IMAGE)]
_Reason = Annotated[str, Field(max_length=LONGEST_REASON), AfterValidator(cleaned)]


def _known(tags: dict[str, str]) -> dict[str, str]:
    for name, value in tags.items():
        if name not in CATEGORIES:
            raise ValueError(str(UnknownNameError("tag", name, CATEGORIES)))
        if value not in CATEGORIES[name]:
            raise ValueError(str(UnknownNameError(name, value, CATEGORIES[name])))
    lacking = [name for name in CATEGORIES if name not in tags]
    if lacking:
        raise ValueError(f"choose a value of {', '.join(lacking)}")
    return {name: tags[name] for name in CATEGORIES}


_Tags = Annotated[dict[str, str], AfterValidator(_known)]


class TaskAnswer(Model):
    """A subject's task, or a flag in its place.

    Attributes:
        tags: a value of each of `CATEGORIES`: the first subject chooses them, later ones may correct them.
        task: one line, see `tasks_chain.task_fault`.
        reason: why a verb and thing are used again.
        flag: one of `FLAGS`, in place of tags and task.
    """

    tags: _Tags | None = None
    task: _Text = ""
    reason: _Reason = ""
    flag: Literal["display", "offensive", "no_task"] | None = None

    @model_validator(mode="after")
    def _one(self) -> TaskAnswer:
        if self.flag is not None and self.task:
            raise ValueError("write a task or choose a flag, not both")
        if self.flag is None and self.tags is None:
            raise ValueError(f"choose the tags: {', '.join(CATEGORIES)}")
        return self


class RankedTask(Model):
    """A task as the expert leaves it.

    Attributes:
        text: of it.
        place: where it stood when it was written, from 0; None for one that the expert added.
    """

    text: _Text
    place: _Place | None = None


class TasksReview(Model):
    """The expert's decision about an image.

    Attributes:
        decision: accept; back to the subjects; or remove the image.
        tags: as the expert leaves them; needed to accept.
        tasks: five, the easiest first; needed to accept.
        places: whose tasks are to be written again, of an image that is sent back.
        reason: why it is sent back or removed; shown to the subjects.
    """

    decision: Literal["accept", "back", "remove"]
    tags: _Tags | None = None
    tasks: list[RankedTask] = Field([], max_length=TASKS_PER_IMAGE)
    places: list[_Place] = Field([], max_length=TASKS_PER_IMAGE)
    reason: _Reason = ""

    @model_validator(mode="after")
    def _whole(self) -> TasksReview:
        if self.decision == "accept":
            if self.tags is None:
                raise ValueError(f"choose the tags: {', '.join(CATEGORIES)}")
            if len(self.tasks) != TASKS_PER_IMAGE:
                raise ValueError(f"an image needs {TASKS_PER_IMAGE} tasks; there are {len(self.tasks)}")
        elif not self.reason:
            raise ValueError("say why, in a few words")
        return self


class Tasks(OrderedProtocol):
    """Subjects one after the other write the next, harder task; then an expert re-ranks, corrects and decides.

    Items have one medium, "image", and the fact `file`: its name in the folder of images.
    """

    name: ClassVar[str] = "tasks"
    title: ClassVar[str] = "Tasks of an image"
    roles: ClassVar[tuple[str, ...]] = ("image",)
    criteria: ClassVar[Mapping[str, Scale]] = {}
    reviewed: ClassVar[bool] = True

    @property
    def answer(self) -> type[Model]:
        return TaskAnswer

    @property
    def review(self) -> type[Model]:
        return TasksReview

    def next_turn(self, item: Item, said: Sequence[Answer]) -> int | Literal["review"] | None:
        state = chain(said)
        if state.end is not None:
            return None
        return state.open[0] if state.open else "review"

    def view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        """The form of the next subject: its place, and the tasks so far without their writers."""
        state = chain(said)
        texts = state.texts
        place = state.open[0] if state.open else TASKS_PER_IMAGE - 1
        return {
            **_form(state, "subject"),
            "place": place,
            "tasks": [{"place": at, "text": text} for at, text in texts.items()],
            "yours": texts.get(place, ""),
            "sent_back": state.sent_back,
            "flags": [[name, words] for name, words in FLAGS.items()],
        }

    def review_view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        """The form of the expert: tasks in the order in which they were written, and a subject's flag against it."""
        state = chain(said)
        tasks = [{"place": at, "text": task.text, "reason": task.reason} for at, task in sorted(state.tasks.items())]
        return {**_form(state, "expert"), "tasks": tasks, "flag": FLAGS[state.flag[0]] if state.flag else ""}

    def checked(self, item: Item, answer: Model, said: Sequence[Answer]) -> Model:
        state = chain(said)
        if isinstance(answer, TasksReview):
            _check_review(answer, state)
        elif isinstance(answer, TaskAnswer) and answer.flag is None:
            at = state.open[0] if state.open else None
            _check_task(answer.task, [text for place, text in state.texts.items() if place != at], answer.reason)
        return answer

    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        """No values: subjects see others' tasks, so their agreement would mean nothing; see `tasks_export.summary`."""
        return {}

    def export(
        self, items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]
    ) -> list[Path]:
        """`tags.yaml`, `history.parquet` and `tasks.json`; see `tasks_export`."""
        return tasks_export.export(items, answers, out, names)


def _form(state: Chain, role: str) -> dict[str, Any]:
    return {
        "role": role,
        "of": TASKS_PER_IMAGE,
        "tags": tasks_chain.plain_tags(state.tags),
        "choices": [[name, list(values)] for name, values in CATEGORIES.items()],
        "verbs": list(tasks_chain.TEN_VERBS),
        "words": [tasks_chain.FEWEST_WORDS, tasks_chain.MOST_WORDS],
        "longest": [LONGEST_TASK, LONGEST_REASON],
    }


def _check_task(text: str, others: Sequence[str], reason: str) -> None:
    if fault := tasks_chain.task_fault(text):
        raise InputError(fault)
    if tasks_chain.same(text, others):
        raise InputError("This task is there already; write another one.")
    if (like := tasks_chain.like_another(text, others)) and not reason:
        raise InputError(f"The task {like!r} has the same verb and thing; write another one, or say why it differs.")


def _check_review(review: TasksReview, state: Chain) -> None:
    places = [task.place for task in review.tasks if task.place is not None]
    if stray := [place for place in (*places, *review.places) if place not in state.tasks]:
        raise InputError(f"There is no task number {stray[0] + 1} of a subject.")
    if review.decision == "back" and not {*review.places, *state.missing}:
        raise InputError("Choose the tasks that are to be written again.")
    if review.decision != "accept":
        return
    if sorted(places) != sorted(state.tasks):
        raise InputError("Each task of a subject must be in the list once; edit what is wrong.")
    texts = [task.text for task in review.tasks]
    for number, text in enumerate(texts):
        if fault := tasks_chain.task_fault(text):
            raise InputError(f"Task {number + 1}: {fault}")
        if tasks_chain.same(text, texts[:number]):
            raise InputError(f"Task {number + 1} is there twice.")
