"""Questions with a dimension each, which the question may need or not (A2Eval, appendix D.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from merton.errors import InputError
from merton.progress import OnProgress
from merton_studies.people.item import Item
from merton_studies.people.project import Loaded
from merton_studies.people.source_settings import Curation, Suggestions
from merton_studies.people.sources.prepared import Prepared, image_prepared, in_parallel, reel_prepared

if TYPE_CHECKING:
    from merton_studies.curation.assignment import Assignment

VIDEO_HZ = 2.0
"""Frames a second of a question's video, whose pool does not say it."""


def items_of(loaded: Loaded, settings: Curation, on_progress: OnProgress) -> list[Item]:
    """The items, by the seeded draw of `merton_studies.curation.sheet.draw`: as many of a dimension as of others.

    Pictures have the roles "image", "image2" and so on; the frames of a video are one reel, "video".

    A question that the agent of `suggestions` said something of has the text "suggestion", and the facts `suggestion`
    and `hidden` (share of the answers without it).

    Raises:
        InputError: no such folder, nothing to draw from, or suggestions that cannot be read or are about none of it.
        MissingDependencyError: pyarrow is not installed.
    """
    from merton_studies.curation.assignment import read_assignment
    from merton_studies.curation.pool import ABOUT, media_file, read_pool
    from merton_studies.curation.sheet import draw

    folder = loaded.place(settings.folder)
    for name in (ABOUT, "assignments.parquet"):
        if not (folder / name).is_file():
            raise InputError(f"{folder} is no curated benchmark: it has no {name}; `merton curate build` makes one")
    pool, assignment = read_pool(folder), read_assignment(folder / "assignments.parquet")
    questions = {question.id: question for question in pool.questions}
    rows = draw(assignment, list(questions), settings.per_dimension, loaded.project.seed)
    dimensions = {dimension.name: dimension for dimension in assignment.taxonomy.dimensions}
    assigned = dict(zip(assignment.ids, assignment.dimension, strict=True))

    def prepared(name: str) -> dict[str, Prepared]:
        question = questions[name]
        files = [media_file(pool.folder, medium.path) for medium in question.media]
        if question.video and files:
            return {"video": reel_prepared(files, VIDEO_HZ, loaded.media)}
        return {_role(place): image_prepared(file, loaded.media) for place, file in enumerate(files, 1)}

    suggested = {} if settings.suggestions is None else _suggested(loaded, settings.suggestions, assignment, rows)
    used = sorted({name for name, _ in rows})
    media = dict(zip(used, in_parallel(prepared, used, on_progress), strict=True))
    found = []
    for name, dimension in rows:
        question, about = questions[name], dimensions[dimension]
        texts = {
            "title": about.title or about.name,
            "definition": about.definition,
            "situation": question.situation,
            "question": question.text,
            "choices": "\n".join(question.choices),
        }
        facts = {
            "question": name,
            "dimension": dimension,
            "assigned": "yes" if assigned[name] == dimension else "no",
        }
        if settings.suggestions is not None and name in suggested:
            texts["suggestion"] = facts["suggestion"] = "yes" if dimension in suggested[name] else "no"
            facts["hidden"] = str(settings.suggestions.hidden)
        found.append(
            Item(
                f"{dimension}: {name}",
                question.unit_of_intervals,
                {role: medium(role) for role, medium in media[name].items()},
                {key: text for key, text in texts.items() if text},
                facts,
            )
        )
    return found


def _suggested(
    loaded: Loaded, settings: Suggestions, assignment: Assignment, rows: Sequence[tuple[str, str]]
) -> dict[str, frozenset[str]]:
    from merton_studies.curation.suggestions import read_suggestions

    file = loaded.place(settings.file)
    found = read_suggestions(file, assignment.taxonomy)
    if not any(name in found for name, _ in rows):
        raise InputError(f"{file}: has no suggestion for any question of the study; ids are like {rows[0][0]!r}")
    return found


def _role(place: int) -> str:
    return "image" if place == 1 else f"image{place}"
