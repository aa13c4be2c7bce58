"""The tables of annotation, made from the cached responses alone: engine, order and interruptions do not affect them.

`annotations.parquet` has a row for every model, image and task; `scores.parquet` a row for every score, as
`merton.study.models` reads them; `log.parquet` the values that differ from run to run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from merton.cognition.final_answer import VERSION, spoken
from merton.cognition.models.base import Answer
from merton.cognition.score import score_batch as cognition_scores
from merton.cognition.text import CIDER_MAXIMUM, Cider
from merton.cognition.unanswered import unanswered
from merton.cognition.words import VERSION as WORDS_VERSION
from merton.decision.score import score_batch as decision_scores
from merton.errors import InfrastructureError, InvalidAnswerError
from merton.results.parquet import parquet_writer, require_pyarrow
from merton.world.action import ActionChunk
from merton_studies.annotate.cache import CachedResponse
from merton_studies.annotate.views import scene_of
from merton_studies.annotate.work import AnnotationRow

ANNOTATIONS, SCORES, LOG = "annotations.parquet", "scores.parquet", "log.parquet"

_KEY_COLUMNS = {"model": "string", "reference": "string", "distortion": "string", "level": "int8", "task": "string"}
_SCORES = ("cognition", "bleu", "rouge_l", "cider", "decision", "position", "rotation", "state")
_COLUMNS: Mapping[str, Mapping[str, str]] = {
    ANNOTATIONS: {
        **_KEY_COLUMNS,
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
        "scene": "string",
        "image": "string",
        "task": "string",
        "dimension": "string",
        "level": "int8",
        "score": "float64",
    },
    LOG: {**_KEY_COLUMNS, "hit": "bool", "latency_s": "float64"},
}
"""Table to its columns and their Arrow types. Scores are 0..1, CIDEr too; those of the other stage are null."""

ANSWERED, FAILED, UNANSWERED = "answered", "failed", "unanswered"
"""Outcomes: the model's answer or action; a failure of the model; no outcome, because something else failed."""


@dataclass(frozen=True)
class ModelResult:
    """The results of one model.

    Attributes:
        rows: one for every image and task, references before their copies.
        responses: by key.
        reasons: why there is no response, by key.
        hits: keys that were in the cache when this run began.
    """

    model: str
    is_policy: bool
    rows: Sequence[AnnotationRow]
    responses: Mapping[str, CachedResponse]
    reasons: Mapping[str, str]
    hits: frozenset[str]


class Tables:
    """Writes the three tables into a folder, whole or not at all, model by model; to be used as a context.

    Raises:
        MissingDependencyError: pyarrow is not installed.
        InfrastructureError: here or later: a file cannot be written.
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
                made = {**about, "final_answer": VERSION, "words": WORDS_VERSION}
                metadata = {} if name == LOG else {"merton": json.dumps(made, sort_keys=True)}
                self._schemas[name] = arrow.schema(fields, metadata=metadata)
                file = self._unfinished(name)
                self._writers[name] = parquet_writer(file, self._schemas[name])
        except OSError as error:
            raise InfrastructureError(f"{out} cannot be written: {error}") from None

    def __enter__(self) -> Tables:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for name, writer in self._writers.items():
            if name != LOG:
                writer.add_key_value_metadata({"merton_cider_corpora": json.dumps(self._corpora, sort_keys=True)})
            writer.close()
            if kind is None:
                self._unfinished(name).replace(self._out / name)
            else:
                self._unfinished(name).unlink()

    def add(self, result: ModelResult) -> None:
        """Score a model's responses and write its rows."""
        values = [value_of(result.responses.get(row.key)) for row in result.rows]
        scores: list[dict[str, float]] = [{} for _ in values]
        pairs = _pairs(result.rows, values)
        if result.is_policy:
            _score_actions(pairs, values, scores)
        elif pairs:
            self._corpora[result.model] = _score_answers(result.rows, pairs, values, scores)
        written, listed, logged = [], [], []
        for row, value, score in zip(result.rows, values, scores, strict=True):
            columns = _key_columns(result.model, row)
            written.append({**columns, **_outcome(value, result.reasons.get(row.key)), **score})
            image = f"{row.shown.reference.id}.{row.shown.distortion}"
            about = {**columns, "scene": scene_of(row.shown.reference), "image": image}
            listed += [{**about, "dimension": name, "score": one} for name, one in score.items()]
            cached = result.responses.get(row.key)
            logged.append({**columns, "hit": row.key in result.hits, "latency_s": cached and cached.latency_s})
        for name, rows in ((ANNOTATIONS, written), (SCORES, listed), (LOG, logged)):
            columns = {column: [row.get(column) for row in rows] for column in _COLUMNS[name]}
            self._writers[name].write_table(self._arrow.table(columns, schema=self._schemas[name]))

    def _unfinished(self, name: str) -> Path:
        return self._out / f"{name}.unfinished"


