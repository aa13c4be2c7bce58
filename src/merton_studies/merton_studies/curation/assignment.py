"""Questions assigned to dimensions by the votes of several voters (A2Eval, section 3.1, equations 3, 4 and 7).

The paper gives the majority (equation 3) and is silent on ties, on invalid votes and on the quorum. Ours:

1. V voters vote on each question. A vote is a dimension, "Other", or invalid (None).
2. A choice with more than half of V votes has the quorum (3 of 5); invalid votes count in V. It is the assignment.
3. Without a quorum the question is contested. If no two voters agree, it is "Other".
4. Else the candidates are the choices with the most votes; if that is one alone, also those with the second most. The
   voters vote again among the candidates only, and the most votes of this second round win.
5. If those are tied too, or nothing valid was said, the earlier candidate in the taxonomy wins ("Other" stands last);
   `by_order` marks it.
6. A question without one valid vote is contested and counted under "Other"; `unvoted` marks it, since no voter said so.
   If no vote at all is valid, there is no assignment.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, InvalidAnswerError
from merton.files import write_file
from merton.progress import Step, quiet
from merton.results.parquet import parquet_bytes, parquet_file, require_pyarrow
from merton_studies.curation.agents import Balance, Voter
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.curation.taxonomy import OTHER, Taxonomy

VOTERS = 5
"""Of the paper."""
BLOCK = 500
"""Questions that a voter gets at once, so that progress is seen."""

Integers = NDArray[np.intp]
_NOT_ASKED = -1


@dataclass(frozen=True)
class Assignment:
    """The dimension of each question, in the order of the pool.

    Attributes:
        taxonomy: that the voters chose from.
        voters: their names, in the order of the votes.
        ids: of the questions.
        votes: of each question in the first round, one for each voter; None is invalid.
        second: of each question in the second round; empty where there was none.
        dimension: of each question, or "Other".
        share: (n,) 0..1, votes of the first round for that dimension, by the number of voters: a confidence.
        contested: (n,) bool, no choice had a quorum in the first round.
        by_order: (n,) bool, tied to the end, so that the order of the taxonomy decided.
    """

    taxonomy: Taxonomy
    voters: tuple[str, ...]
    ids: tuple[str, ...]
    votes: tuple[tuple[str | None, ...], ...]
    second: tuple[tuple[str | None, ...], ...]
    dimension: tuple[str, ...]
    share: NDArray[np.float64]
    contested: NDArray[np.bool_]
    by_order: NDArray[np.bool_]

    @property
    def invalid(self) -> dict[str, int]:
        """Questions for which a vote was missing or named no dimension in a round, by voter; without voters that have
        none."""
        rounds = list(zip(self.votes, self.second, strict=True))
        counts = {
            name: sum(row[place] is None or None in again[place : place + 1] for row, again in rounds)
            for place, name in enumerate(self.voters)
        }
        return {name: count for name, count in counts.items() if count}

    @property
    def unvoted(self) -> int:
        """Questions without one valid vote in the first round."""
        return sum(not any(row) for row in self.votes)

    def balance(self, kept: Iterable[str] = ()) -> Balance:
        """The balance statistics (equation 7).

        Args:
            kept: the dimension of each question that sampling kept.
        """
        assigned, sampled = Counter(self.dimension), Counter(kept)
        counts = {name: assigned[name] for name in self.taxonomy.names}
        return Balance(
            assigned=counts | {OTHER: assigned[OTHER]},
            kept={name: sampled[name] for name in self.taxonomy.names},
            contested=int(self.contested.sum()),
            entropy=entropy(list(counts.values())),
            invalid=sum(self.invalid.values()),
            unvoted=self.unvoted,
        )


def entropy(counts: Sequence[int]) -> float:
    """The entropy of shares by the logarithm of their number, 0..1: 1 is even, as is one share alone; 0 without any."""
    if not sum(counts):
        return 0.0
    if len(counts) == 1:
        return 1.0
    shares = np.array([count for count in counts if count]) / sum(counts)
    return abs(float(-(shares * np.log(shares)).sum() / math.log(len(counts))))


def assign(pool: Pool, taxonomy: Taxonomy, voters: Sequence[Voter], step: Step = quiet) -> Assignment:
    """Have every question voted on, and once more where the first round is undecided.

    Args:
        step: shows progress; `merton.cli.console.progress` or the like.

    Raises:
        InputError: no voter, two with one name, or one that answers too few or too many questions.
        InvalidAnswerError: no voter gave one valid vote.
    """
    names = tuple(voter.name for voter in voters)
    if not names or len(set(names)) < len(names):
        raise InputError(f"assignment needs voters with different names, got: {', '.join(names) or 'none'}")
    questions = pool.questions
    first = _asked(questions, taxonomy, voters, step, "voting")
    if len(questions) and (first > len(taxonomy.names)).all():
        reason = next((f"; the last reason: {one}" for one in reversed(list(map(_reason, voters))) if one), "")
        raise InvalidAnswerError(f"no voter gave a valid vote for any of {len(questions)} questions{reason}")
    winner, tied = _first_round(first, len(taxonomy.names))
    second = np.full(first.shape, _NOT_ASKED)
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, candidates in tied.items():
        groups.setdefault(candidates, []).append(index)
    by_order = np.zeros(len(questions), bool)
    done = 0
    with (step if tied else quiet)("voting again") as on_progress:
        for candidates, indices in sorted(groups.items()):
            again = _again([questions[index] for index in indices], taxonomy, voters, candidates)
            second[indices] = again
            counted = (again[:, :, None] == np.array(candidates)).sum(axis=1)
            winner[indices] = np.array(candidates)[counted.argmax(axis=1)]
            by_order[indices] = (counted == counted.max(axis=1, keepdims=True)).sum(axis=1) > 1
            done += len(indices)
            on_progress(done, len(tied))
    return _told(questions, taxonomy, names, first, second, set(tied), winner, by_order)


def _asked(
    questions: Sequence[Question], taxonomy: Taxonomy, voters: Sequence[Voter], step: Step, title: str
) -> Integers:
    """(n, V) first votes as numbers of dimensions; "Other" is the last, invalid one more."""
    votes = np.empty((len(questions), len(voters)), np.intp)
    done, total = 0, votes.size
    with step(title) as on_progress:
        for column, voter in enumerate(voters):
            for start in range(0, len(questions), BLOCK):
                block = questions[start : start + BLOCK]
                votes[start : start + BLOCK, column] = _numbers(voter, block, taxonomy, taxonomy)
                done += len(block)
                on_progress(done, total)
    return votes


def _again(
    questions: Sequence[Question], taxonomy: Taxonomy, voters: Sequence[Voter], candidates: tuple[int, ...]
) -> Integers:
    """(n, V) votes of the second round; only those for a candidate count, any other is invalid."""
    names = taxonomy.names
    among = tuple(taxonomy.dimensions[number] for number in candidates if number < len(names))
    small = taxonomy.model_copy(update={"dimensions": among})
    return np.stack([_numbers(voter, questions, small, taxonomy) for voter in voters], axis=1)


def _numbers(voter: Voter, questions: Sequence[Question], shown: Taxonomy, taxonomy: Taxonomy) -> Integers:
    """A voter's votes as numbers in `taxonomy`, when it is shown another."""
    votes = voter.vote(questions, shown)
    if len(votes) != len(questions):
        raise InputError(f"voter {voter.name!r} answered {len(votes)} of {len(questions)} questions")
    number = {name: taxonomy.names.index(name) for name in shown.names} | {OTHER: len(taxonomy.names)}
    invalid = len(taxonomy.names) + 1
    return np.array([number.get(vote, invalid) if vote else invalid for vote in votes], np.intp)


