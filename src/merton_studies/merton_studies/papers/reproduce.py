"""All papers: their printed numbers recomputed, and whether each verdict is the one that is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from merton.errors import UnknownNameError
from merton_studies.iqa import published_iqa
from merton_studies.opinions.published import Claim
from merton_studies.papers import a2eval, agi_elo, embodied_arena, embodied_iqa, facts, ur5, world_model
from merton_studies.papers.facts import VERDICTS, Checked, Fact, Recomputed, cells_of, check, read_facts


@dataclass(frozen=True)
class Paper:
    """A source of numbers.

    Attributes:
        name: on the command line.
        title, source: of the paper, and where it is to be found.
        read: its numbers, in order.
        recompute: them.
        claims: its sentences, judged by the numbers.
    """

    name: str
    title: str
    source: str
    read: Callable[[], tuple[Fact, ...]]
    recompute: Callable[[Sequence[Fact]], Iterator[Recomputed]]
    claims: Callable[[Sequence[Fact]], tuple[Claim, ...]]


@dataclass(frozen=True)
class JudgedClaim:
    """A claim, and the verdict that is known of it; None of one that is not recorded."""

    claim: Claim
    known: str | None

    @property
    def is_as_known(self) -> bool:
        """Whether it is still the same."""
        return self.claim.verdict == self.known


@dataclass(frozen=True)
class Misprint:
    """Numbers of one table that are wrong for one reason."""

    numbers: tuple[Checked, ...]

    @property
    def reason(self) -> str:
        """The recorded reason; empty if there is none."""
        return self.numbers[0].fact.reason

    @property
    def where(self) -> str:
        """The place of the first number, and the number of others."""
        more = len(self.numbers) - 1
        return place(self.numbers[0].fact) + (f" and {more} more" if more else "")

    @property
    def printed(self) -> list[str]:
        """As they are printed."""
        return [item.fact.printed for item in self.numbers]

    @property
    def recomputed(self) -> list[str]:
        """Recomputed values; none of formulas."""
        return [shown(item.value) for item in self.numbers if item.value is not None]

    @property
    def sentence(self) -> str:
        """For the terminal."""
        values = f", comes out {'; '.join(self.recomputed)}" if self.recomputed else ""
        return f"{self.where}: printed {'; '.join(self.printed)}{values}: {self.reason}"


@dataclass(frozen=True)
class Reproduction:
    """A paper, recomputed.

    Attributes:
        numbers: each with its verdict, in the order of the paper.
        claims: each with its verdict.
        is_as_typed: whether the printed texts in its data file are those that were taken from the paper.
    """

    paper: Paper
    numbers: tuple[Checked, ...]
    claims: tuple[JudgedClaim, ...]
    is_as_typed: bool

    @property
    def counts(self) -> dict[str, int]:
        """Verdict to numbers; those that are not printed last."""
        found = Counter(item.verdict for item in self.numbers)
        return {verdict: found[verdict] for verdict in VERDICTS}

    @property
    def printed(self) -> int:
        """Numbers that the paper prints."""
        return sum(bool(item.fact.printed) for item in self.numbers)

    @property
    def misprints(self) -> list[Misprint]:
        """The numbers with that verdict; those of one table with one reason are one misprint."""
        groups: dict[tuple[str, str], list[Checked]] = {}
        for item in self.numbers:
            if item.verdict == "misprint":
                groups.setdefault((item.fact.table, item.fact.reason or item.fact.column), []).append(item)
        return [Misprint(tuple(items)) for items in groups.values()]

    @property
    def departures(self) -> list[str]:
        """Departures from the recorded verdicts and digits, a sentence each."""
        told = [
            f"{place(item.fact)}: {item.verdict}, {shown(item.value)}; "
            f"recorded: {item.fact.verdict}, {shown(item.fact.recomputed)}"
            for item in self.numbers
            if not item.is_as_known
        ]
        told += [
            f"{judged.claim.text}: {judged.claim.verdict}; recorded: {judged.known or 'nothing'}"
            for judged in self.claims
            if not judged.is_as_known
        ]
        if not self.is_as_typed:
            told.append("a printed digit in its data file is not the one that was taken from the paper")
        return told


def reproduce(names: Sequence[str] = ()) -> tuple[Reproduction, ...]:
    """The papers of these names, or all.

    Raises:
        UnknownNameError: for another name than those of `PAPERS`.
    """
    for name in names:
        if name not in PAPERS:
            raise UnknownNameError("paper", name, PAPERS)
    return tuple(_reproduced(PAPERS[name]) for name in dict.fromkeys(names or PAPERS))


def place(fact: Fact) -> str:
    """The place of a number in its paper, in words."""
    if fact.table == "text":
        return f"{'Appendix' if fact.row[:1].isupper() and len(fact.row) < 6 else 'Section'} {fact.row}, {fact.column}"
    if fact.table[:1] == "(":
        return f"Eq. {fact.table}, row {fact.row}, column {fact.column}"
    named = fact.table if not fact.table[:1].isdigit() else f"Table {fact.table}"
    return f"{named}, {fact.row}, {fact.column}"


def shown(value: float | None) -> str:
    """A recomputed value to six digits; a dash where there is none."""
    return "-" if value is None else f"{value:.6g}"


def _reproduced(paper: Paper) -> Reproduction:
    numbers = paper.read()
    known = facts.known_claims()
    claims = tuple(JudgedClaim(claim, known.get((paper.name, claim.text))) for claim in paper.claims(numbers))
    is_as_typed = facts.fingerprint(numbers) == facts.known_fingerprints().get(paper.name)
    return Reproduction(paper, check(numbers, paper.recompute(numbers)), claims, is_as_typed)


def _embodied_iqa() -> tuple[Fact, ...]:
    return (*embodied_iqa.read_triples(), *read_facts("embodied_iqa_text"))


PAPERS = {
    paper.name: paper
    for paper in (
        Paper(
            "embodied-iqa", "Image Quality Assessment for Embodied AI", "arXiv:2505.16815", _embodied_iqa,
            lambda numbers: embodied_iqa.recompute(cells_of(numbers)),
            lambda numbers: published_iqa.claims(),
        ),
        Paper(
            "ur5", "The arm of Embodied-IQA: Table 3 and appendices B to D", "arXiv:2505.16815",
            lambda: read_facts("ur5"),
            lambda numbers: ur5.recompute(cells_of(numbers), numbers),
            lambda numbers: ur5.claims(cells_of(numbers)),
        ),
        Paper(
            "agi-elo", "AGI-Elo: How Far Are We From Mastering A Task?", "arXiv:2505.12844",
            lambda: read_facts("agi_elo"),
            lambda numbers: agi_elo.recompute(cells_of(numbers)),
            lambda numbers: agi_elo.claims(cells_of(numbers)),
        ),
        Paper(
            "a2eval", "A2Eval: Agentic and Automated Evaluation for Embodied Brain", "preprint",
            lambda: read_facts("a2eval"),
            lambda numbers: a2eval.recompute(cells_of(numbers)),
            lambda numbers: a2eval.claims(cells_of(numbers)),
        ),
        Paper(
            "embodied-arena", "Embodied Arena: leaderboard rules", "arXiv:2509.15273",
            lambda: read_facts("embodied_arena"),
            lambda numbers: embodied_arena.recompute(cells_of(numbers), numbers),
            lambda numbers: embodied_arena.claims(),
        ),
        Paper(
            "world-model", "World Model as Evaluator: scoring criteria", "GigaBrain Challenge 2026",
            lambda: read_facts("world_model"),
            lambda numbers: world_model.recompute(),
            lambda numbers: world_model.claims(cells_of(numbers)),
        ),
    )
}  # fmt: skip
"""Name to paper, in the order of the page."""
