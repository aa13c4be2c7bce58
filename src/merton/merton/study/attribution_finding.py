"""The first sentence of an attribution: for each agent the step, camera and region that bear most of its loss."""

from __future__ import annotations

from collections.abc import Sequence

from merton.pages.words import interval_words, number, percent
from merton.results.text import count_of, printable
from merton.study.attribution import Attribution, Findings, Mean

LEAST_SHARE = 0.5
"""Of the loss: a part with less of it is not named."""
ORDER = ("steps", "cameras", "stages", "regions")
"""Axes in the order in which they are named."""


def finding(findings: Findings) -> str:
    """A sentence on the agents that lose success beyond chance: how much, with interval and n, and where.

    A part is named if it bears at least `LEAST_SHARE` of the loss and its share is above that of chance. The agent
    that loses most comes first; equal ones by name. Without a resolved loss the sentence says what would resolve it.
    """
    of_agents: dict[str, list[Attribution]] = {}
    for item in findings.attributions:
        if item.value == "success":
            of_agents.setdefault(item.agent, []).append(item)
    if not of_agents:
        return "No agent that looks at the images has a distorted trial beside its undistorted one."
    ranked = sorted(of_agents.items(), key=lambda entry: (-entry[1][0].loss.value, entry[0]))
    resolved = [(agent, items) for agent, items in ranked if _is_above_zero(items[0].loss)]
    if resolved:
        return "; ".join(_of_agent(agent, items) for agent, items in resolved) + "."
    agent, items = ranked[0]
    first = items[0]
    return (
        f"No loss of success under distortion is resolved: {printable(agent, 40)} loses most, {_points(first.loss)} "
        f"(n\u00a0= {count_of(first.trials, first.scenes)}); more scenes would narrow the interval."
    )


def unseeing_sentence(agents: Sequence[str]) -> str:
    """The line on agents that look at none of the distorted images; empty without any."""
    return (
        f"Look at none of the distorted images: {', '.join(printable(agent, 40) for agent in agents)}."
        if agents
        else ""
    )


def _of_agent(agent: str, items: Sequence[Attribution]) -> str:
    first = items[0]
    n = count_of(first.trials, first.scenes)
    text = f"{printable(agent, 40)} loses {_points(first.loss)} of success (n\u00a0= {n})"
    by_axis = {item.axis: item for item in items}
    places = [words for axis in ORDER if axis in by_axis and (words := _leading_part(by_axis[axis]))]
    return f"{text}, most of it at {', '.join(places)}" if places else f"{text}, and no single part bears most of it"


def _leading_part(item: Attribution) -> str:
    """Such as "step 1 (100 %)"; empty where no part bears most of the loss beyond chance.

    Parts with equal shares are not told apart, so none of them is named.
    """
    ranked = sorted(item.shares.items(), key=lambda entry: -entry[1].value)
    if len(ranked) < 2 or ranked[0][1].value == ranked[1][1].value:
        return ""
    part, share = ranked[0]
    is_most = share.value >= LEAST_SHARE * item.loss.value
    floor = item.chance.value if item.chance is not None else 0.0
    if not (is_most and _is_above_zero(share) and share.interval is not None and share.interval[0] > floor):
        return ""
    size = f"{percent(min(share.value / item.loss.value, 1.0))}\u00a0%"
    name = printable(part, 40)
    words = {"steps": f"step {name}", "cameras": f"the {name} camera", "stages": name, "regions": name}
    return f"{words[item.axis]} ({size})"


def _is_above_zero(mean: Mean) -> bool:
    return mean.interval is not None and mean.interval[0] > 0.0


def _points(mean: Mean) -> str:
    return f"{number(100.0 * mean.value, 0)} points {interval_words(mean.interval, 0, 100)}"
