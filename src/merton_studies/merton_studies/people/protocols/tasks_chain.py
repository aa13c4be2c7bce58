"""Five tasks of one image, each by another subject and harder than those before: the rules, and the state of an image.

Embodied-IQA, appendix E: "Subjects can see the previous tasks, and the new tasks they design need to be more difficult
than them and test different abilities (for example, if an object has been pushed, try not to grab it again)." Ours: a
task of the same verb and thing as another needs a reason; one of the same thing alone is only pointed out on the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from merton.perception.dataset.tags import TASKS_PER_IMAGE, VERBS
from merton_studies.people.ledger import Answer

TEN_VERBS = tuple(verb for verb in VERBS if verb != "Reach")
"""The verbs with which a task may begin: Embodied-IQA's ten; Reach is an addition for the cell."""
FEWEST_WORDS, MOST_WORDS = 3, 15
"""Words of a task. Ours: "Pick the cup" says enough, and more than fifteen words are several tasks."""
LONGEST_TASK, LONGEST_REASON = 200, 500
"""Most characters of a task, and of a reason."""

_FILLERS = frozenset(("up", "down", "open", "the", "a", "an", "and", "hold", "out", "away", "far", "again"))
"""Words between the verb and the thing."""
_PREPOSITIONS = frozenset(
    {"to", "on", "in", "into", "onto", "with", "of", "from", "at", "under", "over", "by", "near", "behind", "beside"}
    | {"between", "above", "below", "inside", "around", "towards", "so", "until"}
)
"""Prepositions, the first of which ends the name of the thing."""


@dataclass(frozen=True)
class Written:
    """A task as a subject wrote it.

    Attributes:
        text: of it.
        reason: why it may use a verb and thing again; mostly empty.
        answer: that it stands in.
    """

    text: str
    reason: str
    answer: Answer


@dataclass(frozen=True)
class Chain:
    """The state of an image: its tasks so far, and those to come.

    Attributes:
        tasks: place (0 is the first, easiest) to the task that stands there.
        tags: as the last subject left them; None before the first.
        open: places whose subjects have yet to write.
        flag: what a subject said against the image, with the answer; None without one, or once the expert sent it back.
        sent_back: the reason that the expert gave last for sending the image back.
        end: the answer with which the expert accepted or removed the image.
    """

    tasks: Mapping[int, Written]
    tags: Mapping[str, str] | None
    open: tuple[int, ...]
    flag: tuple[str, Answer] | None
    sent_back: str
    end: Answer | None

    @property
    def texts(self) -> dict[int, str]:
        """Place to task, by place."""
        return {place: self.tasks[place].text for place in sorted(self.tasks)}

    @property
    def missing(self) -> tuple[int, ...]:
        """Places without a task."""
        return tuple(place for place in range(TASKS_PER_IMAGE) if place not in self.tasks)


def chain(said: Iterable[Answer]) -> Chain:
    """The state of an image after answers that stand, in the order in which they were saved."""
    state = Chain({}, None, tuple(range(TASKS_PER_IMAGE)), None, "", None)
    for answer in said:
        state = _after_review(state, answer) if answer.kind == "review" else _after_turn(state, answer)
    return state


def _after_turn(state: Chain, answer: Answer) -> Chain:
    said = answer.answer
    if said["flag"] is not None:
        return replace(state, flag=(said["flag"], answer), open=())
    if not state.open:  # a lease that ran out was answered after all: the place is taken
        return state
    place, *rest = state.open
    tasks = {**state.tasks, place: Written(said["task"], said["reason"], answer)}
    return replace(state, tasks=tasks, tags=said["tags"], open=tuple(rest))


def _after_review(state: Chain, answer: Answer) -> Chain:
    said = answer.answer
    if said["decision"] != "back":
        return replace(state, end=answer, open=())
    places = tuple(sorted({*said["places"], *state.missing}))
    return replace(state, open=places, flag=None, sent_back=said["reason"], tags=said["tags"] or state.tags)


def cleaned(text: str) -> str:
    """A text on one line, with single spaces."""
    return " ".join(text.split())


def handled(text: str) -> tuple[str, str]:
    """Verb and thing of a task in lower case, such as ("pick", "red cube") of "Pick up the red cube from the bowl"."""
    verb, *rest = re.findall(r"[^\W_]+", text.lower()) or [""]
    words: list[str] = []
    for word in rest:
        if word in _PREPOSITIONS and words:
            break
        if word not in _FILLERS and word not in _PREPOSITIONS:
            words.append(word)
    return verb, " ".join(words)


def task_fault(text: str) -> str | None:
    """The fault in the form of a (cleaned) task, in a sentence for its writer; None without one."""
    words = text.split()
    if not words or words[0] not in TEN_VERBS:
        return f"A task must begin with one of {', '.join(TEN_VERBS)}."
    if not FEWEST_WORDS <= len(words) <= MOST_WORDS:
        return f"A task must have {FEWEST_WORDS} to {MOST_WORDS} words; this one has {len(words)}."
    if any(ord(character) < ord(" ") or 0x7F <= ord(character) < 0xA0 for character in text):
        return "The task has a control character; leave it out."
    return None


def like_another(text: str, others: Sequence[str]) -> str | None:
    """The first of other tasks that has the same verb and thing; None if there is none."""
    return next((other for other in others if handled(other) == handled(text)), None)


def same(text: str, others: Sequence[str]) -> bool:
    """Whether a task is one of the others, but for capitals."""
    return text.casefold() in {other.casefold() for other in others}


def plain_tags(tags: Any) -> dict[str, str] | None:
    """Tags as stored in an answer, without their order of keys."""
    return None if tags is None else {str(name): str(value) for name, value in sorted(tags.items())}
