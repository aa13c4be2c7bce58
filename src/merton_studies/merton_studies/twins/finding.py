"""The first sentence of a page of twins: the distortion under which the arm would most often have gone elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from merton.pages.words import interval_words, number, percent, readable
from merton.results.text import count_of, printable
from merton_studies.twins.motion import TOLERANCE_M
from merton_studies.twins.summary import SettingSummary


def twins_finding(summaries: Sequence[SettingSummary]) -> str:
    """A sentence with the worst distortion of each policy: share of trials that leave, 95 % interval, n and scenes."""
    if not summaries:
        return "No undistorted trial was recorded, so nothing can be said: record a run with undistorted trials."
    by_policy: dict[str, list[SettingSummary]] = {}
    for item in summaries:
        by_policy.setdefault(item.policy, []).append(item)
    return "; ".join(_of_policy(policy, items) for policy, items in by_policy.items()) + "."


def _of_policy(policy: str, items: Sequence[SettingSummary]) -> str:
    first = max(items, key=lambda item: item.left)
    name, n = printable(policy, 40), count_of(len(first.trials), first.scenes)
    if not first.left:
        farthest_cm = max(item.most_cm for item in items)
        return (
            f"{name} would have gone nowhere else on distorted pictures: at most {number(farthest_cm, 1)} cm away, "
            f"within {number(100 * TOLERANCE_M, 0)} cm in each trial (n = {n})"
        )
    alike = sum(item.left == first.left for item in items) - 1
    tie = f", as under {alike} more of {len(items)}" if alike else ""
    return (
        f"{name} would have gone elsewhere most often under {readable(first.setting.distortion)} "
        f"{first.setting.level}: in {percent(first.left)}\u00a0% {interval_words(first.left_interval, 0, 100)} "
        f"of its trials (n = {n}){tie}"
    )
