"""Trials of a run, seen in films of them or in the pictures that it kept: undistorted, since people judge the arm."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from merton.errors import ErrorCode, InputError, UnknownNameError
from merton.progress import OnProgress
from merton.results.records import Outcome, TrialRecord
from merton.seeding import generator
from merton_studies.people.item import Item
from merton_studies.people.media.reel import reel_of_pictures
from merton_studies.people.project import Loaded
from merton_studies.people.source_settings import Run
from merton_studies.people.sources.prepared import Prepared, in_parallel, video_prepared
from merton_studies.people.sources.videos import TABLE, films_in, videos_in

if TYPE_CHECKING:
    from merton.experiment.run import RunDirectory

TOP = "top"


def items_of(loaded: Loaded, settings: Run, on_progress: OnProgress) -> list[Item]:
    """The items, by case and agent.

    trials: each trial whose success a judge tells: not those that ended by the gate, a fault or an abstention.
    pairs: two agents on the same case. episodes: a distorted trial beside the undistorted one of the same agent, task
    and scene; the agent is the team.

    Raises:
        InputError: no such run, no such folder of films, or no trials with pictures of the camera.
    """
    run = run_of(loaded, settings)
    records = [record for record in run.records() if _is_judged(record)]
    protocol = loaded.project.protocol
    eligible = [record for record in records if protocol != "episodes" or not record.case.is_reference]
    drawn = _drawn_cases(eligible, settings.cases, loaded.project.seed)
    chosen = sorted((record for record in records if record.case.id in drawn), key=lambda one: (one.case, one.agent))
    seen = _Pictures(run.path, settings, loaded)
    make = {"trials": _trials, "pairs": _pairs, "episodes": _episodes}[protocol]
    plans = make(chosen, records)
    shown = {record.id: record for plan in plans for record in plan[0].values()}
    trials = list(shown.values())
    media = (
        seen.prepared(trials, on_progress)
        if settings.videos is None
        else _films(loaded, settings.videos, trials, on_progress)
    )
    items = []
    for roles, name, facts in plans:
        if all(record.id in media for record in roles.values()):
            first = next(iter(roles.values()))
            texts = {"instruction": seen.instruction(first)} if seen.instruction(first) else {}
            parts = {role: media[record.id](role) for role, record in roles.items()}
            items.append(Item(name, first.case.scene, parts, texts, {**facts, "run": run.id}))
    if not items:
        seen_in = "films" if settings.videos else "pictures"
        raise InputError(f"{run.path} has no trials with {seen_in} for the protocol {protocol}")
    return items


def run_of(loaded: Loaded, settings: Run) -> RunDirectory:
    """The run that a project names: a folder beside the project's file, or a name below its folder `runs`."""
    from merton.experiment.run import RunDirectory
    from merton.experiment.run_names import RUNS, find_run

    here = loaded.place(settings.run)
    return RunDirectory(here if here.is_dir() else find_run(settings.run, loaded.folder / RUNS))


Plan = tuple[dict[str, TrialRecord], str, dict[str, str]]
"""Roles and their trials, id and facts of an item."""


def _trials(chosen: Sequence[TrialRecord], records: Sequence[TrialRecord]) -> list[Plan]:
    return [
        (
            {"video": record},
            record.id,
            {"trial": record.id, "agent": record.agent, "task": record.case.task, "recorded": _recorded(record)},
        )
        for record in chosen
    ]


def _pairs(chosen: Sequence[TrialRecord], records: Sequence[TrialRecord]) -> list[Plan]:
    cases: dict[str, list[TrialRecord]] = defaultdict(list)
    for record in chosen:
        cases[record.case.id].append(record)
    return [
        ({"a": a, "b": b}, f"{case}: {a.agent} | {b.agent}", {"a": a.agent, "b": b.agent, "case": case})
        for case, own in cases.items()
        for a, b in combinations(own, 2)
    ]


def _episodes(chosen: Sequence[TrialRecord], records: Sequence[TrialRecord]) -> list[Plan]:
    references = {(record.agent, record.case): record for record in records if record.case.is_reference}
    shown = [
        record
        for record in chosen
        if not record.case.is_reference and (record.agent, record.case.reference) in references
    ]
    real = Counter(task for task, _ in {(record.case.task, record.case.id) for record in shown})
    return [
        (
            {"reference": references[record.agent, record.case.reference], "video": record},
            record.id,
            {"team": record.agent, "task": record.case.task, "video": record.case.id.partition(".")[2],
             "real_videos": str(real[record.case.task])},
        )
        for record in shown
    ]  # fmt: skip


