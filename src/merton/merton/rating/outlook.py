"""What ratings predict: an agent's score on a case, and how far it is from mastering the hardest one.

Predictions use the plain logistic without the Glicko impact factor (AGI-Elo, section 3.4).
"""

from __future__ import annotations

import math

from merton.errors import InputError


def predicted_score(agent_rating: float, case_rating: float) -> float:
    """The score in 0..1 to expect of an agent on a case: 1 / (1 + 10^((case - agent) / 400)).

    Raises:
        InputError: a rating is not finite.
    """
    difference = _finite("agent's", agent_rating) - _finite("case's", case_rating)
    return 0.5 * (1.0 + math.tanh(0.5 * math.log(10.0) / 400.0 * difference))


def gap(agent_rating: float, hardest_case_rating: float, p: float) -> float:
    """Elo points the agent lacks to score `p` on the hardest case; negative if it already does better.

    gap = R_oracle(p) - R_agent with R_oracle(p) = R_hardest + 400 log10(p / (1 - p)) (AGI-Elo, section 3.4).

    Raises:
        InputError: `p` is not strictly between 0 and 1, or a rating is not finite.
    """
    if not 0.0 < p < 1.0:
        raise InputError(f"the score of mastery must lie strictly between 0 and 1, got {p!r}")
    oracle = _finite("hardest case's", hardest_case_rating) + 400.0 * math.log10(p / (1.0 - p))
    return oracle - _finite("agent's", agent_rating)


def _finite(whose: str, rating: float) -> float:
    if not math.isfinite(rating):
        raise InputError(f"the {whose} rating must be finite, got {rating!r}")
    return rating
