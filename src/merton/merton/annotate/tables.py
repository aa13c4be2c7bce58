"""The tables that come out, made from the cache alone: who worked, in what order and how often it was killed is of no
influence on them.

`annotations.parquet` has a row for every model, image and task; `scores.parquet` the same scores one below the other,
as `merton.study.models` reads them; `log.parquet` what differs from run to run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from merton.annotate.cache import Cached
from merton.annotate.work import Row
from merton.cognition.score import score_batch as cognition_scores
from merton.cognition.text import CIDER_MAXIMUM, Cider
from merton.decision.score import score_batch as decision_scores
from merton.errors import InfrastructureError
from merton.perception.dataset.tables import require_pyarrow
from merton.world.action import ActionChunk

ANNOTATIONS, SCORES, LOG = "annotations.parquet", "scores.parquet", "log.parquet"

_WHICH = {"model": "string", "reference": "string", "distortion": "string", "level": "int8", "task": "string"}
_SCORES = ("cognition", "bleu", "rouge_l", "cider", "decision", "position", "rotation", "state")
_COLUMNS: Mapping[str, Mapping[str, str]] = {
    ANNOTATIONS: {
        **_WHICH,
        "outcome": "string",
        "reason": "string",
        "answer": "string",
        "truncated": "bool",
        "deltas": "list<list<float64>>",
        "step_s": "float64",
        "frame": "string",
        "done": "bool",
        **dict.fromkeys(_SCORES, "float64"),
    },
    SCORES: {
        "model": "string",
        "image": "string",
        "task": "string",
        "dimension": "string",
        "level": "int8",
        "score": "float64",
    },
    LOG: {**_WHICH, "hit": "bool", "latency_s": "float64"},
}
"""Table to its columns and their Arrow types. Scores are 0..1, CIDEr too; those of the other stage are null."""

ANSWERED, FAILED, UNANSWERED = "answered", "failed", "unanswered"
"""Outcomes: the model's answer or action; the model failed; nothing is known, because something else did."""


@dataclass(frozen=True)
class Annotated:
    """What came of one model.

    Attributes:
        model: its name.
        acts: whether it is a VLA.
        rows: one for every image and task, references before their copies.
        responses: key to what was found in the cache.
        reasons: key to why it is not there.
        hits: keys that were there before this run asked.
    """

    model: str
    acts: bool
    rows: Sequence[Row]
    responses: Mapping[str, Cached]
    reasons: Mapping[str, str]
    hits: frozenset[str]


class Tables:
    """Writes the three tables into a folder, whole or not at all, model by model; to be used as a context.

    Raises:
        MissingDependencyError: pyarrow is not installed.
        InfrastructureError: here or later, a file cannot be written.
    """

    def __init__(self, out: Path, about: Mapping[str, Any]) -> None:
        self._arrow = require_pyarrow()
        self._out = out
        self._corpora: dict[str, str] = {}
        self._schemas, self._writers = {}, {}
        arrow = self._arrow
        types = {"list<list<float64>>": arrow.list_(arrow.list_(arrow.float64())), "bool": arrow.bool_()}
        try:
            for name, columns in _COLUMNS.items():
                fields = [(column, types.get(kind, kind)) for column, kind in columns.items()]
                metadata = {} if name == LOG else {"merton": json.dumps(about, sort_keys=True)}
                self._schemas[name] = arrow.schema(fields, metadata=metadata)
                file = self._unfinished(name)
                self._writers[name] = arrow.parquet.ParquetWriter(file, self._schemas[name], compression="zstd")
        except OSError as error:
            raise InfrastructureError(f"{out} cannot be written: {error}") from None

    def __enter__(self) -> Tables:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, writer in self._writers.items():
            if name != LOG:
                writer.add_key_value_metadata({"merton_cider_corpora": json.dumps(self._corpora, sort_keys=True)})
            writer.close()
            if kind is None:
                self._unfinished(name).replace(self._out / name)
            else:
                self._unfinished(name).unlink()

    def add(self, annotated: Annotated) -> None:
        """Score a model's responses and write its rows."""
        values = [_value(annotated.responses.get(row.key)) for row in annotated.rows]
        scores: list[dict[str, float]] = [{} for _ in values]
        pairs = _pairs(annotated.rows, values)
        if annotated.acts:
            _score_actions(pairs, values, scores)
        elif pairs:
            self._corpora[annotated.model] = _score_answers(annotated.rows, pairs, values, scores)
        written, listed, logged = [], [], []
        for row, value, score in zip(annotated.rows, values, scores, strict=True):
            which = _which(annotated.model, row)
            written.append({**which, **_told(value, annotated.reasons.get(row.key)), **score})
            image = f"{row.shown.reference.id}.{row.shown.distortion}"
            listed += [{**which, "image": image, "dimension": name, "score": one} for name, one in score.items()]
            cached = annotated.responses.get(row.key)
            logged.append({**which, "hit": row.key in annotated.hits, "latency_s": cached and cached.latency_s})
        for name, rows in ((ANNOTATIONS, written), (SCORES, listed), (LOG, logged)):
            columns = {column: [row.get(column) for row in rows] for column in _COLUMNS[name]}
            self._writers[name].write_table(self._arrow.table(columns, schema=self._schemas[name]))

    def _unfinished(self, name: str) -> Path:
        return self._out / f"{name}.unfinished"


