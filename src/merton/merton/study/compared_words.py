"""A comparison of two runs in words: the finding in one sentence, rows of a table, and what is to be said beside it."""

from __future__ import annotations

from collections.abc import Sequence

from merton.pages.words import interval_words, percent, signed
from merton.results.text import MISSING, count_of, counted, printable
from merton.statistics.intervals import Interval
from merton.study.compared import DISTORTED, DROP, QUANTITIES, AgentDifferences, Breakdown, Comparison, Difference

CEILING, FLOOR = 0.95, 0.05
"""Success of both above or below which cases are too easy or too hard to show a difference. Ours."""
NAMED = 2
"""Agents that are named in the finding; the others are counted."""


def finding(comparison: Comparison) -> str:
    """One sentence: which agents are better or worse in B, beyond chance; or that it is not resolved, and why.

    It is one test: the intervals in it hold for all agents that it is about together with 95 %.
    """
    rows = comparison.candidates
    if not rows:
        return "Nothing can be compared: no agent has a scored trial in both."
    known = [found for row in rows if (found := row.of(comparison.quantity))]
    if all(part.changed == 0 for row in comparison.agents for part in _parts(row)):
        trials = sum(part.cases for row in comparison.agents for part in (row.undistorted, row.distorted) if part)
        limit = _limit(known)
        return f"No outcome differs in the {counted(trials, 'trial')} that both have{f': {limit}' if limit else ''}."
    resolved = [row for row in rows if _is_resolved(row, comparison)]
    if not resolved:
        return _unresolved(rows, known, comparison)
    resolved.sort(key=lambda row: (-abs(_value(row, comparison)), row.pair.name))
    clauses = [_clause(row, comparison, len(rows), number == 0) for number, row in enumerate(resolved[:NAMED])]
    clauses += [f"{counted(len(resolved) - NAMED, 'other agent')} differ too"] if len(resolved) > NAMED else []
    left = len(rows) - len(resolved)
    clauses += [f"{'the others are' if left > 1 else 'the other agent is'} not told apart"] if left else []
    return f"{'; '.join(clauses)}."


def control(comparison: Comparison) -> list[str]:
    """A sentence for each agent that looks at nothing and differs all the same."""
    rows = [row for row in comparison.agents if row.is_blind and row not in comparison.candidates]
    pairs = [(row, part) for row in rows for part in (row.undistorted, row.distorted) if part]
    worst: dict[str, Difference] = {}
    for row, part in sorted(pairs, key=lambda pair: abs(pair[1].value)):
        if not _holds_zero(part.among(len(pairs))):
            worst[row.pair.name] = part
    return [
        f"{printable(name, 40)} looks at nothing and differs by {points(part.value)} points all the same: the cell or "
        "its rules differ, not the vision alone."
        for name, part in worst.items()
    ]


def remarks(comparison: Comparison) -> list[str]:
    """The sentences beside the table: pairing, agents and cases of one side alone, faults, many looks."""
    parts = [part for row in comparison.agents for part in _parts(row)]
    lines = []
    if any(part.is_paired for part in parts):
        lines.append("Paired: each case (task, scene, distortion, level) is compared with itself, by scene.")
    if loose := [part for part in parts if not part.is_paired]:
        whose = "" if len(loose) == len(parts) else f"{len(loose)} of {len(parts)} rows are "
        unpaired = f"{whose}unpaired: these have no two scenes with common cases, so the designs differ, too."
        lines.append(unpaired[0].upper() + unpaired[1:])
    for run, names in (("A", comparison.only_first), ("B", comparison.only_second)):
        if names:
            lines.append(f"Only in {run}: {counted(len(names), 'agent')} ({_listed(names)}).")
    if any(comparison.cases_only) and any(part.is_paired for part in parts):
        lines.append("Trials on cases of one run alone do not count: {} in A, {} in B.".format(*comparison.cases_only))
    if any(comparison.faults):
        lines.append(
            "Left out as infrastructure faults, which are no scores: {} in A, {} in B.".format(*comparison.faults)
        )
    if (number := len(comparison.candidates)) > 1:
        lines.append(
            f"The first sentence is one test of {number} agents; intervals of single rows hold for that row alone."
        )
    return [*lines, *control(comparison)]


def breakdown_line(breakdown: Breakdown) -> str:
    """How many of a breakdown's differences exclude 0, beside the number that chance alone gives."""
    known = breakdown.differences or [
        row.undistorted for rows in breakdown.groups.values() for row in rows if row.undistorted
    ]
    beyond = sum(part.is_beyond_chance for part in known)
    return (
        f"By {breakdown.name}: {beyond} of {counted(len(known), 'difference')} exclude{'s' if beyond == 1 else ''} 0; "
        "one in twenty would by chance, so take them as hints."
    )


def flips_line(comparison: Comparison) -> str:
    """How many trials ended otherwise."""
    gained = sum(bool(second.success) for _, second in comparison.flips)
    return (
        f"{counted(len(comparison.flips), 'trial')} ended otherwise: {gained} failed in A and succeeded in B, "
        f"{len(comparison.flips) - gained} the other way."
    )


