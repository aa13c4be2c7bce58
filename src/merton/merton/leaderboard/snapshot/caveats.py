"""Reasons to doubt a board that lie in its trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from merton.leaderboard.snapshot.contents import AgentRow
from merton.results.metrics import DEFAULT_METRIC
from merton.results.records import Outcome, Reference, TrialRecord
from merton.results.text import printable


def reference_caveats(trials: Sequence[TrialRecord]) -> Iterator[str]:
    """Sentences about distorted trials that no undistorted run which did the task was there to measure against."""
    distorted = [
        trial for trial in trials if not trial.case.is_reference and trial.outcome is not Outcome.INFRASTRUCTURE
    ]
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


def _by(counts: Counter[str]) -> str:
    """Such as "hold 4, servo 2"; at most three agents, those with most first."""
    shown = ", ".join(f"{printable(agent, 40)} {count}" for agent, count in counts.most_common(3))
    return shown + (f" and {len(counts) - 3} agents more" if len(counts) > 3 else "")
