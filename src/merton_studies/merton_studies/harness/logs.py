"""Predictions that other programs logged, as an answerer: scored without a model being asked.

Read are the samples files of lmms-eval (`*_samples_*.jsonl` with doc_id, target, filtered_resps, resps, doc), the files
of VLMEvalKit (index, question, A, B, ..., answer, prediction), and plain tables of an identifier and `prediction`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.errors import InputError, UnknownNameError
from merton.files import file_sha256
from merton.results.text import counted, one_line
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.harness.log_files import Entry, read_log
from merton_studies.harness.measures import exact_match
from merton_studies.harness.reply import Reply

SHOWN = 60
"""Characters of a text in a message."""


@dataclass(frozen=True)
class Logged:
    """The predictions of one model in logs; see `Answerer`.

    Attributes:
        name: of the model.
        identity: files with their hashes and forms.
        texts: question to its raw prediction.
        reasons: question to the reason why it has no prediction.
        told: sentences about all that did not fit.
    """

    name: str
    identity: dict[str, Any]
    texts: Mapping[str, str]
    reasons: Mapping[str, str]
    told: tuple[str, ...] = ()
    cost_per_1000: float = 0.0

    def answer(self, question: Question, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> Reply:
        """The prediction of the log, whatever the prompt; `Reply.unasked` where it has none."""
        if question.id in self.texts:
            return Reply(self.texts[question.id])
        return Reply("", unasked=self.reasons.get(question.id, "the log has no prediction"))


class Places:
    """The questions of a pool by what a file of another program may call them: SOURCE/ID, or ID alone.

    Args:
        source: the benchmark that the file is about; "" where ids alone must do.

    Raises:
        UnknownNameError: the pool has no such benchmark.
    """

    def __init__(self, pool: Pool, source: str = "") -> None:
        if source and source not in pool.sources:
            raise UnknownNameError("benchmark", source, list(pool.sources))
        self._by_name: dict[str, list[Question]] = defaultdict(list)
        for question in pool.questions:
            if not source or question.source == source:
                own = question.id.removeprefix(f"{question.source}/")
                for name in dict.fromkeys((question.id, own)):
                    self._by_name[name].append(question)

    def of(self, entry: Entry) -> Question | None:
        """The question that an entry is about; None if there is none, or its text or choices are others.

        Raises:
            InputError: several questions have its id, and nothing tells which is meant.
        """
        found = next((self._by_name[name] for name in entry.ids if name in self._by_name), [])
        fitting = [question for question in found if _fits(entry, question)]
        if len(fitting) > 1:
            sources = ", ".join(question.source for question in fitting)
            raise InputError(
                f"{entry.where}: {one_line(entry.ids[0], SHOWN)!r} is a question of several benchmarks: {sources}; "
                "name the one that the file is about before it, as BENCHMARK:FILE"
            )
        return fitting[0] if fitting else None

    @property
    def example(self) -> str:
        """An id of the pool."""
        return next(iter(self._by_name), "none")


def _fits(entry: Entry, question: Question) -> bool:
    """Whether the entry's own text and choices, where it has them, are the question's."""
    if entry.text and _plain(entry.text) != _plain(question.text):
        return False
    return not entry.choices or list(map(_plain, entry.choices)) == list(map(_plain, question.choices))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def split_source(given: str, pool: Pool) -> tuple[str, Path]:
    """The benchmark, or "", and the file in BENCHMARK:FILE or FILE; a benchmark is one of the pool's sources."""
    before, colon, after = given.partition(":")
    return (before, Path(after)) if colon and before in pool.sources else ("", Path(given))


def logged(given: Sequence[str], pool: Pool) -> list[Logged]:
    """The answerers of --predictions.

    Args:
        given: NAME=FILE or NAME=BENCHMARK:FILE each; the files of one name are joined.
        pool: whose questions the predictions answer.

    Raises:
        InputError: another form, a file that is no log, none of whose rows is about a question, or whose right answers
            are others than the pool's.
        UnknownNameError: a benchmark that the pool does not have.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for one in given:
        name, equals, file = one.partition("=")
        if not (name.strip() and equals and file):
            raise InputError(f"--predictions is {one!r}; write NAME=FILE, or NAME=BENCHMARK:FILE")
        files[name.strip()].append(file)
    return [_logged(name, several, pool) for name, several in files.items()]


def _logged(name: str, files: Sequence[str], pool: Pool) -> Logged:
    said: dict[str, list[Entry]] = defaultdict(list)
    told: list[str] = []
    about = []
    for given in files:
        source, path = split_source(given, pool)
        form, entries = read_log(path)
        about.append({"file": path.name, "sha256": file_sha256(path), "form": form, "benchmark": source})
        told += _placed(name, path, entries, Places(pool, source), said)
    texts, reasons, twice = {}, {}, []
    for question, several in said.items():
        different = {(entry.prediction, entry.failure) for entry in several}
        if len(different) > 1:
            reasons[question] = f"the log has {len(several)} predictions that differ: {_where(several)}"
        elif several[0].failure:
            reasons[question] = several[0].failure
        else:
            texts[question] = several[0].prediction
        twice += [question] if len(several) > 1 else []
    if twice:
        unlike = sum("that differ" in reasons.get(question, "") for question in twice)
        told.append(
            f"{name}: {counted(len(twice), 'question')} with several predictions, such as {twice[0]} "
            f"({_where(said[twice[0]])}); {unlike} of them differ and are unanswered"
        )
    asked = [question.id for question in pool.questions if question.answer]
    missing = [question for question in asked if question not in said]
    if missing:
        told.append(f"{name}: {counted(len(missing), 'question')} without a prediction, such as {missing[0]}")
    where = ", ".join(Path(one["file"]).name for one in about)
    reasons |= dict.fromkeys(missing, f"no prediction in {where}")
    return Logged(name, {"predictions": about}, texts, reasons, tuple(told))


def _placed(name: str, path: Path, entries: Sequence[Entry], places: Places, said: dict[str, list[Entry]]) -> list[str]:
    """Adds the entries of a file to what was said about each question; returns what did not fit."""
    unmatched: list[Entry] = []
    unlike: list[Entry] = []
    judged = 0
    for entry in entries:
        question = places.of(entry)
        if question is None:
            unmatched.append(entry)
            continue
        said[question.id].append(entry)
        if entry.target and question.answer:
            judged += 1
            unlike += [] if exact_match(question, entry.target) else [entry]
    if len(unmatched) == len(entries):
        raise InputError(
            f"{path}: none of its {counted(len(entries), 'row')} is about a question of the benchmark; the first is "
            f"about {one_line(entries[0].ids[0], SHOWN)!r}, and the benchmark has, for one, {places.example!r}"
        )
    if 2 * len(unlike) > judged:
        raise InputError(
            f"{unlike[0].where}: the right answer is {one_line(unlike[0].target, SHOWN)!r} there and another in the "
            f"benchmark, as in {len(unlike)} of {judged} rows: the file counts other questions"
        )
    told = []
    if unmatched:
        first = unmatched[0]
        told.append(
            f"{name}: {counted(len(unmatched), 'row')} of {path.name} about no question of the benchmark, such as "
            f"{one_line(first.ids[0], SHOWN)!r} ({first.where})"
        )
    if unlike:
        told.append(
            f"{name}: {counted(len(unlike), 'row')} of {path.name} with another right answer than the benchmark's, "
            f"such as {one_line(unlike[0].target, SHOWN)!r} ({unlike[0].where})"
        )
    return told


def _where(entries: Sequence[Entry]) -> str:
    places = Counter(entry.where for entry in entries)
    return "; ".join(list(places)[:3])
