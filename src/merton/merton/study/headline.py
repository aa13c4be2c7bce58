"""The first sentences of a report: the agent that lost most under distortion, and the size of the run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from merton.leaderboard.snapshot.contents import AgentRow, CaseRow, Snapshot
from merton.pages.words import duration, percent, readable
from merton.results.text import counted, printable
from merton.study import thresholds
from merton.study.losses import Loss
from merton.study.thresholds import Threshold

LEAST_LOSS = 0.01
"""Of success, to count as sensitive to distortion."""
BLIND_DECISION = 0.999
"""The decisions of an agent with a higher mean decision score do not depend on the image."""


def headline(
    board: Snapshot,
    lost: Mapping[str, Loss],
    found_thresholds: Sequence[Threshold] = (),
    planned: int | None = None,
) -> str:
    """One sentence: the agent that lost most success under distortion, and how much.

    Of a staircase, which drives all agents to the same success, the lowest threshold in its place, and the next one
    if the two cannot be told apart. A run with fewer trials than planned says so first.

    Args:
        lost: of each agent (`losses.by_agent`).
        found_thresholds: of a staircase.
        planned: the number of trials of the whole run, if it is known.
    """
    trials = trial_count(board)
    if not trials:
        sentence = "no trial has been recorded yet"
    elif found_thresholds:
        sentence = _first_threshold(found_thresholds)
    elif sensitive := most_sensitive(board, lost):
        sentence = _greatest_loss([lost[row.id] for row in sensitive])
    else:
        sentence = "no agent has lost success under distortion"
    if planned is not None and trials < planned:
        return f"{trials} of {planned} trials so far: {sentence.replace(':', ',', 1)}."
    return f"{_begun(sentence, [row.id for row in board.agents])}."


def size(board: Snapshot, wall_s: object = None) -> str:
    """Such as "4 agents, 448 trials in 12 scenes, 4 min 37 s; hardest: jpeg 5"."""
    agents, trials = len(board.agents), trial_count(board)
    scenes = len({case.unit for case in board.cases})
    text = f"{counted(agents, 'agent')}, {counted(trials, 'trial')}"
    text += f" in {counted(scenes, 'scene')}" if scenes else ""
    text += f", {took}" if (took := duration(wall_s)) else ""
    hardest = _hardest(board.cases)
    return f"{text}; hardest: {readable(hardest)}" if hardest else text


def trial_count(board: Snapshot) -> int:
    """The trials on a board, infrastructure faults among them."""
    return sum(row.trials + row.infrastructure for row in board.agents)


def most_sensitive(board: Snapshot, lost: Mapping[str, Loss]) -> list[AgentRow]:
    """The agents that decide differently on distorted images and succeed less often on them, worst first."""
    found = [row for row in looking(board.agents) if row.id in lost and lost[row.id].points > LEAST_LOSS]
    return sorted(found, key=lambda row: (-lost[row.id].points, row.id))


def looking(rows: Iterable[AgentRow]) -> list[AgentRow]:
    """The agents whose decisions depend on the image, as far as is known.

    The decision score tells blindness from bad luck: an agent that never looks decides the same every time.
    """
    return [row for row in rows if row.decision is None or row.decision < BLIND_DECISION]


def _begun(sentence: str, names: Sequence[str]) -> str:
    """With a capital, unless it begins with the name of an agent."""
    named = any(sentence.startswith(printable(name, 40)) for name in names)
    return sentence if named else sentence[0].upper() + sentence[1:]


def _greatest_loss(found: Sequence[Loss]) -> str:
    """The first of the losses, and the doubt that their intervals leave: of the loss, or else of its being the most."""
    first, *others = found
    fall = f"its success falls from {percent(first.before)} to {percent(first.after)}\u00a0%"
    text = f"{printable(first.agent, 40)} loses most under distortion: {fall}"
    rivals = [loss for loss in others if loss.interval[1] >= first.interval[0]]
    if first.interval[0] <= 0:
        text += f", which {counted(first.scenes, 'scene')} cannot tell from chance"
    elif rivals:
        text += f", which cannot be told apart from {printable(rivals[0].agent, 40)}'s"
    return text


def _first_threshold(found: Sequence[Threshold]) -> str:
    first, *rivals = thresholds.lowest(found)
    if first.level == math.inf:
        return "no agent's success falls to 75\u00a0% within the five levels"
    text = f"success falls to 75\u00a0% first for {_place(first)}"
    if rivals:
        text += f", which cannot be told apart from {_place(rivals[0])}"
    if len(rivals) > 1:
        text += f" and {counted(len(rivals) - 1, 'other')}"
    return text


def _place(item: Threshold) -> str:
    """Such as "servo under jpeg (level 2.4)"."""
    where = f"{printable(item.agent, 40)} under {printable(item.distortion, 40)}"
    return f"{where} (level {thresholds.words(item.level)})"


def _hardest(cases: Iterable[CaseRow]) -> str:
    """The distortion and level with the highest mean case rating, such as "max_darken 5"; "" if none can be named.

    Only those in which every scene was seen are compared: else a hard scene makes its distortion look hard. Where the
    level is drawn anew for each scene that is a distortion alone, such as "max_darken".
    """
    rated = [(case, case.standing.mean) for case in cases if case.level and case.standing]
    scenes = {case.unit for case, _ in rated}
    for label in (lambda case: f"{case.distortion} {case.level}", lambda case: case.distortion):
        seen: dict[str, set[object]] = {}
        ratings: dict[str, list[float]] = {}
        for case, rating in rated:
            seen.setdefault(label(case), set()).add(case.unit)
            ratings.setdefault(label(case), []).append(rating)
        if whole := [name for name in sorted(seen) if seen[name] == scenes]:
            return max(whole, key=lambda name: round(float(np.mean(ratings[name])), 6))
    return ""
