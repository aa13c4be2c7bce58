"""Films of a run for people: its distorted trials beside the undistorted ones, or films with planted defects.

Layout, which the source `videos` of a project reads:

    OUT/reference/TASK/AGENT.SCENE.mp4   the undistorted trial
    OUT/TEAM/TASK/AGENT.SCENE.mp4        the same agent in the same scene; a team is a distortion at a level, such as
                                         "jpeg.5", or a planted defect
    OUT/videos.csv                       a row a film: `COLUMNS`; the score is that of a planted defect, else empty
    OUT/gold.yaml                        of planted defects: right answers, for `gold` of a project
    OUT/about.json                       the run, hashes, versions, what was left out and why
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cv2

from merton import __version__
from merton.config import dumps
from merton.errors import InfrastructureError, InputError, require
from merton.experiment.again import is_as_recorded
from merton.experiment.filming import CAMERA, FILM_HZ, take
from merton.experiment.local import LocalPorts
from merton.experiment.plan import Trial
from merton.experiment.run import RunDirectory
from merton.files import claim_folder, locked_folder, write_file
from merton.pool import open_pool, results
from merton.progress import OnProgress, unseen
from merton.recording.video import write_video
from merton.results.csv_writer import write_csv
from merton.results.records import FLOOR_AGENT, Outcome, TestCase, TrialRecord
from merton.seeding import generator
from merton.simulation.cameras import SceneCameras
from merton_studies.people.media.planted import RIGHT_ANSWERS, SCORES, Planting

REFERENCE = "reference"
ABOUT = "about.json"
COLUMNS = ("team", "task", "video", "scene", "trial", "score", "sha256")


@dataclass(frozen=True)
class Job:
    """A trial to be filmed.

    Attributes:
        record: of the trial.
        defects: that are planted into it; none for the film as it is.
    """

    record: TrialRecord
    defects: tuple[str, ...] = ()

    @property
    def films(self) -> tuple[tuple[str, str], ...]:
        """Team and score of each film of this trial."""
        case = self.record.case
        own = REFERENCE if case.is_reference else f"{case.distortion}.{case.level}"
        return ((own, ""), *((defect, str(SCORES[defect])) for defect in self.defects))

    def place(self, team: str) -> Path:
        """The film of a team, below the folder of all films."""
        case = self.record.case
        return Path(team, case.task, f"{self.record.agent}.{case.seed}.mp4")


@dataclass(frozen=True)
class Made:
    """The films that were made.

    Attributes:
        films: their number, those that were there before among them.
        teams: without the reference.
        tasks: of the films.
        left_out: sentences.
    """

    films: int
    teams: tuple[str, ...]
    tasks: tuple[str, ...]
    left_out: tuple[str, ...]


def make_films(
    run: Path,
    out: Path,
    per_task: int,
    planted: bool,
    on_progress: OnProgress = unseen,
) -> Made:
    """Film trials of a run that the embedded cell carried out, on all cores; goes on where it was interrupted.

    Each trial is carried out again. One whose path is not the recorded one, to the last digit, is left out, so that
    people judge what was scored. The agent that does nothing is left out: there is nothing to see.

    Args:
        run: the run's folder.
        out: a new or empty folder, or one of the same call.
        per_task: films of a team and task at most; agents and scenes are drawn with the run's seed, the same for all
            teams, different scenes first.
        planted: plant defects of known score (`planted.SCORES`) into undistorted trials that succeeded, in place of the
            run's distorted trials.
        on_progress: called with trials done and all.

    Raises:
        InputError: no such run, `out` holds something else, or there is nothing to film.
        InfrastructureError: a model cannot be asked, or a file cannot be written.
        MissingDependencyError: PyAV is not installed.
    """
    require("av", "people", "writing videos")
    directory = RunDirectory(run)
    directory.check_models()
    records = [record for record in directory.records() if record.agent != FLOOR_AGENT]
    agents = {agent.id for agent in directory.spec.agents}
    judged = [one for one in records if one.agent in agents and one.outcome is not Outcome.INFRASTRUCTURE]
    jobs = list(_chosen(judged, per_task, planted, directory.spec.seed))
    if not jobs:
        wanted = "undistorted trials that succeeded" if planted else "distorted trials beside undistorted ones"
        raise InputError(f"{run} has no {wanted} of an agent that moves")
    asked = {"run": directory.id, "experiment_sha256": directory.experiment_sha256, "per_task": per_task,
             "planted": planted}  # fmt: skip
    with locked_folder(out, "merton people videos"):
        claim_folder(out / ABOUT, asked, "a set of films")
        left_out = []
        with open_pool() as pool:
            work = [(directory.path, out, job) for job in jobs]
            for done, sentences in enumerate(results(pool, _film, work), start=1):
                left_out += sentences
                on_progress(done, len(jobs))
        _remove_unpaired(out, jobs)
        rows = list(_rows(out, jobs))
        write_csv(out / "videos.csv", COLUMNS, sorted(rows))
        if planted:
            write_file(out / "gold.yaml", gold_answers(rows))
        _write_about(out, asked, left_out)
    teams = sorted({row[0] for row in rows} - {REFERENCE})
    if not teams:
        raise InputError(f"{run} cannot be filmed: {left_out[0]}")
    return Made(len(rows), tuple(teams), tuple(sorted({row[1] for row in rows})), tuple(left_out))


def _chosen(records: Sequence[TrialRecord], per_task: int, planted: bool, seed: int) -> Iterator[Job]:
    """The trials to be filmed, each reference before those beside it."""
    by_place: dict[tuple[str, str, int], dict[TestCase, TrialRecord]] = defaultdict(dict)
    for record in records:
        by_place[record.case.task, record.agent, record.case.seed][record.case] = record
    for task in sorted({record.case.task for record in records}):
        usable = {}
        for (own, agent, scene), cases in by_place.items():
            reference = cases.get(TestCase(task, scene, REFERENCE, 0))
            is_good = reference is not None and (reference.success if planted else len(cases) > 1)
            if own == task and is_good:
                usable[agent, scene] = cases
        for agent, scene in _spread(sorted(usable), per_task, seed, task):
            cases = usable[agent, scene]
            for case in sorted(cases, key=lambda one: one.level):
                if case.is_reference:
                    yield Job(cases[case], tuple(SCORES) if planted else ())
                elif not planted:
                    yield Job(cases[case])


def _spread(places: Sequence[tuple[str, int]], count: int, seed: int, task: str) -> list[tuple[str, int]]:
    """`count` of (agent, scene), drawn: one of each scene before a second one of any."""
    drawn = [places[index] for index in generator("people films", seed, task).permutation(len(places))]
    rank: dict[tuple[str, int], int] = {}
    seen: dict[int, int] = defaultdict(int)
    for place in drawn:
        rank[place] = seen[place[1]]
        seen[place[1]] += 1
    return sorted(sorted(drawn, key=rank.__getitem__)[:count])


def _film(run: Path, out: Path, job: Job) -> list[str]:
    """Film a trial, in a process of the pool; returns a sentence for each film that is left out."""
    places = {team: out / job.place(team) for team, _ in job.films}
    if all(place.is_file() for place in places.values()):
        return []
    ports, cameras, directory = _studio(run)
    record = job.record
    agent = next(agent for agent in directory.spec.agents if agent.id == record.agent)
    scene = take(ports, directory.spec, Trial(agent, record.case))
    if not is_as_recorded(directory.path, record, scene.path):
        return [f"{record.id} goes another way here than it was recorded, or its trial.json is missing"]
    left_out, films = [], Planting(cameras, scene)
    for (team, _), place in zip(job.films, places.values(), strict=True):
        if place.is_file():
            continue
        rng = generator("people planted", directory.spec.seed, record.id)
        made = films.film(team, rng) if team in SCORES else films.clean
        if made is None:
            left_out.append(f"{record.id}: {team!r} could not be seen in it")
            continue
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InfrastructureError(f"cannot write into {str(place.parent)!r}: {error.strerror}") from None
        write_video(place, made, FILM_HZ)
    return left_out


@lru_cache(maxsize=1)
def _studio(run: Path) -> tuple[LocalPorts, SceneCameras, RunDirectory]:
    """A cell for the trials, and cameras without the errors of a sensor, in this process."""
    directory = RunDirectory(run)
    directory.spec.facts.require_ur5("a film")
    return LocalPorts(), SceneCameras(), directory


def _remove_unpaired(out: Path, jobs: Sequence[Job]) -> None:
    """Remove the films without a reference beside them, which had to be left out."""
    for job in jobs:
        if not (out / job.place(REFERENCE)).is_file():
            for team, _ in job.films:
                (out / job.place(team)).unlink(missing_ok=True)


def _rows(out: Path, jobs: Sequence[Job]) -> Iterator[tuple[str, ...]]:
    """The rows of videos.csv, of the films that are there."""
    for job in jobs:
        case = job.record.case
        for team, score in job.films:
            file = out / job.place(team)
            if file.is_file():
                sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
                yield team, case.task, file.stem, case.scene, job.record.id, score, sha256


def gold_answers(rows: Sequence[tuple[str, ...]]) -> bytes:
    """The content of gold.yaml for rows of videos.csv: id of an item of the source `videos` to its right answer."""
    # an answer of its own for each item: YAML would write aliases for one that is shared, which no project may have
    planted = [row for row in sorted(rows) if row[0] in RIGHT_ANSWERS]
    return dumps({"/".join(row[:3]): deepcopy(RIGHT_ANSWERS[row[0]]) for row in planted}).encode()


def _write_about(out: Path, asked: dict[str, Any], left_out: Sequence[str]) -> None:
    versions = {name: version(name) for name in ("av", "mujoco", "numpy")} | {"opencv": cv2.__version__}
    about = {**asked, "camera": CAMERA, "rate_hz": FILM_HZ, "merton": __version__, "packages": versions,
             "left_out": list(left_out)}  # fmt: skip
    write_file(out / ABOUT, json.dumps(about, indent=2).encode())
