"""What comparing two chunks gives; apart from the formulas, which not everybody who passes it on has to load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DecisionScore:
    """Similarity of two chunks, each 0..1; `total` is the mean of the other three."""

    total: float
    position: float
    rotation: float
    state: float
