"""Answerers, which are evaluated. Each answers one prompt about one question, outside the sandbox.

A vision-language model of the catalogue, or one that computes: chance, majority, blind (text alone), and oracles that
know the right answer with a stated skill. The computed ones are floors and a ladder for studies of rankings; they are
no models, and say so in their names. They read the question, its choices and the answers of questions of other scenes;
only the oracles read the answer of the question itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from merton.cognition.words import VERSION as WORDS_VERSION
from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton.seeding import generator
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question, questions_sha256
from merton_studies.harness.guesses import FOLDS, Blind, Majority, chance_answer, region_center, wrong_answer
from merton_studies.harness.reply import Reply

COMPUTED = ("chance", "majority", "blind", "oracle-P", "graded")
"""Names of the answerers that compute; P is a skill in 0..1, such as oracle-0.70; graded is twelve oracles."""
GRADES = 12
GRADED_FROM, GRADED_TO = 0.30, 0.85
"""Mean skills of the least and the most able graded oracle. Ours: between chance and a good model of today."""
PROFILE = 0.15
"""Most that a graded oracle's skill in a capability differs from its mean. Ours: the columns of the paper's Table 7
differ by about as much."""


class Answerer(Protocol):
    """Answers prompts about questions.

    Attributes:
        name: in every table.
        identity: everything that its answers depend on, as JSON: settings, seeds, versions, hashes of weights.
        cost_per_1000: money for a thousand calls.
    """

    @property
    def name(self) -> str: ...
    @property
    def identity(self) -> dict[str, Any]: ...
    @property
    def cost_per_1000(self) -> float: ...

    def answer(self, question: Question, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> Reply:
        """The answer to a prompt about a question and its pictures, all of them by default.

        The same arguments give the same text. Raises InfrastructureError if a server or the machine failed, which is no
        answer, and BudgetExhaustedError for a call beyond the budget; never raises for a model that fails.
        """


@dataclass(frozen=True)
class Computed:
    """An answerer that computes: a name, its identity, and a function of a question to its answer.

    The answer is given in the form that the prompt asks for: a letter where the prompt lists the choices by letters.
    """

    name: str
    identity: dict[str, Any]
    about: Callable[[Question], str]
    cost_per_1000: float = 0.0

    def answer(self, question: Question, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> Reply:
        """See `Answerer.answer`."""
        return Reply(in_form(question, self.about(question), prompt))


@dataclass(frozen=True)
class Unbuilt:
    """A model that could not be built: it answers nothing, and the others of an evaluation go on.

    Attributes:
        name: of the catalogue.
        error: why.
    """

    name: str
    error: InfrastructureError
    cost_per_1000: float = 0.0

    @property
    def identity(self) -> dict[str, Any]:
        """The reason."""
        return {"unbuilt": str(self.error)}

    def answer(self, question: Question, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> Reply:
        """Raises the error."""
        raise self.error


def in_form(question: Question, answer: str, prompt: str) -> str:
    """An answer as the prompt asks for it: the letter before the choice's line in the prompt, if there is one."""
    if question.answer_kind != "choice":
        return answer
    line = re.search(rf"^\W*([A-Za-z])\W{{1,3}}{re.escape(answer)}\W*$", prompt, re.MULTILINE)
    return line[1] if line else answer


def capability(question: Question) -> str:
    """The dimension that a question counts for: the assigned one, else people's or its maker's, else its source."""
    return question.meta.get("assigned", "") or question.dimension or question.source


