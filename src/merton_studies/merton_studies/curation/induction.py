"""Capability dimensions found by a Proposer and a Reviewer that share a memory (A2Eval, section 3.1, equations 1, 2).

Inner loop: D_t = Propose(pool, C_{t-1}, memory) and C_t = Review(D_t), until D_t is D_{t-1}. Then that set is tried
out: questions are assigned to it and sampled, and the balance statistics (equation 7) go to the Reviewer, whose
critique begins the next inner loop. Outer loop: until an inner loop ends with the set that was tried out before.

The paper gives no limits and does not say when two sets are the same. Ours: 6 proposals in an inner loop, 4 trials; two
sets are the same if they have the same names and the two definitions of each name have a cosine of .95 or more. A set
that was proposed before, other than just before, would come again for ever: the induction ends there.

Each step is appended to memory.jsonl, so that an induction that was killed asks nothing twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from merton.config import Model, validated
from merton.errors import InfrastructureError, InputError
from merton.files import whole_lines
from merton.results.text import counted
from merton_studies.curation.agents import Balance, Critique, Proposer, Reviewer, Round
from merton_studies.curation.pool import Pool
from merton_studies.curation.taxonomy import Taxonomy

SAME_DEFINITION = 0.95
"""Least cosine of two definitions that say the same; ours."""

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to (n, d) rows of norm 1."""


class Iterations(Model):
    """Most iterations; the numbers are ours.

    Attributes:
        inner: proposals before each trial.
        outer: trials.
    """

    inner: Annotated[int, Field(ge=1)] = 6
    outer: Annotated[int, Field(ge=1)] = 4


@dataclass(frozen=True)
class Induction:
    """The dimensions found, and how.

    Attributes:
        taxonomy: the last that was tried out; of sets that took turns, the last of them.
        rounds: the shared memory.
        ended: "stable"; "oscillating": a set came again; "budget": the sets still changed at the last trial.
        reason: the same in a sentence.
    """

    taxonomy: Taxonomy
    rounds: tuple[Round, ...]
    ended: Literal["stable", "oscillating", "budget"]
    reason: str


