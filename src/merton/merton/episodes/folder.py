"""The files of a run of episodes: made, written by `merton.episodes.run` alone, and read by everything else."""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from merton import __version__
from merton.config import dumps, load, read_text
from merton.decision.spread import Spread
from merton.episodes.design import UNDISTORTED, Condition, Design
from merton.episodes.history import (
    Counts,
    Past,
    Successes,
    counts,
    history,
    latency,
    recorded,
    successes,
)
from merton.episodes.journal import JOURNAL, read_lines
from merton.episodes.pairs import Pairs, different_scenes, pairs_of
from merton.episodes.scores import Decision, Scores, detail
from merton.errors import InfrastructureError, InputError
from merton.experiment.run_folder import json_bytes, name_of_new_run, new_run
from merton.experiment.run_names import is_episodes
from merton.files import file_sha256, write_file
from merton.perception.distortion import REFERENCE_WIDTH_PX
from merton.results.database import RUN_FILE
from merton.results.records import CaseRecord, TestCase, TrialRecord
from merton.results.schema import CASES, TRIALS
from merton.results.store import ResultStore
from merton.results.store import register as enter
from merton.results.trial_files import DESIGN_FILE as DESIGN
from merton.results.trial_files import EPISODES as KIND
from merton.results.trial_files import json_object

PARTS_RECORD = "attribution.sqlite"
"""The record of the trials in which only parts are distorted, each design of parts an experiment of its name."""
_PACKAGES = ("numpy", "scipy", "opencv-python-headless", "SQLAlchemy", "simplejpeg", "gymnasium", "lerobot", "vla-eval")


@dataclass(frozen=True)
class EpisodesFolder:
    """A run of episodes as it is read, also while it is written.

    Attributes:
        path: its folder.
        about: the content of run.json.
        design: the conditions of its scenes.
        episodes: all that were begun.
    """

    path: Path
    about: Mapping[str, Any]
    design: Design
    episodes: Sequence[Past]

    @classmethod
    def read(cls, path: Path) -> EpisodesFolder:
        """Read a run.

        Raises:
            InputError: it is none.
            FileError: its design or its journal cannot be read.
        """
        check_is_run(path)
        about = json_object(path / "run.json") or {}
        journal = path / JOURNAL
        lines = read_lines(journal) if journal.is_file() else []
        return cls(path, about, load(path / DESIGN, Design), history(lines))

    @property
    def id(self) -> str:
        """Of the experiment in its record."""
        return str(self.about.get("id", self.path.name))

    @property
    def counts(self) -> Counts:
        """How many episodes there were so far."""
        return counts(self.episodes)

    @property
    def pairs(self) -> Pairs:
        """Which pairs of an undistorted and a distorted episode count."""
        return pairs_of(self.episodes)

    @property
    def latency(self) -> dict[str, Any]:
        """Time that was added to observations, as `history.latency`."""
        return latency(self.episodes)

    @property
    def agents(self) -> list[str]:
        """Ids of the agents, in order."""
        return sorted({past.agent for past in self.episodes})

    @property
    def successes(self) -> list[Successes]:
        """How often each agent succeeded, as the program said."""
        return successes(self.episodes)

    def records(self) -> list[TrialRecord]:
        """The trials of the run itself, in order of their ids; a distorted one that is no pair has no score."""
        with ResultStore(self.path / RUN_FILE, read_only=True) as store:
            return store.records(self.id)

    def part_records(self) -> list[TrialRecord]:
        """The trials in which only parts are distorted; their `experiment` is the name of the design of parts."""
        if not (self.path / PARTS_RECORD).is_file():
            return []
        with ResultStore(self.path / PARTS_RECORD, read_only=True) as store:
            return store.records()

    def conditions(self, task: str, scene: int) -> frozenset[Condition]:
        """All conditions of a scene, the undistorted one, too: those of the design, and all that were asked for there.

        A program that says every condition itself may have a design without a single one.
        """
        asked = {past.condition for past in self._of_scene.get((task, scene), ())}
        return frozenset({UNDISTORTED, *self.design.conditions(task, scene), *asked})

    @cached_property
    def _of_scene(self) -> dict[tuple[str, int], list[Past]]:
        found: dict[tuple[str, int], list[Past]] = {}
        for past in self.episodes:
            if past.is_recorded:
                found.setdefault((past.case.task, past.case.seed), []).append(past)
        return found

    def planned(self) -> int:
        """The number of recorded episodes when every scene that was visited has all conditions, those of parts, too."""
        scenes = {(past.agent, past.case.task, past.case.seed) for past in self.episodes}
        return sum(len(self.conditions(task, scene)) for _, task, scene in scenes)


