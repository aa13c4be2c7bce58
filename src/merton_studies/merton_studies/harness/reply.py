"""The reply of an answerer to a prompt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reply:
    """An answer, or the reason why there is none.

    Attributes:
        text: the raw answer; `merton.cognition.final_answer` reads it.
        unasked: why there is no answer: the model failed, or could not be asked, such as one of pictures about a
            question without any; "" where there is one.
        called: whether a model was called; False where the cache had the answer, or none is needed.
        truncated: whether the answer was cut off at its limit of tokens.
        latency_s: time of the answer when it was made, also where the cache has it; None: as long as it takes now [s].
    """

    text: str
    unasked: str = ""
    called: bool = False
    truncated: bool = False
    latency_s: float | None = None
