"""Programs of a pipeline run on many cases inside the sandbox, a batch per process.

A small driver of ours runs beside the program, hands it one case after the other and tells this process each result
over the pipe of `Sandbox.run`, which is also the only way of `ask` to a model. A program that ends its process on a
case fails on that case alone: the rest of the batch is run again without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from merton.harness.pipeline import INFER, SCORE

ANSWER_LIMIT = 4000
"""Characters of a model's answer that a program sees, and of a prediction that is kept. Ours."""
TRACEBACK_LINES = 40
MAX_TOKENS = 32
"""Longest answer in tokens where a program gives no other."""
DRIVER, CASES = "driver.py", "cases.json"

Ask = Callable[[int, str, int, "tuple[int, ...] | None"], str]
"""(number of the case in the batch, prompt, max_tokens, pictures or None for all) to the model's answer."""


class Ended(Protocol):
    """The parts of `merton.harness.sandbox.Ended` that are used here."""

    exit_code: int
    reason: str
    stderr: str
    seconds: float


class Runner(Protocol):
    """The part of `merton.harness.sandbox.Sandbox` that is used here; tests have a stand-in."""

    def run(
        self,
        files: Mapping[str, bytes | str],
        main: str,
        inputs: Mapping[str, Path] | None = ...,
        serve: Callable[[bytes], bytes] | None = ...,
    ) -> Any:
        """Run the program `main` of `files`; `serve` answers each of its lines with one."""


@dataclass(frozen=True)
class Outcome:
    """The result of a program on one case.

    Attributes:
        value: returned, as JSON has it; None where the program failed.
        error: why it failed: the last lines of the traceback, or how the process ended; "" where it did not.
    """

    value: Any
    error: str = ""


@dataclass
class _Batch:
    """The conversation with one process."""

    ask: Ask | None
    numbers: Sequence[int]
    outcomes: dict[int, Outcome] = field(default_factory=dict)

    def serve(self, line: bytes) -> bytes:
        """Answer a line of the driver: a result is noted, a question is put to the model."""
        try:
            said = json.loads(line)
            number = self.numbers[int(said["case"])]
            prompt = said.get("prompt")
            pictures = said.get("pictures")
            chosen = None if pictures is None else tuple(int(place) for place in pictures)
            most = int(said.get("max_tokens", MAX_TOKENS))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            return json.dumps({"refused": f"this is no request: {type(error).__name__}: {error}"}).encode()
        if prompt is None:
            self.outcomes.setdefault(number, Outcome(said.get("value"), str(said.get("error", ""))[-ANSWER_LIMIT:]))
            return b"{}"
        if self.ask is None:
            return json.dumps({"refused": "a scoring program has no model"}).encode()
        return json.dumps({"text": self.ask(number, str(prompt), most, chosen)[:ANSWER_LIMIT]}).encode()


def run_infer(
    sandbox: Runner, program: str, cases: Sequence[Mapping[str, Any]], ask: Ask
) -> tuple[list[Outcome], float]:
    """What `predict` of a program returns for each case, and the seconds that it took.

    Args:
        sandbox: where it runs.
        program: text of infer.py.
        cases: as of `case_for_infer`; nothing else of a question enters the sandbox.
        ask: the model.
    """
    return _run(sandbox, {INFER: program}, [{"case": dict(case)} for case in cases], ask)


def run_score(
    sandbox: Runner, program: str, cases: Sequence[Mapping[str, Any]], predictions: Sequence[str]
) -> tuple[list[Outcome], float]:
    """What `score` of a program returns for each case and prediction, and the seconds that it took."""
    pairs = zip(cases, predictions, strict=True)
    return _run(sandbox, {SCORE: program}, [{"case": dict(case), "prediction": said} for case, said in pairs], None)


def _run(
    sandbox: Runner, programs: Mapping[str, str], cases: Sequence[Mapping[str, Any]], ask: Ask | None
) -> tuple[list[Outcome], float]:
    outcomes: dict[int, Outcome] = {}
    seconds = 0.0
    driver = (Path(__file__).parent / "programs" / DRIVER).read_text(encoding="utf-8")
    while left := [number for number in range(len(cases)) if number not in outcomes]:
        batch = _Batch(ask, left)
        content = json.dumps([cases[number] for number in left])
        ended = sandbox.run({DRIVER: driver, **programs, CASES: content}, DRIVER, serve=batch.serve)
        seconds += ended.seconds
        outcomes |= batch.outcomes
        undone = [number for number in left if number not in outcomes]
        if undone:
            how = ended.reason or f"the process ended with exit code {ended.exit_code} before the case was done"
            told = "\n".join([*str(ended.stderr).splitlines()[-TRACEBACK_LINES:], how])
            outcomes[undone[0]] = Outcome(None, told)
    return [outcomes[number] for number in range(len(cases))], seconds
