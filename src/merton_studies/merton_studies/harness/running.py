"""Programs of a pipeline run on many cases inside the sandbox, a batch per process.

A small driver of ours runs beside the program, hands it one case after the other and tells this process each result
over the pipe of `Sandbox.run`, which is also the only way of `ask` to a model. The program can write to that pipe, too,
so nothing that comes out of it is believed: see `merton_studies.harness.requests`. A program that ends its process on a
case fails on that case alone: the rest of the batch is run again without it, for as long as the bounds below allow.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from merton.cognition.final_answer import final_answer
from merton_studies.harness.pipeline import INFER, SCORE
from merton_studies.harness.requests import Asked, RefusedError, Told, predicted, read_request, scored

TRACEBACK_LINES = 40
ANSWER_LIMIT = 4000
"""Characters of a model's answer that a program sees. Ours."""
ASKS = 20
"""Most questions of a program about one case, those that the cache answers too. Ours: a vote among several answers
needs a handful."""
ENDED_STARTS = 3
"""Number of ends at a limit after which a program is not started again in a batch. Ours: two cases may hang."""
LOST_S = 300.0
"""Time of a program's unfinished processes, without the model's, after which it is not started again [s]. Ours."""
DRIVER, CASES = "driver.py", "cases.json"

Ask = Callable[[int, str, int, "tuple[int, ...] | None"], str]
"""(number of the case in the batch, prompt, max_tokens, pictures or None for all) to the model's raw answer."""


class Ended(Protocol):
    """The parts of `merton_studies.harness.sandbox.Ended` that are used here."""

    exit_code: int
    reason: str
    stderr: str
    seconds: float


class Runner(Protocol):
    """The part of `merton_studies.harness.sandbox.Sandbox` that is used here; tests have a stand-in."""

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
        value: a prediction (text of at most 4,000 characters) or a score (0..1); None where the program failed.
        error: why it failed: the last lines of the traceback, or how the process ended; "" where it did not.
    """

    value: Any
    error: str = ""


@dataclass
class _Batch:
    """The conversation with one process about some cases.

    Attributes:
        numbers: of the cases in the whole batch, in the order of the process's own.
        read: a result as it came to the value of an `Outcome`.
        asked: questions by number, over all processes of the batch.
        asking_s: time of the model [s].
    """

    ask: Ask | None
    numbers: Sequence[int]
    read: Callable[[Any], Any]
    asked: Counter[int]
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    asking_s: float = 0.0

    def serve(self, line: bytes) -> bytes:
        """Answer a line: a result is noted, a question is put to the model; anything else is refused."""
        try:
            request = read_request(line, len(self.numbers))
            number = self.numbers[request.case]
            if isinstance(request, Told):
                self.outcomes.setdefault(number, self._outcome(request))
                return b"{}"
            return json.dumps({"text": self._answer(number, request)}).encode()
        except RefusedError as refusal:
            return json.dumps({"refused": str(refusal)}).encode()

    def _outcome(self, told: Told) -> Outcome:
        if told.error:
            return Outcome(None, told.error)
        try:
            return Outcome(self.read(told.value))
        except RefusedError as refusal:
            return Outcome(None, str(refusal))

    def _answer(self, number: int, asked: Asked) -> str:
        if self.ask is None:
            raise RefusedError("a scoring program has no model")
        self.asked[number] += 1
        if self.asked[number] > ASKS:
            raise RefusedError(f"a program may ask at most {ASKS} times about a case")
        began_s = time.monotonic()
        try:
            raw = self.ask(number, asked.prompt, asked.max_tokens, asked.pictures)
        finally:
            self.asking_s += time.monotonic() - began_s
        return final_answer(raw)[:ANSWER_LIMIT]


def run_infer(
    sandbox: Runner, program: str, cases: Sequence[Mapping[str, Any]], ask: Ask
) -> tuple[list[Outcome], float]:
    """The result of `predict` of a program for each case, and the seconds that it took.

    Args:
        sandbox: where it runs.
        program: text of infer.py.
        cases: as of `case_for_infer`; nothing else of a question enters the sandbox.
        ask: the model. Of its raw answers the program sees the `final_answer`.
    """
    return _run(sandbox, {INFER: program}, [{"case": dict(case)} for case in cases], ask, predicted)


def run_score(
    sandbox: Runner, program: str, cases: Sequence[Mapping[str, Any]], predictions: Sequence[str]
) -> tuple[list[Outcome], float]:
    """The result of `score` of a program for each case and prediction, and the seconds that it took."""
    pairs = zip(cases, predictions, strict=True)
    given = [{"case": dict(case), "prediction": said} for case, said in pairs]
    return _run(sandbox, {SCORE: program}, given, None, scored)


def run_reference(
    sandbox: Runner, program: str, function: str, cases: Sequence[Mapping[str, Any]], predictions: Sequence[str]
) -> list[Outcome]:
    """The result of a benchmark's own scorer for each case and prediction; True is 1 and False 0.

    Args:
        sandbox: where it runs.
        program: text of its file.
        function: of it, (question, prediction) -> 0..1.
        cases, predictions: see `run_score`.
    """
    given = [{"case": dict(case), "prediction": said} for case, said in zip(cases, predictions, strict=True)]
    files = {SCORE: _ADAPTER.format(function=function), "benchmark_scorer.py": program}
    return _run(sandbox, files, given, None, scored)[0]


_ADAPTER = """import benchmark_scorer


def score(case, prediction):
    value = benchmark_scorer.{function}(case, prediction)
    return float(value) if isinstance(value, bool) else value
"""


def _run(
    sandbox: Runner,
    programs: Mapping[str, str],
    cases: Sequence[Mapping[str, Any]],
    ask: Ask | None,
    read: Callable[[Any], Any],
) -> tuple[list[Outcome], float]:
    outcomes: dict[int, Outcome] = {}
    asked: Counter[int] = Counter()
    seconds = lost_s = 0.0
    ended_starts = 0
    driver = (Path(__file__).parent / "programs" / DRIVER).read_text(encoding="utf-8")
    while left := [number for number in range(len(cases)) if number not in outcomes]:
        batch = _Batch(ask, left, read, asked)
        content = json.dumps([cases[number] for number in left])
        ended = sandbox.run({DRIVER: driver, **programs, CASES: content}, DRIVER, serve=batch.serve)
        seconds += ended.seconds
        outcomes |= batch.outcomes
        undone = [number for number in left if number not in outcomes]
        if not undone:
            break
        how = ended.reason or f"the process ended with exit code {ended.exit_code} before the case was done"
        told = "\n".join([*str(ended.stderr).splitlines()[-TRACEBACK_LINES:], how])
        outcomes[undone[0]] = Outcome(None, told)
        lost_s += ended.seconds - batch.asking_s
        ended_starts += ended.exit_code < 0
        if ended_starts >= ENDED_STARTS or lost_s > LOST_S:
            why = (
                f"the program was not started again for this case, because it had ended too often; the last time: {how}"
            )
            outcomes |= {number: Outcome(None, why) for number in undone[1:]}
    return [outcomes[number] for number in range(len(cases))], seconds