def _films(loaded: Loaded, place: str, records: Sequence[TrialRecord], on_progress: OnProgress) -> dict[str, Prepared]:
    """Trial to its film; without those that were not filmed."""
    folder = loaded.place(place)
    if not (folder / TABLE).is_file():
        raise InputError(f"{folder} has no {TABLE}: `merton people videos` films the trials of a run")
    files, films = videos_in(folder), films_in(folder)
    of_trial = {film.trial: files[where] for where, film in films.items() if not film.score and where in files}
    filmed = [record for record in records if record.id in of_trial]
    found = in_parallel(lambda one: video_prepared(of_trial[one.id], loaded.media), filmed, on_progress)
    return {record.id: film for record, film in zip(filmed, found, strict=True)}


def _is_judged(record: TrialRecord) -> bool:
    settled = record.outcome in (Outcome.SUCCESS, Outcome.FAILURE)
    return settled or record.error_code == ErrorCode.NOT_JUDGED


def _recorded(record: TrialRecord) -> str:
    return "" if record.success is None else record.outcome.value


def _drawn_cases(records: Sequence[TrialRecord], count: int | None, seed: int) -> set[str]:
    """Ids of the cases, drawn: `count` of each task; all of them for None."""
    by_task: dict[str, set[str]] = defaultdict(set)
    for record in records:
        by_task[record.case.task].add(record.case.id)
    drawn: set[str] = set()
    for task, cases in by_task.items():
        ordered = sorted(cases)
        least = len(ordered) if count is None else min(count, len(ordered))
        places = generator("people", "cases", task, seed).choice(len(ordered), least, replace=False)
        drawn |= {ordered[place] for place in places}
    return drawn


class _Pictures:
    """The pictures of a run's trials."""

    def __init__(self, run: Any, settings: Run, loaded: Loaded) -> None:
        self._run, self._settings, self._folder = run, settings, loaded.media
        self._details: dict[str, Mapping[str, Any]] = {}

    def instruction(self, record: TrialRecord) -> str:
        """The task in words, as trial.json has it."""
        from merton.results.trial_files import shown_text

        return shown_text(self._detail(record), "instruction")

    def prepared(self, records: Sequence[TrialRecord], on_progress: OnProgress) -> dict[str, Prepared]:
        """Trial to its reel; without those that kept no pictures.

        Raises:
            UnknownNameError: no trial has pictures of the camera that was asked for.
        """
        cameras = {name for record in records for name in self._cameras(record)}
        if self._settings.camera is not None and cameras and self._settings.camera not in cameras:
            raise UnknownNameError("camera", self._settings.camera, cameras)
        found = in_parallel(self._reel, records, on_progress)
        return {record.id: reel for record, reel in zip(records, found, strict=True) if reel is not None}

    def _reel(self, record: TrialRecord) -> Prepared | None:
        from merton.perception.images import decode_image
        from merton.results.trial_files import jpeg

        cameras = self._cameras(record)
        camera = self._settings.camera or (TOP if TOP in cameras else min(cameras, default=""))
        frames = [frame for frame in self._frames(record) if frame.get("camera") == camera]
        contents = [jpeg(self._run, record, frame.get("reference")) for frame in sorted(frames, key=_step)]
        pictures = [decode_image(content) for content in contents if content is not None]
        return reel_of_pictures(pictures, self._settings.rate_hz, self._folder).medium if pictures else None

    def _cameras(self, record: TrialRecord) -> set[str]:
        return {str(frame.get("camera")) for frame in self._frames(record)}

    def _frames(self, record: TrialRecord) -> list[Mapping[str, Any]]:
        frames = self._detail(record).get("frames")
        return [frame for frame in frames if isinstance(frame, dict)] if isinstance(frames, list) else []

    def _detail(self, record: TrialRecord) -> Mapping[str, Any]:
        from merton.results.trial_files import trial_detail

        if record.id not in self._details:
            self._details[record.id] = trial_detail(self._run, record) or {}
        return self._details[record.id]


def _step(frame: Mapping[str, Any]) -> int:
    step = frame.get("step")
    return step if isinstance(step, int) else 0
