"""Messages of a program in the sandbox to this process, read as those of a stranger.

The driver checks the same things inside, for the sake of clear tracebacks; a program that writes to the pipe itself
passes it by, so only what is checked here holds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from merton.cognition.models.base import MAX_TOKENS

LONGEST_ANSWER = 4096
"""Most tokens that a program may ask for (A2Eval, section 4.1, for its own agents)."""
LONGEST_PROMPT = 50_000
"""Characters of a prompt. Ours: a question of the benchmarks has some hundred, with its situation some thousand."""
LONGEST_PREDICTION = 4000
"""Characters of a prediction, or of an error, that are kept. Ours."""
_SHOWN = 60


class RefusedError(ValueError):
    """A request that is none; the sentence is for the program."""


@dataclass(frozen=True)
class Told:
    """A result: the number of the case in the process's batch, and a value of JSON or the reason why there is none."""

    case: int
    value: Any
    error: str


@dataclass(frozen=True)
class Asked:
    """A question to the model about a case: `pictures` are numbers of its pictures, None for all of them."""

    case: int
    prompt: str
    max_tokens: int
    pictures: tuple[int, ...] | None


def read_request(line: bytes, cases: int) -> Told | Asked:
    """A line of the pipe; raises RefusedError for one that is neither a result nor a question about one of `cases`."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise RefusedError("this is no request: it must be an object of JSON with the number of a case")
    case = _whole(said.get("case"), "case", 0, cases - 1)
    if said.get("prompt") is None:
        error = _text(said.get("error") or "")
        return Told(case, said.get("value"), storable(error[-LONGEST_PREDICTION:]))
    prompt = said["prompt"]
    if not isinstance(prompt, str):
        raise RefusedError(f"the prompt must be a str, got {_shown(prompt)}")
    if len(prompt) > LONGEST_PROMPT:
        raise RefusedError(f"the prompt has {len(prompt)} characters; at most {LONGEST_PROMPT} are allowed")
    most = said.get("max_tokens")
    most = MAX_TOKENS if most is None else _whole(most, "max_tokens", 1, LONGEST_ANSWER)
    return Asked(case, _utf8(prompt), most, _pictures(said.get("pictures")))


def predicted(value: Any) -> str:
    """A prediction as it is kept; raises RefusedError for a value that is no text."""
    if not isinstance(value, str):
        raise RefusedError(f"predict returned {_shown(value)}, not a str")
    return storable(value)


def scored(value: Any) -> float:
    """A score; raises RefusedError for a value that is no number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusedError(f"score returned {_shown(value)}, not a number")
    if not 0 <= value <= 1:  # NaN is neither
        raise RefusedError(f"score returned {_shown(value)}, which is not in 0..1")
    return float(value)


def storable(text: str) -> str:
    """A text cut to `LONGEST_PREDICTION`, with "?" for halves of surrogate pairs, which UTF-8 cannot hold."""
    return _utf8(text[:LONGEST_PREDICTION])


def _text(error: Any) -> str:
    try:
        return str(error)
    except RecursionError:
        return "an error that is nested too deeply"


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _whole(value: Any, name: str, low: int, high: int) -> int:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high or value != int(value):  # NaN and infinity are not between
        raise RefusedError(f"{name} must be a whole number from {low} to {high}, got {_shown(value)}")
    return int(value)


def _pictures(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    chosen = tuple(_whole(one, "a picture", 0, 10_000) for one in value) if isinstance(value, list) else None
    if chosen is None or len(set(chosen)) < len(chosen):
        raise RefusedError(f"pictures must be a list of different whole numbers, or None for all, got {_shown(value)}")
    return chosen


def _shown(value: Any) -> str:
    """A value for a message: the beginning of its JSON."""
    try:
        return json.dumps(value)[:_SHOWN]
    except RecursionError:
        return "a value that is nested too deeply"