def make_folder_of_run(runs: Path, design: Design | Path, name: str | None, source: Mapping[str, Any]) -> Path:
    """Make the folder of a new run; see `merton.episodes.run.EpisodesRun.create`."""
    if isinstance(design, Design):
        known, text = design, dumps(json.loads(design.model_dump_json(exclude_defaults=True)))
    else:
        known, text = load(design, Design), read_text(design)
    name = name_of_new_run(name, known.name)
    with new_run(runs, name) as draft:
        (draft / DESIGN).write_bytes(text.encode())
        write_file(draft / "run.json", json_bytes(_provenance(name, known, text, source)))
    return runs / name


def _provenance(name: str, design: Design, text: str, source: Mapping[str, Any]) -> dict[str, Any]:
    packages = {}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            packages[package] = metadata.version(package)
    return {
        "id": name,
        "kind": KIND,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "merton": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "seed": design.seed,
        "design": design.model_dump(mode="json", exclude={"name", "description", "seed"}),
        "design_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "reference_width_px": REFERENCE_WIDTH_PX,
        "source": dict(source),
    }


def check_is_run(path: Path) -> None:
    """Raise InputError if a folder is no run of episodes, or has no run.json that says so."""
    if not is_episodes(path):
        raise InputError(f"{path} is no run of episodes: it has no {DESIGN} or another kind in its run.json")


def check_unchanged(path: Path) -> None:
    """Raise InputError if a run cannot go on as it began: with another design, or other widths of the levels."""
    about = json_object(path / "run.json") or {}
    if about.get("design_sha256") not in (None, file_sha256(path / DESIGN)):
        raise InputError(
            f"{path / DESIGN} is not the design that the run began with: put it back, or start a new run with it"
        )
    if (held := about.get("reference_width_px", REFERENCE_WIDTH_PX)) != REFERENCE_WIDTH_PX:
        raise InputError(
            f"{path} began with levels of distortion that hold at {held} pixels, and today's hold at "
            f"{REFERENCE_WIDTH_PX} pixels: start a new run"
        )


def register(path: Path, design: Design, until: ExitStack) -> tuple[str, dict[str, ResultStore]]:
    """The id of a run, and its records by the name of their file, open until `until` ends."""
    about = json_object(path / "run.json") or {}
    id = str(about.get("id", path.name))
    stores = {RUN_FILE: until.enter_context(ResultStore(path / RUN_FILE))}
    known = [about[key] if isinstance(about.get(key), str) else None for key in ("design_sha256", "merton", "created")]
    stores[RUN_FILE].register_experiment(id, design.name, design.seed, *known)
    if design.attribute:
        stores[PARTS_RECORD] = until.enter_context(ResultStore(path / PARTS_RECORD))
    return id, stores


def rewrite(store: ResultStore, records: Sequence[TrialRecord]) -> None:
    """Make the trials of a record these ones, all at once: scores change with the spread of all answers."""
    wanted = {(item.experiment, item.id): item for item in records}
    there = {(item.experiment, item.id): item for item in store.records()}
    stale = [key for key, item in there.items() if wanted.get(key) != item]
    new = [item for key, item in wanted.items() if there.get(key) != item]
    if not stale and not new:
        return
    with store.database.transaction() as connection:
        for start in range(0, len(stale), 500):
            keys = sa.tuple_(TRIALS.c.experiment, TRIALS.c.id).in_(stale[start : start + 500])
            connection.execute(sa.delete(TRIALS).where(keys))
        store.write(connection, new)