Value = dict[str, Any] | None


def value_of(cached: CachedResponse | None) -> Value:
    """A response as it is scored: the answer in a VLM's raw text, which is what the cache keeps.

    A refusal, and an answer that was cut off in its reasoning, are none: the value says so in "failed".
    """
    value = json.loads(cached.response) if cached else None
    if value is None or "text" not in value:
        return value
    try:
        answer = spoken(Answer(value["text"], truncated=value.get("truncated", False)))
    except InvalidAnswerError as error:
        return {"failed": str(error), "truncated": True}
    if reason := unanswered(answer.text, None)[0]:
        return {"failed": reason, "truncated": answer.truncated}
    return {**value, "text": answer.text}


def _is_answered(value: Value) -> bool:
    return value is not None and "failed" not in value


def _text(value: Value) -> str | None:
    """The text of an answer; None of an action."""
    return value.get("text") if value else None


def _pairs(rows: Sequence[AnnotationRow], values: Sequence[Value]) -> list[tuple[int, int]]:
    """Pairs of rows (reference, copy) that the model both answered; a reference is also a copy of itself.

    A failure of the model is no answer, and two answers without a word are none, so that the pair has no score, as in a
    trial.
    """
    references: dict[tuple[str, str], int] = {}
    pairs = []
    for place, row in enumerate(rows):
        key = row.shown.reference.id, row.task
        if row.shown.level == 0:
            references.setdefault(key, place)
        reference = references[key]
        both = values[place], values[reference]
        if all(map(_is_answered, both)) and not any(unanswered(*map(_text, both))):
            pairs.append((reference, place))
    return pairs


def _score_answers(
    rows: Sequence[AnnotationRow],
    pairs: Sequence[tuple[int, int]],
    values: Sequence[Value],
    scores: list[dict[str, float]],
) -> str:
    """Fill in scores; gives the version of CIDEr's corpus (every answer to a reference), or "" if that is too small."""
    texts = [(value or {}).get("text", "") for value in values]
    corpus = [
        text
        for row, value, text in zip(rows, values, texts, strict=True)
        if row.shown.level == 0 and _is_answered(value)
    ]
    cider = Cider(corpus) if len(corpus) >= 2 else None
    batch = cognition_scores([texts[one] for one, _ in pairs], [texts[other] for _, other in pairs], cider)
    for index, (_, place) in enumerate(pairs):
        scores[place].update(cognition=batch.total[index], bleu=batch.bleu[index], rouge_l=batch.rouge_l[index])
        if not np.isnan(batch.cider[index]):
            scores[place]["cider"] = batch.cider[index] / CIDER_MAXIMUM
    return cider.version if cider else ""


def _score_actions(pairs: Sequence[tuple[int, int]], values: Sequence[Value], scores: list[dict[str, float]]) -> None:
    """Fill in scores.

    Ours: a chunk in another frame than the reference's scores 0.
    """
    comparable = []
    for one, other in pairs:
        reference, candidate = _chunk(values[one]), _chunk(values[other])
        if candidate.frame != reference.frame:
            scores[other].update(decision=0.0, position=0.0, rotation=0.0, state=0.0)
        else:
            comparable.append((reference, candidate, other))
    batch = decision_scores([one for one, _, _ in comparable], [other for _, other, _ in comparable])
    for index, (_, _, place) in enumerate(comparable):
        scores[place].update(
            decision=batch.total[index],
            position=batch.position[index],
            rotation=batch.rotation[index],
            state=batch.state[index],
        )


def _chunk(value: Value) -> ActionChunk:
    assert value is not None
    return ActionChunk(np.array(value["deltas"], np.float64).reshape(-1, 7), value["step_s"], value["frame"])


def _key_columns(model: str, row: AnnotationRow) -> dict[str, Any]:
    shown = row.shown
    return {
        "model": model,
        "reference": shown.reference.id,
        "distortion": shown.distortion,
        "level": shown.level,
        "task": row.task,
    }


def _outcome(value: Value, reason: str | None) -> dict[str, Any]:
    if value is None:
        return {"outcome": UNANSWERED, "reason": reason or "it was not asked"}
    if "failed" in value:
        return {"outcome": FAILED, "reason": value["failed"], "truncated": value.get("truncated")}
    return {"outcome": ANSWERED, **{"answer" if name == "text" else name: field for name, field in value.items()}}
