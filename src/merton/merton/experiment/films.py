"""Films of a run's trials, made in `RUN/videos/`: the embedded cell carries each trial out again before a camera.

A film shows what was scored: a trial that goes another way than it was recorded, to the last digit, gets none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np

from merton.errors import InputError, MissingDependencyError, require
from merton.experiment.again import is_as_recorded
from merton.experiment.film import RATE_HZ, VIEW_PX, WIDTH_PX, FilmSide, Moment, frames, speed_of
from merton.experiment.filming import CAMERA, FILM_HZ, Take, take
from merton.experiment.local import SLICE_S, LocalPorts
from merton.experiment.plan import Trial
from merton.experiment.run import RunDirectory
from merton.files import make_folder, refuse_folder, write_file
from merton.pages import webp
from merton.pages.words import OUTCOME_MARKS, readable
from merton.pool import open_pool, results
from merton.processes import usable_cores
from merton.progress import OnProgress, unseen
from merton.recording.video import write_video
from merton.results.records import Outcome, TrialRecord
from merton.results.trial_files import film_path, shown_answers, shown_text, trial_detail
from merton.simulation.cameras import SceneCameras
from merton.world.geometry import Array
from merton.world.observation import CameraView

ENDINGS = (".webp", ".mp4")
NOTE = "carried out again in the embedded cell: the path is the recorded one"
_SAMPLES = 4
"""Samples per pixel of the bystander's view."""
_DRAWN_PX, _CORNER_PX = (552, 414), (138, 84)
"""Width and height of the bystander's picture, and the column and row where the part of it begins that is shown."""


def make_films(
    run: Path, records: Sequence[TrialRecord], out: Path | None = None, on_progress: OnProgress = unseen
) -> tuple[list[Path], list[str]]:
    """Make the films of trials on all cores; those that are there already stay as they are.

    Args:
        run: the run's folder.
        records: of the trials.
        out: of one trial, another place than `film_path`; it ends in .webp or .mp4 and is replaced.
        on_progress: called with films done and all.

    Returns:
        The files, and a sentence for each trial that has none.

    Raises:
        InputError: `out` has another ending or is a folder, or a model of the run is not here as it was.
        InfrastructureError: a model cannot be asked, or a file cannot be written.
        MissingDependencyError: this machine cannot draw, or writes no such file.
    """
    if out is not None:
        if out.suffix.lower() not in ENDINGS:
            raise InputError(f"{str(out)!r} must end in {' or '.join(ENDINGS)}")
        refuse_folder(out)
    run = run.resolve()
    places = [out or film_path(run, record.id) for record in records]
    due = [place for place in places if out is not None or not place.is_file()]
    if due:
        RunDirectory(run).check_models()
    for place in due:
        make_folder(place.parent)
        _check_writer(place.suffix)
    jobs = [(run, record, place) for record, place in zip(records, places, strict=True) if place in due]
    left_out: list[str] = []
    with open_pool(max(1, min(len(jobs), usable_cores()))) as pool:
        for done, sentence in enumerate(results(pool, make_film, jobs), start=len(records) - len(jobs) + 1):
            left_out += [sentence] * bool(sentence)
            on_progress(done, len(records))
    return [place for place in places if place.is_file() and not (place == out and left_out)], left_out


def make_film(run: Path, record: TrialRecord, place: Path) -> str:
    """Make one film in this process; returns a sentence if that cannot be, else an empty text."""
    if record.outcome is Outcome.INFRASTRUCTURE:
        return f"{record.id} ended by a fault of the infrastructure: there is nothing to film"
    directory = _studio(run)[2]
    if not any(agent.id == record.agent for agent in directory.spec.agents):
        return f"{record.id}: the run's experiment.yaml has no agent {record.agent!r}"
    own = _take(run, record)
    if own is None:
        return (
            f"{record.id} goes another way here than it was recorded, or its trial.json is missing; a run of the "
            "embedded cell on the same version of Merton can be filmed"
        )
    undistorted = next((other for other in directory.records() if is_undistorted_run(other, record)), None)
    other = None if undistorted is None else _take(run, undistorted)
    takes = [(record, own)] if undistorted is None or other is None else [(undistorted, other), (record, own)]
    speed = speed_of(max(len(one.states) for _, one in takes) / FILM_HZ)
    detail = trial_detail(run, record) or {}
    heading = f'"{shown_text(detail, "instruction") or record.case.task}" - {record.agent}, scene {record.case.seed}'
    sides = _sides(run, takes, speed)
    pictures = list(frames(heading, sides, speed, NOTE))
    if place.suffix.lower() == ".mp4":
        write_video(place, pictures, RATE_HZ)
    else:
        write_file(place, webp.animated(pictures, RATE_HZ))
    return ""