def register_scenes(store: ResultStore, episodes: Sequence[Past]) -> None:
    """Enter the SHA-256 of a scene's first undistorted pictures beside its cases, where it is one for all agents.

    So a record of another program, which calls another scene the same, is never merged with it.
    """
    seen: dict[TestCase, set[str]] = {}
    for past in recorded(episodes):
        seen.setdefault(past.case.reference, set()).add(past.first_sha256)
    there = {case.id: case.reference_image for case in store.cases()}
    with store.database.transaction() as connection:
        for case in sorted({past.case for past in recorded(episodes)}):
            digests = seen[case.reference]
            if len(digests) == 1 and "" not in digests and there.get(case.id, "") is None:
                row = CaseRecord(case.id, reference_image=digests.pop(), **case.facts)
                enter(store.database, connection, CASES, "case", asdict(row))


def trial_json(past: Past, run: str, decision: Decision | None = None, spread: Spread | None = None) -> bytes:
    """The content of trial.json; the decision is known when the run is refreshed."""
    record = past.record(run, decision.total if decision else None)
    end = past.end or {}
    about: dict[str, Any] = {
        "id": record.id,
        "agent": record.agent,
        "vla": record.agent,
        **record.case.facts,
        "part": past.condition.part,
        "task_name": past.begin.get("name", record.case.task),
        "instruction": past.begin.get("instruction") or past.begin.get("name", ""),
        "episode": past.number,
        "began": past.begin.get("at"),
        "ended": end.get("at"),
        "outcome": record.outcome.value,
        "success": past.success,
        "judged_by": "harness" if past.success is not None else "",
        "first_frame_sha256": past.first_sha256,
        "decision": detail(decision, spread) if decision else {},
        "notes": end.get("notes", []),
        "frames": end.get("frames", []),
    }
    left_out = {"experiment", "case", "cognition", "execution", "distance_m", "path_m", "angle_rad", "simulated_s"}
    return json_bytes(
        about | {key: value for key, value in asdict(record).items() if key not in about.keys() | left_out}
    )


def write_trial(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a trial, trial.json last and whole; those that are the same stay."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            path = folder / name
            if name != "trial.json":
                path.write_bytes(content)
            elif not path.is_file() or path.read_bytes() != content:
                write_file(path, content)
    except OSError as error:
        raise InfrastructureError(f"cannot write {folder}: {error.strerror or error}") from None


def amend(path: Path, episodes: Sequence[Past], found: Scores) -> None:
    """Write into run.json what follows from all episodes: counts, pairs, added latency, spreads and floors.

    Raises InfrastructureError, and leaves the file as it is, if it cannot be read any more.
    """
    pairs = pairs_of(episodes)
    about = json_object(path / "run.json")
    if about is None:
        raise InfrastructureError(f"{path / 'run.json'} cannot be read any more: put the file back from a copy")
    about |= {
        "latency": latency(episodes),
        "episodes": asdict(counts(episodes)),
        "successes": [asdict(one) for one in successes(episodes)],
        "pairs": {"kept": len(pairs.kept), "alone": pairs.alone, "broken": [asdict(one) for one in pairs.broken]},
        "without_decision": dict(Counter(one.why for _, one in sorted(found.decisions.items()) if one.total is None)),
        "scenes_that_differ_between_agents": [f"{task}.{scene}" for task, scene in different_scenes(episodes)],
        "decision": {
            agent: {
                "width": spread.width.tolist(),
                "rows": spread.rows,
                "floors": dict(found.floors.get(agent, {})),
            }
            for agent, spread in sorted(found.spreads.items())
        },
    }
    write_file(path / "run.json", json_bytes(about))
