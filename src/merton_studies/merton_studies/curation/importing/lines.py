"""JSON Lines: Merton's own form of a pool as text, a question a line. OpenEQA and SQA3D as they were published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from merton.errors import InputError, did_you_mean
from merton.perception.videos import CONTAINERS
from merton.progress import OnProgress
from merton.results.tables import file_bytes, json_entries, json_objects, json_value
from merton.results.tables import plain_text as plain
from merton_studies.curation.importing.answers import answers_in, open_answers
from merton_studies.curation.importing.media import MediaFolder
from merton_studies.curation.importing.questions import Refusals, question_of, stamps_in
from merton_studies.curation.question import BenchmarkSource, Medium, Question

Placed = tuple[str, dict[str, Any]]
"""The place of an object, such as "x.jsonl, line 3", and the object."""

OPEN_EQA = BenchmarkSource(
    name="OpenEQA",
    description="Questions of people about what a robot or glasses have seen in real homes and offices, with open "
    "answers in seven categories.",
    licence="MIT",
    url="https://open-eqa.github.io",
    citation="Majumdar et al., OpenEQA: Embodied Question Answering in the Era of Foundation Models, CVPR 2024",
)
SQA3D = BenchmarkSource(
    name="SQA3D",
    description="Questions about a scanned room, asked from a place in it that a sentence describes.",
    licence="CC-BY-4.0",
    url="https://sqa3d.github.io",
    citation="Ma et al., SQA3D: Situated Question Answering in 3D Scenes, ICLR 2023",
)
STAMPS = "stamps"
"""Key of a line with the seconds of its video at which frames are taken; it is no part of a question."""
_EQA_KEYS = ("id", "question_id", "question", "answer", "extra_answers", "category", "scene", "episode_history")
_SQA_KEYS = ("id", "question_id", "question", "situation", "answer", "scene", "scene_id", "alternative_situation")


def own_lines(path: Path, source: str, media: MediaFolder, on_progress: OnProgress) -> list[Question]:
    """Questions of JSON Lines with the keys of `Question`; `media` is a list of paths, relative to the file.

    A path may be that of a video, or of a folder of its frames; `stamps` has the seconds of a video at which frames are
    taken. `video` follows from that, unless it is given. A line without a source is of `source`.

    Raises:
        InputError: a line that is no question, an id that stands twice, a missing picture; with file and line.
    """
    rows = json_lines(path)
    seen, found = Refusals(), []
    for number, (where, row) in enumerate(rows, 1):
        _check_keys(row, (*Question.model_fields, STAMPS), where)
        paths = row.get("media", [])
        if not isinstance(paths, list) or not all(isinstance(part, str) for part in paths):
            raise InputError(f"{where}: media must be a list of paths of pictures or videos")
        stamps_s = stamps_in(row.pop(STAMPS, None), where)
        pictures = [medium for part in paths for medium in media.add_path(part, where, stamps_s)]
        made = {"source": source, "video": media.is_one_video(pictures)}
        question = question_of({**made, **row, "media": [medium.model_dump() for medium in pictures]}, where)
        if question.choices and not question.answer and any("answer" in other for _, other in rows):
            raise InputError(f"{where}: has choices but no answer")
        seen.check(question.id, where)
        found.append(question)
        on_progress(number, len(rows))
    return found


def open_eqa(path: Path, frames: Path | None, media: MediaFolder, on_progress: OnProgress) -> list[Question]:
    """Questions of open-eqa-v0.json, or the same as JSON Lines.

    Args:
        path: of the file; its scene is the episode's, its category becomes `Question.dimension`, such as
            "ObjectRecognition" in the taxonomy open_eqa.
        frames: folder with a folder of pictures for each episode, as OpenEQA's data/frames, or a video of its name,
            such as EPISODE.mp4; None: without pictures.
        media: takes the pictures.
        on_progress: called with the number of questions read, and their total.

    Raises:
        InputError: a question without id, text or answer, an id that stands twice, an episode without pictures.
    """
    rows = json_lines(path) if path.suffix == ".jsonl" else json_entries(path, json_value(path))
    seen, found = Refusals(), []
    for number, (where, row) in enumerate(rows, 1):
        _check_keys(row, _EQA_KEYS, where)
        name, episode = _name(row, where, seen), plain(row.get("scene") or row.get("episode_history"))
        texts = [text for key in ("answer", "extra_answers") for text in answers_in(row.get(key), f"{where}, {key}")]
        kind, answer, also = open_answers(texts)
        values = {
            "id": f"{OPEN_EQA.name}/{name}",
            "source": OPEN_EQA.name,
            "text": row.get("question"),
            "answer_kind": kind,
            "answer": answer,
            "also": also,
            "scene": episode,
            "dimension": plain(row.get("category")).title().replace(" ", ""),
            "media": [] if frames is None else [one.model_dump() for one in _episode(frames / episode, media, where)],
            "video": frames is not None,
        }
        found.append(question_of(values, where))
        on_progress(number, len(rows))
    return found


def sqa3d(path: Path, media: MediaFolder, on_progress: OnProgress) -> list[Question]:
    """Questions of SQA3D: a folder with one file of questions and one of annotations, or JSON Lines made of both.

    Raises:
        InputError: neither; a question without annotation, or an id that stands twice.
    """
    rows = json_lines(path) if path.is_file() else _joined(path)
    seen, found = Refusals(), []
    for number, (where, row) in enumerate(rows, 1):
        _check_keys(row, _SQA_KEYS, where)
        answers = row.get("answer")
        if not isinstance(answers, list) or not answers:
            raise InputError(f"{where}: answer must be a list of texts")
        kind, answer, also = open_answers(answers_in(answers, f"{where}, answer"))
        values = {
            "id": f"{SQA3D.name}/{_name(row, where, seen)}",
            "source": SQA3D.name,
            "text": row.get("question"),
            "answer_kind": kind,
            "answer": answer,
            "also": also,
            "situation": plain(row.get("situation")),
            "scene": plain(row.get("scene") or row.get("scene_id")),
        }
        found.append(question_of(values, where))
        on_progress(number, len(rows))
    return found


def json_lines(path: Path) -> list[Placed]:
    """The objects of a file, one a line; raises InputError for a line that is none, or a file without any."""
    found = list(json_objects(str(path), file_bytes(path)))
    if not found:
        raise InputError(f"{path} has no questions")
    return found


def _joined(folder: Path) -> list[Placed]:
    """Questions of SQA3D with the answers of their annotations."""
    parts = {}
    for part, pattern in (("questions", "*questions*.json"), ("annotations", "*annotations*.json")):
        files = sorted(folder.glob(pattern))
        if len(files) != 1:
            raise InputError(
                f"{folder} must have one file {pattern}, and has {len(files)}: put one split into a folder"
            )
        found = json_value(files[0])
        parts[part] = json_entries(files[0], found.get(part) if isinstance(found, dict) else None)
    answers = {plain(row.get("question_id")): row.get("answers") for _, row in parts["annotations"]}
    keys = ("question_id", "question", "situation", "scene_id")
    return [
        (where, {key: row.get(key) for key in keys} | {"answer": answers.get(plain(row.get("question_id")))})
        for where, row in parts["questions"]
    ]


def _name(row: dict[str, Any], where: str, seen: Refusals) -> str:
    name = next((found for found in (plain(row.get("id")), plain(row.get("question_id"))) if found), "")
    if not name:
        raise InputError(f"{where}: has no id")
    seen.check(name, where)
    return name


def _check_keys(row: dict[str, Any], known: Sequence[str], where: str) -> None:
    unknown = [key for key in row if key not in known]
    if unknown:
        raise InputError(
            f"{where}: unknown key {unknown[0]!r}; {did_you_mean(unknown[0], known)}valid keys are: {', '.join(known)}"
        )


def _episode(path: Path, media: MediaFolder, where: str) -> Sequence[Medium]:
    """The frames of an episode: of the folder with its path, or of the video file with its path and an ending."""
    files = [path.with_name(path.name + ending) for ending in CONTAINERS]
    found = next((file for file in (path, *files) if file.exists()), None)
    if found is None:
        raise InputError(f"{where}: there is no folder of frames {path}, and no video {path}{next(iter(CONTAINERS))}")
    return media.add_path(str(found.absolute()), where)
