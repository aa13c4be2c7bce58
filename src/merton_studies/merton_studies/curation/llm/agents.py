"""Proposer, Reviewer and voters that ask an LLM (A2Eval, section 3.1; prompts of ours: the paper's are empty boxes)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from merton.errors import InvalidAnswerError
from merton.seeding import generator
from merton.world.observation import Image
from merton_studies.curation.agents import LEFT_OUT, Balance, Critique, Memory
from merton_studies.curation.llm.asker import Ask, Asker
from merton_studies.curation.llm.forms import Ballot, Proposal, Review
from merton_studies.curation.llm.prompting import read_prompt
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.curation.taxonomy import Taxonomy

EXAMPLES = 120
"""Questions that Proposer and Reviewer are shown, of all benchmarks together [ours]."""
MOST_OF_ONE = 20
"""Of one benchmark [ours]."""
BATCH = 20
"""Questions of one call of a voter [ours]."""
LONGEST_TEXT, LONGEST_EXAMPLE = 4000, 400
"""Characters of a question that a voter, and the others, are shown [ours]."""
AT_ONCE = 32
"""Calls that are prepared at once, so that their pictures fit into memory."""
NOTHING = "none yet"


class LlmProposer:
    """Proposes what an LLM answers, without sampling at the first try.

    Args:
        asker: of the model.
        seed: of the examples, and of the calls.
    """

    def __init__(self, asker: Asker, seed: int = 0) -> None:
        self.name, self._asker, self._seed = asker.name, asker, seed

    def propose(self, pool: Pool, critique: Critique | None, memory: Memory) -> Taxonomy:
        """D_t from examples of the pool, the last critique and the memory; its origin says what was left out.

        Raises:
            InvalidAnswerError: the model gave no valid set twice (`merton_studies.curation.llm.forms.Proposal`).
            BudgetExhaustedError, InfrastructureError: as `Asker.ask`.
        """
        fields = {
            "pool": examples(pool, self._seed),
            "memory": _memory(memory),
            "critique": critique.model_dump_json(exclude={"dropped"}) if critique else NOTHING,
        }
        form = Proposal(read_prompt("propose").examples)
        found = self._asker.ask_part("propose", Ask(fields, seed=self._seed), form)
        dropped = f"{LEFT_OUT}{'; '.join(found.faults)}" if found.faults else ""
        return Taxonomy(name="induced", origin=f"proposed by {self.name}{dropped}", dimensions=found.value)


class LlmReviewer:
    """Criticises as an LLM does, without sampling at the first try; arguments as of `LlmProposer`."""

    def __init__(self, asker: Asker, seed: int = 0) -> None:
        self.name, self._asker, self._seed = asker.name, asker, seed

    def review(self, taxonomy: Taxonomy, pool: Pool, memory: Memory, balance: Balance | None) -> Critique:
        """C_t: the valid findings, and in `dropped` why others were left out; raises as `LlmProposer.propose` does."""
        fields = {
            "dimensions": _dimensions(taxonomy),
            "pool": examples(pool, self._seed),
            "balance": balance.model_dump_json() if balance else NOTHING,
            "memory": _memory(memory),
        }
        form = Review(taxonomy, read_prompt("review").examples)
        return self._asker.ask_part("review", Ask(fields, seed=self._seed), form).value


class LlmVoter:
    """Votes as an LLM does, with a seed of its own.

    It is shown situation, question and choices, and no id: that of a pool may tell the family of a question.

    Args:
        asker: of the model; its temperature is above 0 where several voters share it.
        seed: of this voter.
        pool: of the questions, if pictures are shown.
        pictures: shown of each question, evenly spaced over its own; 0 for text alone. With pictures a call has one
            question, else `BATCH`.
    """

    def __init__(self, asker: Asker, seed: int = 0, pool: Pool | None = None, pictures: int = 0) -> None:
        self.name = f"{asker.name} seed {seed}"
        self._asker, self._seed, self._pool, self._pictures = asker, seed, pool, pictures
        self.faults: list[str] = []
        """Reasons why votes are missing, a sentence for each call."""

    def vote(self, questions: Sequence[Question], taxonomy: Taxonomy) -> list[str | None]:
        """A vote for each question; None where two answers have none, an unknown one, or two different ones.

        Raises:
            BudgetExhaustedError, InfrastructureError: as `Asker.ask`.
        """
        size = 1 if self._pictures else BATCH
        batches = [questions[start : start + size] for start in range(0, len(questions), size)]
        votes: list[str | None] = []
        for start in range(0, len(batches), AT_ONCE):
            some = batches[start : start + AT_ONCE]
            ids = [[f"q{number}" for number in range(1, len(batch) + 1)] for batch in some]
            forms = [Ballot(one, taxonomy) for one in ids]
            answers = self._asker.ask_parts("assign", [self._ask(batch, taxonomy) for batch in some], forms)
            for names, answer in zip(ids, answers, strict=True):
                if isinstance(answer, InvalidAnswerError):
                    self.faults.append(str(answer))
                    votes += [None] * len(names)
                else:
                    self.faults += answer.faults[:1]
                    votes += [answer.value.get(name) for name in names]
        return votes

    def _ask(self, batch: Sequence[Question], taxonomy: Taxonomy) -> Ask:
        texts = [question.full_text[:LONGEST_TEXT] for question in batch]
        lines = [{"id": f"q{number}", "question": text} for number, text in enumerate(texts, 1)]
        fields = {"dimensions": _dimensions(taxonomy), "questions": _lines(lines)}
        return Ask(fields, self._images(batch[0]) if self._pictures else (), self._seed)

    def _images(self, question: Question) -> tuple[Image, ...]:
        if not question.media or self._pool is None:
            return ()
        count = len(question.media)
        shown = sorted({int(place) for place in np.linspace(0, count - 1, min(count, self._pictures))})
        some = question.model_copy(update={"media": tuple(question.media[place] for place in shown)})
        return tuple(self._pool.images(some))


def examples(pool: Pool, seed: int) -> str:
    """The benchmarks of a pool with some questions of each, drawn at random, one JSON object a line.

    They have no answers and none of the dimensions that people gave.
    """
    each = max(1, min(MOST_OF_ONE, EXAMPLES // max(1, len(pool.sources))))
    lines = []
    for name, source in pool.sources.items():
        of_it = [question for question in pool.questions if question.source == name]
        drawn = generator("examples of a benchmark", seed, name).permutation(len(of_it))[:each]
        about = {
            "benchmark": name,
            "description": source.description[:LONGEST_EXAMPLE],
            "questions": len(of_it),
            "forms of answers": dict(sorted(Counter(question.answer_kind for question in of_it).items())),
            "examples": [of_it[place].full_text[:LONGEST_EXAMPLE] for place in sorted(drawn)],
        }
        lines.append(about)
    return _lines(lines)


def _lines(values: Iterable[Any]) -> str:
    """A JSON object a line: a line break in a text cannot begin another object."""
    return "\n".join(json.dumps(value, ensure_ascii=False) for value in values)


def _dimensions(taxonomy: Taxonomy) -> str:
    return _lines(dimension.model_dump(mode="json") for dimension in taxonomy.dimensions)


def _memory(memory: Memory) -> str:
    rounds = []
    for entry in memory:
        value = entry.model_dump(mode="json", exclude={"critique": {"dropped"}})
        rounds.append({**value, "taxonomy": value["taxonomy"]["dimensions"]})
    return _lines(rounds) or NOTHING
