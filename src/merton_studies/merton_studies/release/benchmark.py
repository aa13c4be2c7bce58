"""The questions of a curated benchmark, with their pictures inside."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from merton.errors import InputError, UnknownNameError
from merton.pages.words import flat
from merton_studies.curation.curated import Curated, read_curated
from merton_studies.curation.pool import media_file
from merton_studies.curation.question import Question
from merton_studies.release.licences import licence_named
from merton_studies.release.part import DatasetPart, LeftOut, SourceLine
from merton_studies.release.table import TEST, Field, Row, Table

QUESTIONS = "questions"
FIELDS = (
    Field("id", "string", "of the question"),
    Field("source", "string", "the benchmark that it is from"),
    Field("scene", "string", "what it is about: the unit of every interval"),
    Field("dimension", "string", "the capability it needs, by votes"),
    Field("situation", "string", "text before the question; may be empty"),
    Field("text", "string", "the question"),
    Field("answer_kind", "string", "choice, number, point, yes_no, free_text or actions"),
    Field("choices", "string", "to choose from; empty for other kinds", depth=1),
    Field("answer", "string", "the right one; a point is a polygon in shares of width and height"),
    Field("also", "string", "further right answers", depth=1),
    Field("unit", "string", "of a number; empty where it has none"),
    Field("images", "image", "the pictures, in their order", depth=1),
    Field("video", "bool", "the pictures are frames of one video"),
    Field("times_s", "float64", "of each picture in its video file [s]; empty for other pictures", depth=1),
    Field("twin_of", "string", "the question that this one repeats in other words; mostly empty"),
    Field("meta", "string", "anything else, as JSON"),
)


def benchmark(folder: Path) -> DatasetPart:
    """The questions of a folder of `merton curate build`; those of sources without a known licence are left out.

    Raises:
        InputError: a file is missing or damaged, or no question may be published.
    """
    curated = read_curated(folder)
    part, forbidden = DatasetPart(), _without_licence(curated)
    for question in curated.pool.questions:
        if question.source in forbidden:
            part.left_out.append(LeftOut(QUESTIONS, question.id, forbidden[question.source]))
    kept = [question for question in curated.pool.questions if question.source not in forbidden]
    if not kept:
        raise InputError(f"nothing of {str(folder)!r} may be published: {next(iter(forbidden.values()))}")
    part.tables.append(Table(QUESTIONS, "A question about pictures.", FIELDS, lambda: _rows(folder, kept)))
    counts = Counter(question.source for question in kept)
    for name, source in curated.pool.sources.items():
        if counts[name]:
            part.sources.append(SourceLine(name, f"questions: {counts[name]}", source.licence, source.citation))
    part.made.append(
        f"`merton curate build` (the method is A2Eval's) kept {len(curated.pool.questions)} of {curated.total} "
        f"questions: each was assigned to one of {len(curated.rows)} dimensions by votes, and of each dimension "
        "different ones are kept."
    )
    dimensions = Counter(question.meta.get("assigned", "") for question in kept)
    part.shares.append(
        ("questions by dimension", ", ".join(f"{name} {count}" for name, count in sorted(dimensions.items())))
    )
    part.provenance += flat(curated.made, "curation · ")
    part.provenance.append(("curation · entropy of the dimensions, 1 is even", f"{curated.entropy_kept:.3f}"))
    part.limits += [
        "Which dimension a question needs is what voters say.",
        "The right answers stand beside the questions: a model that was trained on pages of the web may know them.",
    ]
    part.floors += _floors(kept)
    return part


def _without_licence(curated: Curated) -> dict[str, str]:
    """Source to why its questions may not be published."""
    found = {}
    for name, source in curated.pool.sources.items():
        try:
            licence_named(source.licence)
        except UnknownNameError:
            has = f"the licence {source.licence!r}, which is not on the list" if source.licence else "no known licence"
            found[name] = f"its source {name} has {has}"
    return found


def _floors(questions: list[Question]) -> list[tuple[str, str]]:
    """Shares of right answers by guessing, of the kinds that can be guessed."""
    choices = [1 / len(question.choices) for question in questions if question.choices]
    yes_no = Counter(question.answer for question in questions if question.answer_kind == "yes_no")
    found = []
    if choices:
        found.append((f"a guess among the choices, {len(choices)} questions", f"{sum(choices) / len(choices):.3f}"))
    if total := sum(yes_no.values()):
        share = max(yes_no.values()) / total
        found.append((f"always the more frequent of yes and no, {total} questions", f"{share:.3f}"))
    return found


def _rows(folder: Path, questions: list[Question]) -> Iterator[tuple[str, Row]]:
    for one in questions:
        pictures = []
        for medium in one.media:
            content = media_file(folder, medium.path).read_bytes()
            if hashlib.sha256(content).hexdigest() != medium.sha256:
                raise InputError(f"{folder / medium.path} has changed since the pool was made")
            pictures.append({"bytes": content, "path": medium.path})
        texts = {name: getattr(one, name) for name in ("id", "source", "situation", "text", "answer_kind", "answer")}
        rest = {name: getattr(one, name) for name in ("unit", "video", "twin_of")}
        lists = {"choices": list(one.choices), "also": list(one.also), "images": pictures}
        lists["times_s"] = [medium.time_s for medium in one.media if medium.time_s is not None]
        meta = json.dumps(one.meta, sort_keys=True, ensure_ascii=False)
        named = {"scene": one.unit_of_intervals, "dimension": one.meta.get("assigned", one.dimension), "meta": meta}
        yield TEST, {**texts, **rest, **lists, **named}