class Journal:
    """The file memory.jsonl: a line for each step, the rounds so far before each of them.

    Each line is a `Round` as far as it was known: proposed, then with its critique. A trial is a round of its own, with
    the balance first, then with the critique of it. `rounds` has the latest line of each.

    Raises:
        InputError: a line is no round.
        InfrastructureError: the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = whole_lines(path)
        self._kept = [validated(Round, line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
        self._place = 0
        self._rounds: dict[tuple[int, int], Round] = {}

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The memory up to the present step."""
        return tuple(self._rounds.values())

    def step(self, outer: int, inner: int, make: Callable[[], Round]) -> Round:
        """The next step: from the file if it is there, else made and appended.

        Raises:
            InputError: the step in the file is another.
        """
        if self._place < len(self._kept):
            found = self._kept[self._place]
            if (found.outer, found.inner) != (outer, inner):
                raise InputError(
                    f"{self._path}, line {self._place + 1}, is round {found.outer}.{found.inner}, not "
                    f"{outer}.{inner}: it is the memory of another induction; choose another folder"
                )
        else:
            found = make()
            self._append(found)
        self._place += 1
        self._rounds[outer, inner] = found
        return found

    def _append(self, found: Round) -> None:
        try:
            with self._path.open("ab") as file:
                file.write(found.model_dump_json().encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InfrastructureError(f"cannot write {self._path}: {error.strerror or error}") from None


def read_memory(path: Path) -> tuple[Round, ...]:
    """The rounds of a memory.jsonl, each as far as it came.

    Raises:
        InputError: no such file, or a line that is no round.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    found = [validated(Round, line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    return tuple({(entry.outer, entry.inner): entry for entry in found}.values())


def same(one: Taxonomy, other: Taxonomy, embed: Embed) -> bool:
    """Whether two sets have the same names, and definitions of them that say the same; their order is free."""
    first, second = ({part.name: part.definition for part in taxonomy.dimensions} for taxonomy in (one, other))
    if first.keys() != second.keys():
        return False
    changed = [name for name, definition in first.items() if second[name] != definition]
    if not changed:
        return True
    vectors = embed([definitions[name] for definitions in (first, second) for name in changed])
    half = len(changed)
    return bool(((vectors[:half] * vectors[half:]).sum(axis=1) >= SAME_DEFINITION).all())


def induce(
    pool: Pool,
    proposer: Proposer,
    reviewer: Reviewer,
    try_out: Callable[[Taxonomy], Balance],
    budget: Iterations,
    memory_file: Path,
    embed: Embed,
) -> Induction:
    """Find the dimensions of a pool; an induction that was begun in `memory_file` goes on where it ended.

    Args:
        try_out: assigns the pool's questions to a set and samples them.
        embed: compares definitions, such as `merton_studies.curation.embedding.embed_texts`.

    Raises:
        InputError: the file is the memory of another induction.
        InfrastructureError: it cannot be written, or an agent's server failed.
    """
    journal = Journal(memory_file)
    history: list[Taxonomy] = []
    tried: list[Taxonomy] = []
    critique: Critique | None = None
    for outer in range(1, budget.outer + 1):
        for inner in range(1, budget.inner + 1):
            proposed = _proposed(journal, outer, inner, pool, proposer, critique)
            history.append(proposed)
            if len(history) > 1 and same(proposed, history[-2], embed):
                break
            earlier = [index for index, old in enumerate(history[:-2]) if same(old, proposed, embed)]
            if earlier:
                return _oscillating(journal, history[earlier[-1] :], tried, embed)
            if inner < budget.inner:
                critique = _reviewed(journal, outer, inner, proposed, pool, reviewer, None)
        if tried and same(history[-1], tried[-1], embed):
            reason = f"the dimensions are stable after {counted(len(history), 'proposal')} and {_trials(len(tried))}"
            return Induction(history[-1], journal.rounds, "stable", reason)
        tried.append(history[-1])
        trial = journal.step(outer, inner + 1, _trial(outer, inner, history[-1], try_out))
        critique = _reviewed(journal, outer, inner + 1, history[-1], pool, reviewer, trial.balance)
    reason = (
        f"the dimensions still changed after {_trials(len(tried))} and {counted(len(history), 'proposal')}; "
        f"the budget is {_trials(budget.outer)} with {counted(budget.inner, 'proposal')} before each"
    )
    return Induction(tried[-1], journal.rounds, "budget", reason)


def _trials(count: int) -> str:
    return counted(count, "trial")


def _proposed(
    journal: Journal, outer: int, inner: int, pool: Pool, proposer: Proposer, critique: Critique | None
) -> Taxonomy:
    """D_t, equation 1."""

    def make() -> Round:
        return Round(outer=outer, inner=inner, taxonomy=proposer.propose(pool, critique, journal.rounds))

    return journal.step(outer, inner, make).taxonomy


def _reviewed(
    journal: Journal,
    outer: int,
    inner: int,
    taxonomy: Taxonomy,
    pool: Pool,
    reviewer: Reviewer,
    balance: Balance | None,
) -> Critique | None:
    """C_t, equation 2."""

    def make() -> Round:
        critique = reviewer.review(taxonomy, pool, journal.rounds, balance)
        return Round(outer=outer, inner=inner, taxonomy=taxonomy, critique=critique, balance=balance)

    return journal.step(outer, inner, make).critique


def _trial(outer: int, inner: int, taxonomy: Taxonomy, try_out: Callable[[Taxonomy], Balance]) -> Callable[[], Round]:
    """The trial of a set, equation 7: a round of its own after the inner loop."""
    return lambda: Round(outer=outer, inner=inner + 1, taxonomy=taxonomy, balance=try_out(taxonomy))


def _oscillating(journal: Journal, turns: Sequence[Taxonomy], tried: Sequence[Taxonomy], embed: Embed) -> Induction:
    """The end of an induction whose last sets, the first and last of which are the same, would take turns for ever."""
    chosen = next((old for old in reversed(tried) if any(same(old, turn, embed) for turn in turns)), turns[-1])
    reason = (
        f"a set of {counted(len(turns[-1].dimensions), 'dimension')} came again after "
        f"{counted(len(turns) - 2, 'other set')}: proposals and critiques go in a circle"
    )
    return Induction(chosen, journal.rounds, "oscillating", reason)
