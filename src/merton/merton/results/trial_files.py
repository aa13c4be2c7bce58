"""The files of a trial in a run directory: trial.json and pictures, whose content is not trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from merton.results.records import TrialRecord
from merton.results.text import one_line

FRAME_LIMIT = 1_500_000
"""Bytes of a picture; a larger one is passed over."""
JSON_LIMIT = 8_000_000
"""Bytes of a trial.json or run.json; a larger one is passed over."""
ANSWER_LIMIT = 600
"""Characters of an answer that are shown."""
FILMS = "videos"
"""The folder of films in a run's folder; each is named after its trial."""
FILM_LIMIT = 3_000_000
"""Bytes of a film; a larger one is passed over."""
EPISODES, DESIGN_FILE = "episodes", "design.yaml"
"""The `kind` in run.json of a run of episodes that another program carried out, and its design in place of an
experiment (`merton.episodes`)."""
_JPEG = b"\xff\xd8\xff"


def json_object(path: Path | None) -> dict[str, Any] | None:
    """The JSON object in a file; None if there is no such file or it holds something else."""
    try:
        if path is None or path.stat().st_size > JSON_LIMIT:
            return None
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def is_of_episodes(facts: Mapping[str, Any]) -> bool:
    """Whether a run.json is that of episodes that another program carried out."""
    return facts.get("kind") == EPISODES


def trial_detail(run: Path, record: TrialRecord) -> dict[str, Any] | None:
    """The content of a trial's trial.json, unchecked; None if there is none."""
    return json_object(_trial_file(run, record, "trial.json"))


def shown_text(detail: Mapping[str, Any], key: str) -> str:
    """A text of a trial.json as one printable line of at most `ANSWER_LIMIT` characters; empty if it is missing."""
    return one_line(detail.get(key) or "", ANSWER_LIMIT)


def shown_answers(detail: Mapping[str, Any]) -> tuple[str, str]:
    """The answers to the reference and to the distorted image, each as `shown_text`; empty if it is not stored.

    An answer that the model did not give is null in trial.json.
    """
    stored = detail.get("answers")
    answers = stored if isinstance(stored, Mapping) else {}
    return _shown_answer(answers, "reference"), _shown_answer(answers, "distorted")


def _shown_answer(answers: Mapping[str, Any], side: str) -> str:
    if answers.get(side, "") is None:
        return "(no answer)"
    return "(an empty answer)" if answers.get(side) == "" else shown_text(answers, side)


def first_frame(detail: Mapping[str, Any]) -> Mapping[str, Any]:
    """The earliest frame, of the top camera if there is one: it looks the way the trajectory is drawn."""
    frames = detail.get("frames")
    known = [item for item in frames if isinstance(item, dict)] if isinstance(frames, list) else []
    return min(known, key=lambda item: (item.get("camera") != "top", str(item.get("step")).zfill(9)), default={})


def _trial_file(run: Path, record: TrialRecord, name: str) -> Path | None:
    """A file of a trial, or None if it is not a plain file that lies directly in the trial's own directory."""
    try:
        if not (
            run / "trials" / record.id / name
        ).exists():  # most often asked of records without files: resolving is slow
            return None
        trials = (run / "trials").resolve()
        path = (trials / record.id / name).resolve()
        inside = path.parent.parent == trials and path.parent.name == record.id
        return path if inside and path.is_file() else None
    except (OSError, ValueError):  # a name too long for the file system, or with a NUL
        return None


def jpeg(run: Path, record: TrialRecord, name: object) -> bytes | None:
    """The picture `name` of a trial; None if there is none, it is no JPEG, or it is larger than `FRAME_LIMIT`."""
    path = _trial_file(run, record, name) if isinstance(name, str) and name else None
    try:
        if path is None or path.stat().st_size > FRAME_LIMIT:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    return content if content.startswith(_JPEG) else None


def film_path(run: Path, trial: str) -> Path:
    """The place of a trial's film, an animated WebP that `merton video` writes, in the run's folder."""
    return run / FILMS / f"{trial}.webp"


def has_film(run: Path, record: TrialRecord) -> bool:
    """Whether there is a file at the place of a trial's film."""
    try:
        return film_path(run, record.id).is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def film(run: Path, record: TrialRecord) -> bytes | None:
    """A trial's film; None if there is none, it is no WebP, or it is larger than `FILM_LIMIT`."""
    path = film_path(run, record.id)
    try:
        if path.parent.resolve() != path.resolve().parent or path.stat().st_size > FILM_LIMIT:
            return None
        content = path.read_bytes()
    except (OSError, ValueError):  # no such file, or a name that cannot be one
        return None
    return content if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else None
