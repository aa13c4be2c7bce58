"""Runs the program beside it on each case, and tells the result; of the standard library alone."""

from __future__ import annotations

import json
import math
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

LINES = 40


def main() -> None:
    """Each case in turn: a program that raises has failed on that case alone."""
    here = Path(__file__).parent
    request = _request()
    cases = json.loads((here / "cases.json").read_text(encoding="utf-8"))
    scoring = (here / "score.py").exists()
    for number, given in enumerate(cases):
        result: dict[str, Any]
        try:
            if scoring:
                from score import score

                result = {"value": _number(score(given["case"], given["prediction"]))}
            else:
                from infer import predict

                result = {"value": _text(predict(given["case"], _asker(number, request)))}
        except Exception:
            result = {"error": "\n".join(traceback.format_exc().splitlines()[-LINES:])}
        request({"case": number, **result})


def _asker(number: int, request: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., str]:
    def ask(prompt: str, max_tokens: int = 32, pictures: list[int] | None = None) -> str:
        reply = request({"case": number, "prompt": prompt, "max_tokens": max_tokens, "pictures": pictures})
        if "refused" in reply:
            raise ValueError(reply["refused"])
        return str(reply["text"])

    return ask


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"predict returned {type(value).__name__}, not str")
    return value[:4000]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"score returned {type(value).__name__}, not a number")
    if not math.isfinite(value):
        raise ValueError(f"score returned {value}, which is not finite")
    if not 0 <= value <= 1:
        raise ValueError(f"score returned {value}, which is not in 0..1")
    return float(value)


def _request() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The pipe to the process outside."""
    from asking import ask

    return lambda said: dict(ask(said))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