def _check_writer(ending: str) -> None:
    """Raise MissingDependencyError, with the line that installs it, unless files of this ending can be written here.

    Args:
        ending: ".webp", by OpenCV from 4.12 on, or ".mp4", by PyAV.
    """
    if ending.lower() == ".mp4":
        require("av", "people", "writing videos")
    elif not webp.is_written_here():
        raise MissingDependencyError(
            f"an animated WebP needs OpenCV 4.12 or later, and this is {cv2.__version__}: "
            "pip install --upgrade opencv-python-headless"
        )


def is_undistorted_run(other: TrialRecord, record: TrialRecord) -> bool:
    """Whether `other` is the undistorted run of a distorted trial: the same agent in the same scene."""
    case = record.case
    is_same = other.agent == record.agent and other.case == case.reference and not case.is_reference
    return is_same and other.outcome is not Outcome.INFRASTRUCTURE


def _take(run: Path, record: TrialRecord) -> Take | None:
    """The trial carried out again; None if it goes another way than it was recorded."""
    ports, _, directory = _studio(run)
    agent = next(agent for agent in directory.spec.agents if agent.id == record.agent)
    made = take(ports, directory.spec, Trial(agent, record.case))
    return made if is_as_recorded(directory.path, record, made.path) else None


def _sides(run: Path, takes: Sequence[tuple[TrialRecord, Take]], speed: float) -> list[FilmSide]:
    """The sides of the film; the path of the undistorted run, the first of two, is on the second one, too."""
    sides: list[FilmSide] = []
    undistorted: Array | None = None
    for record, made in takes:
        detail, case = trial_detail(run, record) or {}, record.case
        moments, path = _moments(run, record, made, speed)
        sides.append(
            FilmSide(
                title="undistorted" if case.is_reference else f"{readable(case.distortion)}, level {case.level}",
                moments=moments,
                answer=shown_answers(detail)[1],
                outcome=(OUTCOME_MARKS[record.outcome][1], record.outcome is Outcome.SUCCESS),
                trace=undistorted,
            )
        )
        undistorted = path
    return sides


def _moments(run: Path, record: TrialRecord, made: Take, speed: float) -> tuple[list[Moment], Array]:
    """A trial's moments at an even rate of the film, and its whole path in pixels of their views."""
    cameras, camera = _studio(run)[1], _seen_camera(run, record)
    seen = {picture.step: picture.distorted for picture in made.pictures if picture.camera == camera}
    last, every = len(made.states) - 1, speed * FILM_HZ / RATE_HZ
    chosen = np.unique(np.minimum(np.arange(0, last + every, every).round().astype(int), last))
    views = [cameras.render(made.task, made.seed, made.states[index], CAMERA, depth=False) for index in chosen]
    trace = _projected(views[0], np.array(made.path)) - _CORNER_PX
    left, top = _CORNER_PX
    moments = []
    for index, view in zip(chosen.tolist(), views, strict=True):
        until = min(len(trace), 1 + round(index / (FILM_HZ * SLICE_S)))
        shown = view.color[top : top + VIEW_PX, left : left + WIDTH_PX]
        moments.append(Moment(shown, trace[:until], seen.get(made.steps[index]), made.steps[index]))
    return moments, trace


def _projected(view: CameraView, points: Array) -> Array:
    """Points of `base_link`, (n, 3) [m], in the pixels of a view, (n, 2)."""
    camera_from_base = np.linalg.inv(view.pose)
    x, y, z = camera_from_base[:3, :3] @ points.T + camera_from_base[:3, 3:]
    camera = view.lens
    return np.stack([camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy], axis=1)


def _seen_camera(run: Path, record: TrialRecord) -> str:
    """The camera whose pictures are shown: the policy's first, or the VLM's of a policy that looks at nothing."""
    spec = _studio(run)[2].spec
    vla = next(agent.vla for agent in spec.agents if agent.id == record.agent)
    return next(iter(spec.vla_entry(vla).cameras), spec.vlm_camera)


@lru_cache(maxsize=1)
def _studio(run: Path) -> tuple[LocalPorts, SceneCameras, RunDirectory]:
    """A cell for the trials, and the bystander's cameras, in this process."""
    directory = RunDirectory(run)
    directory.spec.facts.require_ur5("a film")
    return LocalPorts(), SceneCameras(*_DRAWN_PX, samples=_SAMPLES), directory
