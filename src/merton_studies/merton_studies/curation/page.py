"""The page of a curated benchmark: index.html, self-contained, without script and request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from merton.errors import InputError
from merton.files import write_file
from merton.pages.environment import environment
from merton.pages.words import flat
from merton.perception.images import read_image
from merton.results.tables import json_object
from merton_studies.annotate.cases import small_copy, thumbnail
from merton_studies.curation import page_figures
from merton_studies.curation.curated import PAGE, Curated, read_curated
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.curation.speedup import SpeedUp, speed_ups, write_speed_ups
from merton_studies.curation.taxonomy import OTHER

SECTIONS = {
    "dimensions": "Dimensions, before and after",
    "votes": "Votes",
    "history": "How the dimensions came about",
    "redundancy": "What repeats itself",
    "maps": "Maps",
    "examples": "Questions",
    "models": "Models",
    "fidelity": "The benchmarks' own scores",
    "time": "Time",
    "sources": "Sources, licences, provenance",
}
"""Anchor of a section to its heading, in the order of the page."""
KINDS = {"free_text": "free text", "yes_no": "yes or no"}
"""Kinds of answers in words, where their names are none."""
EXAMPLES = 2
"""Kept questions of each dimension that are shown."""
UNDECIDED = 6
"""Questions with the fewest votes for their dimension that are shown."""
FRAMES = 4
"""Frames of a video that are shown, two by two, from the first to the last."""
PAIRS = 5
"""Near-duplicates, and questions in other words, that are shown."""


@dataclass(frozen=True)
class Shown:
    """A question as the page shows it.

    Attributes:
        question: with its text.
        picture: of its first medium, or of `FRAMES` frames of its video, a data URI; None where there is none.
    """

    question: Question
    picture: str | None


def write_page(
    folder: Path, pool: Pool | None = None, scores: Path | None = None, times: tuple[Path, Path] | None = None
) -> Path:
    """Write index.html into the folder of a curation, from the files that are there; returns its path.

    Args:
        folder: of the curation.
        pool: that was sampled from, for the texts and pictures of questions that were dropped; None: they are left out.
        scores: folder of `merton curate evaluate`, for the table of models by dimension; None: without it.
        times: such folders of the pool and of the benchmark, for the table of times and speedup.csv; None: without.

    Raises:
        InputError: no curation, or a file of it that is damaged.
        InfrastructureError: the page cannot be written.
    """
    curated = read_curated(folder)
    everything = pool or curated.pool
    questions = {question.id: question for question in everything.questions}
    text = (
        environment("merton_studies.curation", figures=page_figures, SECTIONS=SECTIONS, KINDS=KINDS, OTHER=OTHER)
        .get_template("curated.html.j2")
        .render(
            curated=curated,
            rows=curated.rows,
            most=max(curated.balance.assigned.values(), default=1),
            other=curated.balance.assigned.get(OTHER, 0),
            examples=_examples(curated),
            undecided=_undecided(curated, questions),
            found=curated.redundancy,
            pair_groups=[
                ("Near-duplicates", _pairs(curated, curated.redundancy, questions, everything.folder)),
                (
                    "In other words",
                    _pairs(curated, curated.redundancy.get("restated", {}), questions, everything.folder),
                ),
            ],
            maps=_maps(curated),
            models=_models(scores, curated),
            fidelities=_fidelities(scores),
            speed=_speed(times, folder),
            by_source=_by_source(curated, everything),
            provenance=flat(curated.made),
            ended=curated.made.get("induction", {}).get("reason", "") if curated.rounds else "",
        )
    )
    write_file(folder / PAGE, text.encode("utf-8", "replace"))
    return folder / PAGE


def _shown(question: Question, folder: Path | None) -> Shown:
    if folder is None or not question.media:
        return Shown(question, None)
    files = [folder / medium.path for medium in question.media]
    if question.video and len(files) >= FRAMES:
        return Shown(question, _frames(files))
    return Shown(question, thumbnail(files[0]))


def _frames(files: Sequence[Path]) -> str | None:
    """Some frames of a video, evenly from the first to the last, in one picture; None if one cannot be read."""
    places = np.linspace(0, len(files) - 1, FRAMES).round().astype(int)
    try:
        images = [read_image(files[place]) for place in places]
    except InputError:
        return None
    height, width = images[0].shape[:2]
    same = [cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA) for image in images]
    return small_copy(np.vstack([np.hstack(same[:2]), np.hstack(same[2:])]))


def _examples(curated: Curated) -> list[tuple[str, list[Shown]]]:
    """Of each dimension the first kept questions of different sources, or of one; those with pictures before others."""
    found = []
    for row in curated.rows:
        own = [one for one in curated.pool.questions if one.meta.get("assigned") == row.dimension.name]
        by_source = {question.source: question for question in reversed(own)}
        chosen = sorted(by_source.values(), key=lambda one: (not one.media, one.id))[:EXAMPLES]
        chosen += [one for one in own if one not in chosen][: EXAMPLES - len(chosen)]
        if chosen:
            found.append((row.dimension.name, [_shown(one, curated.folder) for one in chosen]))
    return found


def _undecided(
    curated: Curated, questions: Mapping[str, Question]
) -> list[tuple[Question, str, list[tuple[str, int]]]]:
    """The questions with the least share of votes: question, dimension, and the votes with their numbers."""
    found = curated.assignment
    order = np.lexsort((np.arange(len(found.ids)), found.share))
    chosen = [int(index) for index in order if found.contested[index] and found.ids[index] in questions][:UNDECIDED]
    return [
        (
            questions[found.ids[index]],
            found.dimension[index],
            Counter(vote or "no valid vote" for vote in found.votes[index]).most_common(),
        )
        for index in chosen
    ]


def _pairs(
    curated: Curated, group: Mapping[str, Any], questions: Mapping[str, Question], folder: Path | None
) -> list[dict[str, Any]]:
    """The first pairs of a group whose texts are known and differ, with pictures."""
    kept = {question.id for question in curated.pool.questions}
    found: list[dict[str, Any]] = []
    for pair in group.get("pairs", ()):
        if len(found) == PAIRS:
            break
        one, other = questions.get(pair["one"]), questions.get(pair["other"])
        if one and other and one.text.lower() != other.text.lower():
            shown = [_shown(one, folder), _shown(other, folder)]
            found.append(
                {"shown": shown, "cosine": pair["cosine"], "kept": [question.id in kept for question in (one, other)]}
            )
    return found


def _maps(curated: Curated) -> list[tuple[str, Any, int, int, float | None]]:
    """Dimension, map, how many questions it has and keeps, and the share of their differences that the map shows."""
    found = []
    for name, points in curated.redundancy.get("maps", {}).items():
        count, kept = len(points["kept"]), sum(points["kept"])
        if count:
            drawn = page_figures.map_of(
                list(zip(points["x"], points["y"], strict=True)),
                points["kept"],
                f"Map of the {count} questions of {name}, {kept} of them kept",
            )
            explained = sum(points["explained"]) if "explained" in points else None
            found.append((name, drawn, count, kept, explained))
    return found


def _models(scores: Path | None, curated: Curated) -> dict[str, Any] | None:
    """scores.json of `merton curate evaluate`, the best first; dimensions in the order of the taxonomy."""
    if scores is None:
        return None
    found = json_object(scores / "scores.json")
    answerers = found["answerers"]
    names = sorted(answerers, key=lambda name: (-(answerers[name]["overall"]["mean"] or 0.0), name))
    there = {dimension for one in answerers.values() for dimension in one["dimensions"]}
    order = [name for name in curated.taxonomy.names if name in there]
    dimensions = [*order, *sorted(there - set(order))]
    return {"names": names, "answerers": answerers, "dimensions": dimensions, "failures": found.get("failures", {})}


def _fidelities(scores: Path | None) -> dict[str, Any]:
    """benchmark_fidelity.json of `merton curate evaluate`, where references were given; else empty."""
    file = scores / "benchmark_fidelity.json" if scores else None
    return json_object(file) if file and file.is_file() else {}


def _speed(times: tuple[Path, Path] | None, folder: Path) -> list[SpeedUp]:
    """The table of times, which is also written; empty without times."""
    if times is None:
        return []
    rows = speed_ups(*times)
    if not rows:
        raise InputError(
            f"no model has times in {times[0]} and in {times[1]}: evaluate the same ones on both; a log has no times"
        )
    write_speed_ups(rows, folder)
    return rows


def _by_source(curated: Curated, everything: Pool) -> list[tuple[Any, int, int]]:
    """Source, its questions in the pool and those kept."""
    before = Counter(question.source for question in everything.questions)
    after = Counter(question.source for question in curated.pool.questions)
    return [(source, before[name], after[name]) for name, source in everything.sources.items()]