def _first_round(votes: Integers, dimensions: int) -> tuple[Integers, dict[int, tuple[int, ...]]]:
    """The choice of each question, "Other" where no two agree, and the candidates of those that need a second round."""
    choices = dimensions + 1  # with "Other"; invalid votes fall behind
    counts = np.zeros((len(votes), choices + 1), np.intp)
    for column in votes.T:
        counts[np.arange(len(votes)), column] += 1
    counts = counts[:, :choices]
    most = counts.max(axis=1)
    winner = np.where(most > votes.shape[1] / 2, counts.argmax(axis=1), dimensions)
    tied = {}
    for index in np.flatnonzero((most <= votes.shape[1] / 2) & (most > 1)):
        row = counts[index]
        leading = np.flatnonzero(row == most[index])
        if len(leading) == 1:
            rest = np.delete(row, leading).max()
            leading = np.flatnonzero((row == most[index]) | ((row == rest) & (rest > 0)))
        if len(leading) == 1:  # all other votes were invalid
            winner[index] = leading[0]
        else:
            tied[int(index)] = tuple(int(choice) for choice in leading)
    return winner, tied


def _told(
    questions: Sequence[Question],
    taxonomy: Taxonomy,
    voters: tuple[str, ...],
    first: Integers,
    second: Integers,
    again: set[int],
    winner: Integers,
    by_order: NDArray[np.bool_],
) -> Assignment:
    """The assignment in names."""
    names = np.array([*taxonomy.names, OTHER, None], dtype=object)
    agreed = (first == winner[:, None]).sum(axis=1)
    quorum = agreed > len(voters) / 2
    return Assignment(
        taxonomy,
        voters,
        tuple(question.id for question in questions),
        tuple(map(tuple, names[first].tolist())),
        tuple(tuple(row) if index in again else () for index, row in enumerate(names[second].tolist())),
        tuple(names[winner].tolist()),
        agreed / len(voters),
        ~quorum,
        by_order,
    )