Value = dict[str, Any] | None


def _value(cached: Cached | None) -> Value:
    return json.loads(cached.response) if cached else None


def _pairs(rows: Sequence[Row], values: Sequence[Value]) -> list[tuple[int, int]]:
    """Places of (reference, copy) where both are known; a reference is its own copy too."""
    references: dict[tuple[str, str], int] = {}
    pairs = []
    for place, row in enumerate(rows):
        which = row.shown.reference.id, row.task
        if row.shown.level == 0:
            references.setdefault(which, place)
        reference = references[which]
        if values[place] is not None and values[reference] is not None:
            pairs.append((reference, place))
    return pairs


def _score_answers(
    rows: Sequence[Row], pairs: Sequence[tuple[int, int]], values: Sequence[Value], scores: list[dict[str, float]]
) -> str:
    """Returns the version of CIDEr's corpus, which is every answer to a reference; "" if that is too small for one.

    A model that failed has said nothing, and that is scored, as in a trial.
    """
    texts = [(value or {}).get("text", "") for value in values]
    corpus = [
        text for row, value, text in zip(rows, values, texts, strict=True) if row.shown.level == 0 and value is not None
    ]
    cider = Cider(corpus) if len(corpus) >= 2 else None
    found = cognition_scores([texts[one] for one, _ in pairs], [texts[other] for _, other in pairs], cider)
    for index, (_, place) in enumerate(pairs):
        scores[place].update(cognition=found.total[index], bleu=found.bleu[index], rouge_l=found.rouge_l[index])
        if not np.isnan(found.cider[index]):
            scores[place]["cider"] = found.cider[index] / CIDER_MAXIMUM
    return cider.version if cider else ""


def _score_actions(pairs: Sequence[tuple[int, int]], values: Sequence[Value], scores: list[dict[str, float]]) -> None:
    """Ours: a policy that fails on a copy alone is as unfaithful as can be; one that fails on the reference has nothing
    to be faithful to. The same if it changes the frame it speaks in, which nothing can compare."""
    chunks = [_chunk(value) for value in values]
    comparable = []
    for one, other in pairs:
        reference, candidate = chunks[one], chunks[other]
        if reference is None:
            continue
        if candidate is None or candidate.frame != reference.frame:
            scores[other].update(decision=0.0, position=0.0, rotation=0.0, state=0.0)
        else:
            comparable.append((reference, candidate, other))
    found = decision_scores([one for one, _, _ in comparable], [other for _, other, _ in comparable])
    for index, (_, _, place) in enumerate(comparable):
        scores[place].update(
            decision=found.total[index],
            position=found.position[index],
            rotation=found.rotation[index],
            state=found.state[index],
        )


def _chunk(value: Value) -> ActionChunk | None:
    if not value or "deltas" not in value:
        return None
    return ActionChunk(np.array(value["deltas"], np.float64).reshape(-1, 7), value["step_s"], value["frame"])


def _which(model: str, row: Row) -> dict[str, Any]:
    shown = row.shown
    return {
        "model": model,
        "reference": shown.reference.id,
        "distortion": shown.distortion,
        "level": shown.level,
        "task": row.task,
    }


def _told(value: Value, reason: str | None) -> dict[str, Any]:
    if value is None:
        return {"outcome": UNANSWERED, "reason": reason or "it was not asked"}
    if "failed" in value:
        return {"outcome": FAILED, "reason": value["failed"]}
    return {"outcome": ANSWERED, **{"answer" if name == "text" else name: one for name, one in value.items()}}
