"""A Reviewer without an LLM: it measures redundancy, coverage and balance, and asks for changes by rule.

The paper names the three criteria and no thresholds. All numbers here are ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from merton_studies.curation.agents import (
    Balance,
    Critique,
    Finding,
    Memory,
)
from merton_studies.curation.computed.texts import described
from merton_studies.curation.induction import Embed
from merton_studies.curation.pool import Pool
from merton_studies.curation.taxonomy import OTHER, Taxonomy

ALIKE = 0.9
"""Cosine of the descriptions of two dimensions from which they ask for the same."""
MOST_OTHER = 0.05
"""Share of "Other" beyond which dimensions are missing."""
LEAST, LARGEST = 0.2, 3.0
"""Share of a dimension by the even share, below which it is joined to the one most like it, and beyond which split."""
EVEN = 0.9
"""Entropy from which the balance is good enough, so that nothing is split."""
MOST_DIMENSIONS = 12

Floats = NDArray[np.float64]


class RuleReviewer:
    """Finds faults by measurement.

    Without balance statistics: two dimensions with a cosine of .9 are "redundant" (merge), as long as none was split.
    With them: more than 5 % of "Other" is "missing" (add, once); a dimension without a question is dropped; one with
    less than a fifth of the even share is merged with that most like it, as the paper merges under-represented ones;
    if there is none of these, the entropy is below .9 and there are fewer than 12 dimensions, one with more than three
    times the even share is split. After the first split nothing is merged any more, so that reviews cannot go in a
    circle.

    Args:
        embed: texts to (n, d) rows of norm 1.
    """

    name = "rules"

    def __init__(self, embed: Embed) -> None:
        self._embed = embed

    def review(self, taxonomy: Taxonomy, pool: Pool, memory: Memory, balance: Balance | None) -> Critique:
        """C_t; its summary has the numbers."""
        vectors = self._embed([described(dimension) for dimension in taxonomy.dimensions])
        likeness = np.asarray(vectors @ vectors.T, float)
        np.fill_diagonal(likeness, -1.0)
        actions = {finding.action for entry in memory if entry.critique for finding in entry.critique.findings}
        most = f"the two most alike dimensions have a cosine of {likeness.max():.2f}" if len(likeness) > 1 else ""
        if balance is None:
            findings = [] if "split" in actions else _redundant(taxonomy.names, likeness)
            return Critique(findings=tuple(findings), summary=most)
        total = max(sum(balance.assigned.values()), 1)
        other = balance.assigned[OTHER] / total
        told = f"{other:.1%} are Other, {balance.contested / total:.1%} contested, entropy {balance.entropy:.2f}"
        findings = []
        if other > MOST_OTHER and "add" not in actions:
            findings.append(Finding(kind="missing", action="add", text=f"{other:.1%} of the questions fit none"))
        findings += _unbalanced(taxonomy.names, likeness, balance, "split" in actions)
        return Critique(findings=tuple(findings), summary="; ".join(filter(None, (most, told))))


def _redundant(names: Sequence[str], likeness: Floats) -> list[Finding]:
    """Pairs of dimensions that ask for the same, the most alike first, each dimension in one pair."""
    found: list[Finding] = []
    free = np.ones(len(names), bool)
    while True:
        open_pairs = np.where(free[:, None] & free, likeness, -1.0)
        one, other = sorted(divmod(int(open_pairs.argmax()), len(names)))
        if open_pairs[one, other] < ALIKE:
            return found
        free[[one, other]] = False
        text = f"their descriptions have a cosine of {likeness[one, other]:.2f}"
        found.append(Finding(kind="redundant", action="merge", dimensions=(names[one], names[other]), text=text))


def _unbalanced(names: Sequence[str], likeness: Floats, balance: Balance, was_split: bool) -> list[Finding]:
    """What is too small, or else too large."""
    counts = np.array([balance.assigned[name] for name in names])
    ratio = counts * len(names) / max(int(counts.sum()), 1)
    if not counts.sum():
        return []
    empty = [
        Finding(kind="unbalanced", action="drop", dimensions=(names[one],), text="no question is assigned to it")
        for one in np.flatnonzero(counts == 0).tolist()
    ]
    small = [one for one in np.argsort(ratio, kind="stable").tolist() if 0 < ratio[one] < LEAST]
    if empty or (small and not was_split):
        return [*empty, *([] if was_split else _joined(names, likeness, counts, small))]
    largest = int(ratio.argmax())
    if balance.entropy < EVEN and ratio[largest] > LARGEST and len(names) < MOST_DIMENSIONS:
        text = f"it has {counts[largest] / counts.sum():.1%} of the questions"
        return [Finding(kind="unbalanced", action="split", dimensions=(names[largest],), text=text)]
    return []


def _joined(names: Sequence[str], likeness: Floats, counts: NDArray[np.intp], small: Sequence[int]) -> list[Finding]:
    """Small dimensions merged with that most like them, each in one pair."""
    found: list[Finding] = []
    free = counts > 0
    for one in small:
        partners = np.where(free & (np.arange(len(names)) != one), likeness[one], -2.0)
        other = int(partners.argmax())
        if free[one] and partners[other] > -2.0:
            free[[one, other]] = False
            text = f"{names[one]} has {counts[one] / counts.sum():.1%} of the questions"
            found.append(Finding(kind="unbalanced", action="merge", dimensions=(names[one], names[other]), text=text))
    return found
