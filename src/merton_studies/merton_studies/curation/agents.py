"""The roles of the Data Agent, and their messages to each other (A2Eval, section 3.1 and equations 1 to 3).

Each role is one small class behind a protocol here. All of them ask an LLM; voters may compute in its place. Induction,
assignment and sampling know the protocols alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from merton.config import Model
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.curation.taxonomy import Taxonomy

FEWEST, MOST = 4, 15
"""Dimensions that a Proposer is asked for, at least and at most. Ours: the paper gives no numbers and finds eight."""


LEFT_OUT = "; left out: "
"""In the origin of a taxonomy before what was not valid in the proposal."""


class Finding(Model):
    """One fault of a set of dimensions, and its remedy.

    Attributes:
        kind: "redundant": two or more dimensions ask for the same; "missing": questions fit none; "unbalanced": a
            dimension has too few or too many questions; "unclear": a definition cannot be decided.
        action: "merge" the named dimensions, "split" or "drop" or "redefine" the named one, or "add" one.
        dimensions: names of those concerned; empty for "add".
        text: the reason in one or two sentences.
    """

    kind: Literal["redundant", "missing", "unbalanced", "unclear"]
    action: Literal["merge", "split", "drop", "redefine", "add"]
    dimensions: tuple[str, ...] = ()
    text: str = ""


class Critique(Model):
    """The Reviewer's answer (C_t); without findings it accepts the dimensions.

    Attributes:
        findings: those that are valid.
        summary: the verdict in one sentence.
        dropped: why other findings of the answer, or names in them, were left out, a sentence each.
    """

    findings: tuple[Finding, ...] = ()
    summary: str = ""
    dropped: tuple[str, ...] = ()


class Balance(Model):
    """The balance statistics of an assignment (beta, equation 7), per dimension in the taxonomy's order.

    Attributes:
        assigned: name to the number of questions assigned; has "Other" too.
        kept: name to the number kept by sampling; without "Other".
        contested: questions that the first vote did not decide.
        entropy: of the shares of the named dimensions, divided by the logarithm of their number: 1 is even.
        invalid: voters and questions whose vote was missing or named no dimension, in the first or the second round.
        unvoted: questions without one valid vote, which are counted under "Other".
    """

    assigned: dict[str, int]
    kept: dict[str, int]
    contested: int
    entropy: float
    invalid: int = 0
    unvoted: int = 0


class Round(Model):
    """One proposal and its critique, an entry of the shared memory M_t.

    Attributes:
        outer, inner: iteration, each from 1.
        taxonomy: proposed.
        critique: of it; None while it is not reviewed.
        balance: the statistics that the Reviewer had; None before the first assignment.
    """

    outer: int
    inner: int
    taxonomy: Taxonomy
    critique: Critique | None = None
    balance: Balance | None = None


Memory = Sequence[Round]


def left_out(memory: Memory) -> list[str]:
    """A sentence for each round of a memory in which a part of an answer was not valid."""
    found = []
    for entry in memory:
        where = f"round {entry.outer}.{entry.inner}"
        _, _, proposal = entry.taxonomy.origin.partition(LEFT_OUT)
        if proposal and entry.balance is None:
            found.append(f"{where}: of the proposal was left out: {proposal}")
        if entry.critique and entry.critique.dropped:
            found.append(f"{where}: of the review was left out: {'; '.join(entry.critique.dropped)}")
        if entry.balance and entry.balance.invalid:
            found.append(
                f"{where}: {entry.balance.invalid} votes were not valid, and {entry.balance.unvoted} of "
                f"{sum(entry.balance.assigned.values())} questions have no valid vote"
            )
    return found


class Proposer(Protocol):
    """Proposes dimensions (equation 1)."""

    name: str

    def propose(self, pool: Pool, critique: Critique | None, memory: Memory) -> Taxonomy:
        """D_t from the pool, the last critique and the memory."""


class Reviewer(Protocol):
    """Criticises dimensions (equation 2)."""

    name: str

    def review(self, taxonomy: Taxonomy, pool: Pool, memory: Memory, balance: Balance | None) -> Critique:
        """C_t for redundancy, coverage and balance."""


class Voter(Protocol):
    """Says which dimension a question needs (equation 3)."""

    name: str

    def vote(self, questions: Sequence[Question], taxonomy: Taxonomy) -> list[str | None]:
        """For each question the name of a dimension, "Other", or None where this voter gave no valid answer.

        A voter never reads `Question.dimension`, `twin_of` or the answer.
        """
