"""Trials of an MCAP recording: what a camera saw from the start of each to its result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merton.errors import ErrorCode, InputError, UnknownNameError
from merton.progress import OnProgress
from merton.results.records import TestCase
from merton_studies.people.item import Item
from merton_studies.people.project import Loaded
from merton_studies.people.source_settings import Recording

TOP = "top"
_IMAGES = re.compile(r"camera/([^/]+)/color/image_raw")
_OUTCOMES = {0: "success", 1: "failure"}
"""Outcomes of merton_interfaces/TrialResult that a judge tells."""


@dataclass
class _Trial:
    """A trial under way: its pictures with their times, by camera."""

    pictures: dict[str, list[tuple[float, bytes]]] = field(default_factory=dict)
    instruction: str = ""
    scene: int = -1


def items_of(loaded: Loaded, settings: Recording, on_progress: OnProgress) -> list[Item]:
    """An item for each trial that has a result which a judge tells, in the order of the recording.

    A trial begins where the cell was prepared for it, or after the result before it. A picture stands until the next
    one, since a recorder writes repeated pictures once.

    Raises:
        InputError: no recording, no trials with their result in it, or no pictures of the camera.
        MissingDependencyError: without the extra `recording`.
    """
    from merton.perception.images import decode_image
    from merton_studies.people.media.reel import reel_of_pictures
    from merton_studies.people.media.video import evenly

    file = loaded.place(settings.file)
    items: list[Item] = []
    cameras: set[str] = set()
    for trial, result in _trials(file):
        on_progress(len(items), 0)
        cameras |= set(trial.pictures)
        camera = settings.camera or (TOP if TOP in trial.pictures else min(trial.pictures, default=""))
        if camera not in trial.pictures:
            continue
        timed = ((time_s, decode_image(content)) for time_s, content in trial.pictures[camera])
        reel = reel_of_pictures(list(evenly(timed, settings.rate_hz)), settings.rate_hz, loaded.media)
        scene = TestCase(result.task, result.scene_seed, "reference", 0).scene
        facts = {"run": result.experiment_id, "trial": result.trial_id, "agent": result.agent_id, "task": result.task,
                 "recorded": _OUTCOMES.get(result.outcome, "")}  # fmt: skip
        texts = {"instruction": trial.instruction} if trial.instruction else {}
        items.append(Item(result.trial_id, scene, {"video": reel.medium("video")}, texts, facts))
    if settings.camera is not None and cameras and settings.camera not in cameras:
        raise UnknownNameError("camera", settings.camera, cameras)
    if not items:
        raise InputError(f"{file} has no trial with its result and pictures of a color camera")
    return items


def _trials(file: Path) -> Iterator[tuple[_Trial, Any]]:
    """Each trial with its result, a message merton_interfaces/TrialResult; a result that is repeated counts once."""
    from merton.perception.camera.decoding import file_of
    from merton.recording.messages import namespace_of, own_name, picture_topics, reading
    from merton.recording.reader import RecordingReader

    reader, trial, known = RecordingReader(file), _Trial(), set[tuple[str, str]]()
    namespace = namespace_of(reader.topics(), file)
    pictures = picture_topics(reader.topics(), namespace, _IMAGES)
    for entry in reader.entries():
        name, done = own_name(entry.topic, namespace), None
        with reading(entry):
            if images := pictures.get(entry.topic):
                content = file_of(entry.decode())
                trial.pictures.setdefault(images[1], []).append((entry.log_time_ns / 1e9, content))
            elif name == "cell/state":
                state = entry.decode()
                if trial.scene not in (-1, state.scene):
                    trial = _Trial()
                trial.scene, trial.instruction = state.scene, state.instruction
            elif name == "trial_results":
                done = entry.decode()
                key = (done.experiment_id, done.trial_id)
                is_judged = done.outcome in _OUTCOMES or done.error_code == ErrorCode.NOT_JUDGED
        if done is not None:
            if key not in known and is_judged:
                yield trial, done
            known.add(key)
            trial = _Trial(scene=trial.scene, instruction=trial.instruction)