def told_invalid(assignment: Assignment, voters: Sequence[Voter]) -> list[str]:
    """A sentence for each voter whose votes are not all valid, with the last reason; one for questions without any."""
    reasons = {voter.name: _reason(voter) for voter in voters}
    count = len(assignment.ids)
    told = [
        f"{name} gave no valid vote for {missing} of {count} questions{': ' * bool(reasons.get(name))}"
        f"{reasons.get(name, '')}"
        for name, missing in assignment.invalid.items()
    ]
    if assignment.unvoted:
        told.append(f'{assignment.unvoted} of {count} questions have no valid vote; they are counted under "Other"')
    return told


def _reason(voter: Voter) -> str:
    """Reason why the last vote of a voter was not valid; "" if it gives none."""
    faults: Sequence[str] = getattr(voter, "faults", ())
    return faults[-1] if faults else ""


def write_assignment(assignment: Assignment, path: Path) -> None:
    """Write assignments.parquet: a row for each question; same assignment, same bytes.

    The metadata key "merton" of the table is JSON with the voters, the taxonomy and its hash.

    Raises:
        InfrastructureError: the file cannot be written.
        MissingDependencyError: pyarrow is not installed.
    """
    pyarrow = require_pyarrow()
    texts = pyarrow.list_(pyarrow.string())
    columns: dict[str, tuple[Any, Any]] = {
        "id": (list(assignment.ids), pyarrow.string()),
        "votes": ([list(row) for row in assignment.votes], texts),
        "second": ([list(row) for row in assignment.second], texts),
        "dimension": (list(assignment.dimension), pyarrow.string()),
        "share": (assignment.share, pyarrow.float64()),
        "contested": (assignment.contested, pyarrow.bool_()),
        "by_order": (assignment.by_order, pyarrow.bool_()),
    }
    taxonomy = assignment.taxonomy.model_dump_json()
    told = {
        "form": "merton assignment 1",
        "voters": list(assignment.voters),
        "taxonomy": json.loads(taxonomy),
        "taxonomy_sha256": hashlib.sha256(taxonomy.encode()).hexdigest(),
    }
    schema = pyarrow.schema(
        [(name, kind) for name, (_, kind) in columns.items()], metadata={"merton": json.dumps(told, sort_keys=True)}
    )
    table = pyarrow.table([pyarrow.array(values, kind) for values, kind in columns.values()], schema=schema)
    write_file(path, parquet_bytes(table))


def read_assignment(path: Path) -> Assignment:
    """The assignment in a file.

    Raises:
        InputError: no such file, or not one of `write_assignment`.
        MissingDependencyError: pyarrow is not installed.
    """
    pyarrow = require_pyarrow()
    try:
        table = parquet_file(path.read_bytes()).read()
        told = json.loads(table.schema.metadata[b"merton"])
        rows = table.to_pydict()
        taxonomy = Taxonomy.model_validate_json(json.dumps(told["taxonomy"]))
        return Assignment(
            taxonomy,
            tuple(told["voters"]),
            tuple(rows["id"]),
            tuple(map(tuple, rows["votes"])),
            tuple(map(tuple, rows["second"])),
            tuple(rows["dimension"]),
            np.array(rows["share"], float),
            np.array(rows["contested"], bool),
            np.array(rows["by_order"], bool),
        )
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (pyarrow.ArrowException, KeyError, TypeError, ValueError):
        raise InputError(f"{path} is no table of assignments: curate the pool again") from None
