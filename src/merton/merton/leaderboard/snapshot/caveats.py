"""Reasons to doubt a board: those that lie in its trials, and ratings that are withheld."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from merton.leaderboard.snapshot.contents import AgentRow
from merton.leaderboard.snapshot.inputs import Inputs
from merton.leaderboard.snapshot.ranges import is_compared
from merton.rating.checking import MatchTable
from merton.rating.likelihood import Fit
from merton.rating.paired import difference
from merton.results.metrics import DEFAULT_METRIC
from merton.results.records import Outcome, Reference, TrialRecord
from merton.results.text import counted, printable

PAIRS_SHOWN = 6
"""Of agents whose ratings are withheld: all of four agents."""


def withheld_caveats(table: MatchTable, fitted: Fit) -> Iterator[str]:
    """Why the likelihood ratings of these matches are withheld, and the paired differences that stand in their place.

    Of more than four agents, the pairs of the agent that is first by mean score.
    """
    if fitted.has_no_scale:
        why = (
            "the agents do and fail nearly the same cases, so that these would be spread over "
            f"{fitted.case_spread:.0f} points, and any large spread fits"
        )
    else:
        widest = max(fitted.agents, key=lambda name: (fitted.agents[name].width, name))
        why = (
            f"the matches leave open how much cases differ ({fitted.spread_freedom:.1f} degrees of freedom), and the "
            f"95 % interval of {printable(widest, 40)} would be {fitted.agents[widest].width:.0f} points wide"
        )
    yield (
        f"The likelihood ratings are withheld, and AGI-Elo alone gives the ranks: {why}. The agents are compared by "
        "their scores on the same cases."
    )
    names = table.agent_ids
    pairs = list(combinations(names, 2))
    if len(pairs) > PAIRS_SHOWN:
        means = {name: float(table.scores[table.agents == index].mean()) for index, name in enumerate(names)}
        first, *others = sorted(names, key=lambda name: (-means[name], name))
        pairs = [(first, other) for other in others]
    for one, other in pairs[:PAIRS_SHOWN]:
        yield _pair(table, one, other)


def _pair(table: MatchTable, one: str, other: str) -> str:
    """Such as "a scores 3.0 points more than b on the 108 cases (36 scenes) that both met, 95 % [-1.0, 7.0]."."""
    found = difference(table, one, other)
    if found is not None and found.mean < 0.0:
        one, other, found = other, one, difference(table, other, one)
    first, second = printable(one, 40), printable(other, 40)
    if found is None:
        return f"{first} and {second} met no case in common."
    scenes = f" ({found.scenes} scene{'s' if found.scenes != 1 else ''})" if found.scenes else ""
    cases = f"the {found.cases} cases" if found.cases > 1 else "the one case"
    return (
        f"{first} scores {100 * found.mean:.1f} points of 100 more than {second} on {cases}{scenes} that both met, "
        f"95 % {found.interval.scaled(100.0):.1f}."
    )


def range_caveats(table: MatchTable, has_intervals: bool) -> Iterator[str]:
    """A sentence where the agents are too many to be compared in pairs; AGI-Elo has no intervals instead."""
    if not is_compared(table):
        many = f"{len(table.agent_ids)} agents on {len(table.case_ids)} cases are too many to be compared in pairs"
        if has_intervals:
            yield f"The ranges of places come from the intervals of the ratings: {many}. Such ranges are wider."
        else:
            yield f"Places have no ranges: {many}."


def reference_caveats(trials: Sequence[TrialRecord]) -> Iterator[str]:
    """Sentences about distorted trials that no undistorted run which did the task was there to measure against."""
    distorted = [
        trial for trial in trials if not trial.case.is_reference and trial.outcome is not Outcome.INFRASTRUCTURE
    ]
    # a success always has an execution score where motions are measured: those of other programs' episodes are not
    successes = {trial.experiment for trial in trials if trial.success and trial.execution is None}
    without = successes - {trial.experiment for trial in trials if trial.execution is not None}
    distorted = [trial for trial in distorted if trial.experiment not in without]
    unmeasured = Counter(trial.agent for trial in distorted if trial.reference is Reference.NONE)
    if unmeasured:
        yield (
            f"{unmeasured.total()} of {len(distorted)} distorted trials have no execution score ({_by(unmeasured)}): "
            "no undistorted run did their task, so there is nothing to measure them against."
        )
    doubtful = Counter(
        trial.agent for trial in distorted if trial.reference is Reference.OWN and trial.reference_success is False
    )
    if doubtful:
        yield (
            f"{doubtful.total()} of {len(distorted)} distorted trials are measured against an undistorted run that "
            f"failed ({_by(doubtful)}): their execution scores are high for an agent that fails alike twice."
        )


def rank_caveats(agents: Sequence[AgentRow], metric: str) -> Iterator[str]:
    """Sentences about agents that never did the task and stand above one that did."""
    if metric == DEFAULT_METRIC:
        return
    for row in agents:
        if row.success != 0.0 or row.rank is None:
            continue
        below = [item.id for item in agents if item.success and item.rank is not None and item.rank > row.rank]
        if below:
            yield (
                f"{printable(row.id, 40)} did no task and stands above {printable(below[0], 40)}"
                f"{f' and {len(below) - 1} more' if len(below) > 1 else ''}, which did: this board is by {metric}."
            )


def submission_caveats(inputs: Inputs) -> Iterator[str]:
    """A sentence about submissions that state nothing by the metric of the board."""
    if names := sorted(inputs.left_out):
        listed = ", ".join(printable(name, 80) for name in names[:3])
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        verb, where = ("states", "is") if len(names) == 1 else ("state", "are")
        metric = inputs.metric.replace("_", " ")
        yield (
            f"{counted(len(names), 'submission')} {verb} no {metric} of trials and {where} not on this board: "
            f"{listed}{more}. One of format 1 states execution alone."
        )


def _by(counts: Counter[str]) -> str:
    """Such as "hold 4, servo 2"; at most three agents, those with most first."""
    shown = ", ".join(f"{printable(agent, 40)} {count}" for agent, count in counts.most_common(3))
    return shown + (f" and {len(counts) - 3} agents more" if len(counts) > 3 else "")
