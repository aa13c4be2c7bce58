"""Whether raters take care: the rules of `Project.attention` on hasty answers, gold items and repeats.

A rater who breaks a rule is marked, with the reason in words; nothing is deleted by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.project import Attention
from merton_studies.people.protocol import Protocol

LEAST_PLANTED = 3
"""Gold items or repeats that must be answered before they count against a rater. Ours: one slip is no pattern."""


@dataclass(frozen=True)
class Care:
    """The result of the rules of attention for the answers of one rater.

    Attributes:
        rater: pseudonym.
        answers: that stand.
        hasty: of these, in less than `least_s`.
        gold, gold_right: answers to gold items, and how many are right.
        repeats: items answered a second time.
        repeats_alike: share of the values in repeats that are as the first time: the same on a nominal scale, at most
            one step apart on an ordered one; None without any.
        reasons: the rules that are broken, a sentence each; empty for a careful rater, and before `after` answers.
    """

    rater: str
    answers: int
    hasty: int
    gold: int
    gold_right: int
    repeats: int
    repeats_alike: float | None
    reasons: tuple[str, ...]

    @property
    def is_marked(self) -> bool:
        """Whether any rule is broken."""
        return bool(self.reasons)


def care(rules: Attention, protocol: Protocol, items: Mapping[str, Item], answers: Iterable[Answer]) -> dict[str, Care]:
    """The care of every rater; reviews by experts are left out.

    Args:
        rules: of the project.
        protocol: judges gold items and gives the values of repeats.
        items: of the project by id; answers to other items are left out.
        answers: that stand, of any raters.

    Returns:
        Pseudonym to care, in the order of the pseudonyms in `answers`.
    """
    by_rater: dict[str, list[Answer]] = {}
    for answer in answers:
        if answer.kind != "review" and answer.item in items:
            by_rater.setdefault(answer.rater, []).append(answer)
    return {rater: _care(rater, rules, protocol, items, theirs) for rater, theirs in by_rater.items()}


def _care(rater: str, rules: Attention, protocol: Protocol, items: Mapping[str, Item], answers: list[Answer]) -> Care:
    hasty = sum(answer.seconds < rules.least_s for answer in answers)
    gold = [answer for answer in answers if answer.kind == "gold" and items[answer.item].gold is not None]
    right = sum(protocol.is_right(items[answer.item], answer.answer) for answer in gold)
    first = {answer.item: answer for answer in answers if answer.kind in ("design", "top_up")}
    repeats = [answer for answer in answers if answer.kind == "repeat" and answer.item in first]
    alike = [same for again in repeats for same in _alike(protocol, items[again.item], first[again.item], again)]
    share = sum(alike) / len(alike) if alike else None
    reasons = []
    if len(answers) >= rules.after:
        if hasty / len(answers) > rules.most_hasty:
            reasons.append(
                f"{hasty} of {len(answers)} answers took less than {rules.least_s:g} s; "
                f"at most {rules.most_hasty:.0%} may"
            )
        if len(gold) >= LEAST_PLANTED and right / len(gold) < rules.least_gold:
            reasons.append(f"{right} of {len(gold)} gold items are right; at least {rules.least_gold:.0%} must be")
        if len(repeats) >= LEAST_PLANTED and share is not None and share < rules.least_repeats:
            reasons.append(
                f"{share:.0%} of the values in {len(repeats)} repeats are as the first time; at least "
                f"{rules.least_repeats:.0%} must be"
            )
    return Care(rater, len(answers), hasty, len(gold), right, len(repeats), share, tuple(reasons))


def _alike(protocol: Protocol, item: Item, first: Answer, again: Answer) -> list[bool]:
    """For each criterion with a value both times, whether the two are alike."""
    before, after = protocol.values(item, first.answer), protocol.values(item, again.answer)
    found = []
    for criterion, scale in protocol.criteria.items():
        if criterion in before and criterion in after:
            one, other = before[criterion], after[criterion]
            stepped = scale != "nominal" and not isinstance(one, str) and not isinstance(other, str)
            found.append(abs(float(one) - float(other)) <= 1.0 if stepped else one == other)
    return found
