"""A benchmark's own scores as the reference of fidelity: of its own scorer, run in the sandbox, or from a table.

Both score the predictions of an evaluation, the text that Merton's scoring program had too. The difference to
`merton_studies.harness.reference`: that is Merton's second implementation of Merton's rules, this is the benchmark's.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from merton.errors import InputError, UnknownNameError
from merton.files import file_sha256, write_file
from merton.results.tables import file_bytes, name_in, number_in, plain_text, read_rows, utf8_text
from merton.results.text import one_line
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.harness.log_files import Entry
from merton_studies.harness.logs import Places
from merton_studies.harness.pipeline import case_for_score
from merton_studies.harness.running import Runner, run_reference
from merton_studies.harness.scores import ScoredAnswer

BATCH = 250
"""Predictions of a process."""
TABLE_COLUMNS = ("item", "model", "score")
_FORM = re.compile(r"(?P<source>[^=]+)=(?P<file>.+\.py):(?P<function>[A-Za-z_]\w*)", re.DOTALL)

Key = tuple[str, str]
"""Answerer and question."""


@dataclass(frozen=True)
class Marks:
    """The reference's scores.

    Attributes:
        scores: answerer and question to 0..1.
        errors: answerer and question to the reason why the scorer gave none.
    """

    scores: Mapping[Key, float]
    errors: Mapping[Key, str] = field(default_factory=dict)


class Reference(Protocol):
    """A reference.

    Attributes:
        sources: the benchmarks whose questions it scores.
        about: whose it is, its file and hash; JSON values.
    """

    @property
    def sources(self) -> tuple[str, ...]: ...
    @property
    def about(self) -> dict[str, Any]: ...

    def marks(self, rows: Sequence[ScoredAnswer], sandbox: Runner, kept: Path) -> Marks:
        """The scores of predictions about its benchmarks.

        Args:
            rows: with a prediction, of its benchmarks.
            sandbox: where a scorer runs.
            kept: folder in which scores of batches are kept.
        """


@dataclass(frozen=True)
class Scorer:
    """A benchmark's own scorer: a function of Python (question, prediction) -> 0..1, of the standard library alone.

    `question` is a dict: id, text, situation, answer_kind, choices, unit, answer, also, tolerance, pictures (a number),
    video, meta.
    True is 1 and False 0.
    """

    source: str
    file: str
    function: str
    program: str

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)

    @property
    def about(self) -> dict[str, Any]:
        digest = hashlib.sha256(self.program.encode()).hexdigest()
        return {"whose": "the benchmark's own scorer", "file": self.file, "function": self.function, "sha256": digest}

    def marks(self, rows: Sequence[ScoredAnswer], sandbox: Runner, kept: Path) -> Marks:
        """See `Reference.marks`."""
        scores, errors = {}, {}
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            for row, one in zip(batch, self._batch(batch, sandbox, kept), strict=True):
                key = (row.answerer, row.question.id)
                if one["error"]:
                    errors[key] = one["error"]
                else:
                    scores[key] = one["value"]
        return Marks(scores, errors)

    def _batch(self, batch: Sequence[ScoredAnswer], sandbox: Runner, kept: Path) -> list[dict[str, Any]]:
        cases = [_case(row.question) for row in batch]
        said = [row.prediction for row in batch]
        parts = json.dumps([self.about, cases, said], sort_keys=True)
        file = kept / f"reference-{hashlib.sha256(parts.encode()).hexdigest()}.json"
        if file.is_file():
            return list(json.loads(file.read_bytes()))
        outcomes = run_reference(sandbox, self.program, self.function, cases, said)
        found = [{"value": outcome.value, "error": outcome.error} for outcome in outcomes]
        write_file(file, (json.dumps(found) + "\n").encode())
        return found


def _case(question: Question) -> dict[str, Any]:
    return {**case_for_score(question), "id": question.id, "meta": dict(question.meta)}


@dataclass(frozen=True)
class ScoreTable:
    """Scores that a benchmark's own program gave, in a table: item, model, score."""

    file: str
    sha256: str
    sources: tuple[str, ...]
    scores: Mapping[Key, float]

    @property
    def about(self) -> dict[str, Any]:
        return {"whose": "the benchmark's own scores", "file": self.file, "sha256": self.sha256}

    def marks(self, rows: Sequence[ScoredAnswer], sandbox: Runner, kept: Path) -> Marks:
        """See `Reference.marks`."""
        keys = [(row.answerer, row.question.id) for row in rows]
        return Marks({key: self.scores[key] for key in keys if key in self.scores})


def read_scorer(given: str, pool: Pool) -> Scorer:
    """The scorer in BENCHMARK=FILE.py:function.

    Raises:
        InputError: another form, no such file, no program of Python, or one without such a function.
        UnknownNameError: the pool has no such benchmark.
    """
    found = _FORM.fullmatch(given)
    if not found:
        raise InputError(f"--scorer is {given!r}; write BENCHMARK=FILE.py:function")
    source, path, function = found["source"], Path(found["file"]), found["function"]
    if source not in pool.sources:
        raise UnknownNameError("benchmark", source, list(pool.sources))
    program = utf8_text(str(path), file_bytes(path))
    try:
        defined = [node.name for node in ast.parse(program).body if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{path} is no program of Python: {one_line(error, 120)}") from None
    if function not in defined:
        raise InputError(f"{path} defines no function {function!r}, only: {', '.join(defined) or 'none'}")
    return Scorer(source, path.name, function, program)


def read_reference_scores(path: Path, pool: Pool) -> ScoreTable:
    """The scores in a table with item, model and score (0..1), and perhaps benchmark.

    Raises:
        InputError: as for `read_rows`; a score outside 0..1, one that stands twice, or a table about other questions.
    """
    scores: dict[Key, float] = {}
    sources: dict[str, None] = {}
    places = {"": Places(pool)} | {source: Places(pool, source) for source in pool.sources}
    for where, row in read_rows(path, TABLE_COLUMNS, ("benchmark",)):
        source = plain_text(row.get("benchmark"))
        if source not in places:
            raise InputError(f"{where}: {UnknownNameError('benchmark', source, list(pool.sources))}")
        question = places[source].of(Entry(where, (plain_text(row["item"]),), ""))
        if question is None:
            continue
        key = (name_in(where, row, "model"), question.id)
        if key in scores:
            raise InputError(f"{where}: {key[0]} has a score for {key[1]} already")
        scores[key] = number_in(where, row, "score", 0.0, 1.0)
        sources[question.source] = None
    if not scores:
        raise InputError(
            f"{path}: none of its rows is about a question of the benchmark, such as {places[''].example!r}"
        )
    return ScoreTable(path.name, file_sha256(path), tuple(sources), scores)