def answerers(
    names: Sequence[str],
    pool: Pool,
    dimensions: Mapping[str, str] | None = None,
    seed: int = 0,
    max_tokens: int | None = None,
) -> list[Answerer]:
    """The answerers with these names, made for the questions of a pool.

    Args:
        names: of `COMPUTED` or VLMs of the catalogue; "graded" stands for twelve.
        pool: whose questions will be asked; chance, majority and blind learn from its other scenes.
        dimensions: question to the capability in which graded oracles have a skill of its own; by default the one that
            people or its maker say it needs, so that a question is answered alike before and after it is assigned.
        seed: of all that is drawn.
        max_tokens: least limit of a model's answer in tokens, in place of its catalogue's; None for that one.

    Raises:
        UnknownNameError: a name that is none of these.
        InputError: a name twice, or a skill that is not in 0..1.
    """
    by_id = dimensions or {question.id: question.dimension or capability(question) for question in pool.questions}
    made: list[Answerer] = []
    for name in names:
        if name == "graded":
            made += [_graded(grade, pool, by_id, seed) for grade in range(GRADES)]
        else:
            made.append(_answerer(name, pool, seed, max_tokens))
    twice = [one.name for one in made if [other.name for other in made].count(one.name) > 1]
    if twice:
        raise InputError(f"the answerer {twice[0]!r} is named twice")
    if not made:
        raise InputError(f"at least one answerer is needed: {', '.join(COMPUTED)}, or a VLM of the catalogue")
    return made


def _answerer(name: str, pool: Pool, seed: int, max_tokens: int | None) -> Answerer:
    about = {"answerer": name, "seed": seed, "pool": questions_sha256(pool.questions), "folds": FOLDS, "version": 1}
    if name == "chance":
        others = Majority(pool.questions, seed)
        return Computed(name, about, lambda question: chance_answer(question, others, seed))
    if name == "majority":
        return Computed(name, about, Majority(pool.questions, seed).answer)
    if name == "blind":
        return Computed(name, about | {"words": WORDS_VERSION}, Blind(pool.questions, seed).answer)
    if name.startswith("oracle-"):
        skill = _skill(name)
        return _oracle(name, about | {"skill": skill}, pool, lambda _: skill, seed)
    return _catalogued(name, pool, max_tokens)


def _catalogued(name: str, pool: Pool, max_tokens: int | None) -> Answerer:
    from merton.cognition.models.base import MODELS
    from merton_studies.harness.models import CataloguedModel

    if name not in MODELS:
        raise UnknownNameError("answerer", name, [*COMPUTED, *MODELS])
    try:
        return CataloguedModel(MODELS[name].limited(max_tokens), pool)
    except InfrastructureError as error:
        return Unbuilt(name, error)


def _skill(name: str) -> float:
    try:
        skill = float(name.removeprefix("oracle-"))
    except ValueError:
        skill = -1.0
    if not 0.0 <= skill <= 1.0:
        raise InputError(f"{name!r} is no oracle: it is called oracle-P with a skill P from 0 to 1, as oracle-0.70")
    return skill


def _oracle(name: str, about: dict[str, Any], pool: Pool, skill_of: Callable[[Question], float], seed: int) -> Computed:
    """Right with the skill of the question, each question for itself: its answer is the same in every pool."""
    others = Majority(pool.questions, seed)

    def answer(question: Question) -> str:
        draw = generator("oracle", name, seed, question.id)
        if draw.random() < skill_of(question):
            return region_center(question.answer) if question.answer_kind == "point" else question.answer
        return wrong_answer(question, others, draw)

    return Computed(name, about, answer)


def _graded(grade: int, pool: Pool, dimensions: Mapping[str, str], seed: int) -> Computed:
    """One of the ladder: a mean skill, and in each capability one that differs from it."""
    name = f"graded-{grade + 1:02d}"
    mean = GRADED_FROM + (GRADED_TO - GRADED_FROM) * grade / (GRADES - 1)
    skills = {
        dimension: float(np.clip(mean + generator("profile", name, seed, dimension).uniform(-PROFILE, PROFILE), 0, 1))
        for dimension in sorted(set(dimensions.values()))
    }
    about = {"answerer": name, "seed": seed, "skills": skills, "version": 1}
    return _oracle(name, about, pool, lambda question: skills[dimensions[question.id]], seed)
