"""The first sentences of a report: the agent that lost most under distortion, and the size of the run."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from merton.leaderboard.snapshot.contents import Snapshot
from merton.pages.words import duration, interval_words, number, percent, readable
from merton.results.losses import Loss
from merton.results.text import counted, printable
from merton.statistics.intervals import Interval
from merton.study import thresholds
from merton.study.hardest import hardest
from merton.study.largest_drop import LargestDrop, Rival, largest_drop
from merton.study.thresholds import Threshold

LEAST_LOSS = 0.01
"""Of success, to count as sensitive to distortion."""
RIVALS_NAMED = 2
"""Agents that are named beside the first, if their drops are not told apart from its own; the others are counted."""


def headline(
    board: Snapshot,
    lost: Mapping[str, Loss],
    found_thresholds: Sequence[Threshold] = (),
    planned: int | None = None,
    blind: Collection[str] = (),
) -> str:
    """One sentence: the agent that lost most success under distortion, how much, and those not told apart from it.

    Of a staircase, which drives all agents to the same success, the lowest threshold in its place, and the next one
    if the two cannot be told apart. A run with fewer trials than planned says so first.

    Args:
        board: of the run's trials.
        lost: of each agent (`losses.by_agent`).
        found_thresholds: of a staircase.
        planned: the number of trials of the whole run, if it is known.
        blind: ids of the agents that look at nothing (`blindness.blind_agents`).
    """
    trials = trial_count(board)
    seeing = [item for item in found_thresholds if item.agent not in blind]
    if not trials:
        sentence = "no trial has been recorded yet"
    elif seeing:
        sentence = _first_threshold(seeing)
    elif largest := leading_drop(lost, blind):
        sentence = _greatest_loss(largest)
    elif {row.id for row in board.agents} <= set(blind):
        sentence = "no agent looks at the images"
    elif not any(loss for agent, loss in lost.items() if agent not in blind):
        sentence = "no distorted trial has an undistorted one of its scene beside it, so no drop is known"
    elif (seen := [loss for agent, loss in lost.items() if agent not in blind]) and not any(
        loss.before for loss in seen
    ):
        sentence = "no agent that looks at the images does the task undistorted, so none has success to lose"
    else:
        sentence = "no agent has lost success under distortion"
    if planned is not None and trials < planned:
        return f"{trials} of {planned} trials so far: {sentence.replace(':', ',', 1)}."
    return f"{_begun(sentence, [row.id for row in board.agents])}."


def size(board: Snapshot, wall_s: object = None, blind: Collection[str] = ()) -> str:
    """Such as "4 agents, 448 trials in 12 scenes, 4 min 37 s; hardest: jpeg 5 (not told apart from 2 of 5 others)"."""
    agents, trials = len(board.agents), trial_count(board)
    scenes = len({case.unit for case in board.cases})
    text = f"{counted(agents, 'agent')}, {counted(trials, 'trial')}"
    text += f" in {counted(scenes, 'scene')}" if scenes else ""
    text += f", {took}" if (took := duration(wall_s)) else ""
    if found := hardest(board, blind):
        text += f"; hardest: {readable(found.name)}"
        text += f" (not told apart from {found.rivals} of {counted(found.others, 'other')})" if found.rivals else ""
    return text


def trial_count(board: Snapshot) -> int:
    """The trials on a board, infrastructure faults among them."""
    return sum(row.trials + row.infrastructure for row in board.agents)


def leading_drop(lost: Mapping[str, Loss], blind: Collection[str] = ()) -> LargestDrop | None:
    """The largest drop of the agents that look; None if none of them has lost success."""
    if not most_sensitive(lost, blind):
        return None
    return largest_drop(loss for agent, loss in lost.items() if agent not in blind)


def most_sensitive(lost: Mapping[str, Loss], blind: Collection[str] = ()) -> list[str]:
    """Ids of the agents that look and succeed less often on distorted images, worst first."""
    found = [loss for agent, loss in lost.items() if agent not in blind and loss.points > LEAST_LOSS]
    return [loss.agent for loss in sorted(found, key=lambda loss: (-loss.points, loss.agent))]


def _begun(sentence: str, names: Sequence[str]) -> str:
    """With a capital, unless it begins with the name of an agent."""
    named = any(sentence.startswith(printable(name, 40)) for name in names)
    return sentence if named else sentence[0].upper() + sentence[1:]


def _greatest_loss(found: LargestDrop) -> str:
    """The first agent's fall and its shrunken drop, the doubt about it, and the agents not told apart from it."""
    first, rivals = found.first, found.rivals
    text = f"{printable(first.agent, 40)} loses most under distortion: its success falls from {percent(first.before)} "
    text += f"to {percent(first.after)}\u00a0%"
    if found.shrunken is not None:
        text += f" ({_points(first.points)}, {number(100 * found.shrunken, 0)} shrunken)"
    if not found.is_beyond_chance:
        text += f", which {counted(first.scenes, 'scene')} cannot tell from chance"
    if rivals:
        named = [printable(rival.agent, 40) for rival in rivals[:RIVALS_NAMED]]
        named += [counted(len(rivals) - RIVALS_NAMED, "other")] if len(rivals) > RIVALS_NAMED else []
        whose = f"{named[0]}'s drop is" if len(named) == 1 else f"the drops of {_listed(named)} are"
        text += f"; {whose} not told apart ({_difference(rivals[0], len(named) > 1)})"
    elif found.others:
        text += f"; {printable(found.others[0].agent, 40)} is next ({_difference(found.others[0])})"
    return text


def _difference(rival: Rival, several: bool = False) -> str:
    """Such as "6 points less [-11, 23]": a drop beside the largest one."""
    if rival.less is None or rival.interval is None:
        return "no test case in common"
    side = "less" if rival.less >= 0.0 else "more"
    interval = rival.interval if side == "less" else Interval(-rival.interval[1], -rival.interval[0])
    text = f"{_points(abs(rival.less))} {side} {interval_words(interval, 0, 100)}"
    return f"{printable(rival.agent, 40)}'s {text}" if several else text


def _listed(names: Sequence[str]) -> str:
    """Such as "a, b and c", of two names or more."""
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _points(share: float) -> str:
    """A share in points of 100, such as "6 points"."""
    return counted(round(100 * share), "point")


def _first_threshold(found: Sequence[Threshold]) -> str:
    lowest = thresholds.lowest(found)
    if not lowest and all(item.fails_undistorted for item in found):
        return "no agent succeeds in 75\u00a0% of its undistorted trials, so no level brings it there: read the drops"
    if not lowest:
        return "success rises and falls with the level, so no level is the first of 75\u00a0%"
    first, *rivals = lowest
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
    return f"{where} (level {item.words})"