def cells(difference: Difference | None, quantity: str) -> tuple[str, str, str, str]:
    """A row of the table: A, B, the difference with its interval, and the number of cases in scenes."""
    if difference is None:
        return MISSING, MISSING, MISSING, MISSING
    text = percent if quantity != DROP else points_unsigned
    interval = interval_words(difference.interval, 0, 100, sign=True)
    count = count_of(difference.cases, difference.scenes)
    return text(difference.first), text(difference.second), f"{points(difference.value)} {interval}", count


def points(share: float) -> str:
    """A difference in whole points of 100, with its sign."""
    return signed(100.0 * share, 0)


def points_unsigned(share: float) -> str:
    """A drop in whole points of 100; a rise has a minus."""
    return signed(100.0 * share, 0).removeprefix("+")


def quantity_words(quantity: str) -> str:
    """Such as "success distorted, %" and "drop, points"."""
    return "drop, points" if quantity == DROP else f"success {quantity}, %"


def _clause(row: AgentDifferences, comparison: Comparison, agents: int, is_first: bool) -> str:
    """Such as "servo is better in B by 12 points [3, 21]: 48 → 60 % of distorted trials in 12 scenes"."""
    found = row.of(comparison.quantity)
    assert found is not None
    word = "better" if found.value > 0.0 else "worse"
    ends = found.among(agents)
    ends = ends if found.value > 0.0 else Interval(-ends.high, -ends.low)
    name, other = printable(row.pair.first, 40), printable(row.pair.second, 40)
    subject = f"{name} is {word} in B" if name == other else f"{other} in B is {word} than {name} in A"
    text = f"{subject} by {counted(round(100 * abs(found.value)), 'point')} {interval_words(ends, 0, 100)}"
    size = f" {_trials(comparison)} in {counted(found.scenes, 'scene')}" if is_first else ""
    return f"{text}: {_both(found)}{size}{_drop_clause(row)}"


def _drop_clause(row: AgentDifferences) -> str:
    if row.drop is None or not row.drop.is_beyond_chance:
        return ""
    return f" (drop {points_unsigned(row.drop.first)}\u00a0→\u00a0{points_unsigned(row.drop.second)} points)"


def _unresolved(rows: Sequence[AgentDifferences], known: Sequence[Difference], comparison: Comparison) -> str:
    if limit := _limit(known):
        return f"Not resolved: {limit}."
    row = max(rows, key=lambda row: abs(_value(row, comparison)))
    found = row.of(comparison.quantity)
    assert found is not None
    many = f" for any of {len(rows)} agents; the largest difference is that of" if len(rows) > 1 else ":"
    ends = interval_words(found.among(len(rows)), 0, 100, sign=True)
    size = f"{_both(found)} {_trials(comparison)}, {points(found.value)} points {ends}"
    text = f"Not resolved{many} {printable(row.pair.name, 80)}, {size}"
    if found.needed:
        return f"{text}; {counted(found.scenes, 'scene')} were compared, about {found.needed} would tell."
    if found.scenes < 2:
        return f"{text}; one scene tells nothing of others."
    return f"{text} in {counted(found.scenes, 'scene')}."


def _limit(known: Sequence[Difference]) -> str:
    """Why nothing can differ, if that is so: all succeed, or all fail."""
    means = [mean for part in known for mean in (part.first, part.second)]
    if min(means) >= CEILING:
        often = "always succeed" if min(means) == 1.0 else f"succeed in {percent(min(means))}\u00a0% or more"
        return f"both {often}, so these cases are too easy to show a difference"
    if max(means) <= FLOOR:
        often = "never succeed" if max(means) == 0.0 else f"succeed in {percent(max(means))}\u00a0% or less"
        return f"both {often}, so these cases are too hard to show a difference"
    return ""


def _both(found: Difference) -> str:
    return f"{percent(found.first)}\u00a0→\u00a0{percent(found.second)}\u00a0%"


def _trials(comparison: Comparison) -> str:
    return "of distorted trials" if comparison.quantity == DISTORTED else "of undistorted trials"


def _parts(row: AgentDifferences) -> list[Difference]:
    return [part for quantity in QUANTITIES if (part := row.of(quantity))]


def _value(row: AgentDifferences, comparison: Comparison) -> float:
    found = row.of(comparison.quantity)
    return found.value if found else 0.0


def _is_resolved(row: AgentDifferences, comparison: Comparison) -> bool:
    found = row.of(comparison.quantity)
    return found is not None and not _holds_zero(found.among(len(comparison.candidates)))


def _holds_zero(interval: Interval) -> bool:
    return interval.low <= 0.0 <= interval.high


def _listed(names: Sequence[str], most: int = 4) -> str:
    named = [printable(name, 40) for name in names[:most]]
    return ", ".join(named) + (f" and {len(names) - most} more" if len(names) > most else "")
