"""The folder of a run of episodes, and the only writer of it.

The journal `episodes.jsonl` is the truth: a line when an episode begins and one when it ends, which is on the disk
before the caller goes on. The record and the trials' files follow from it and are made again where they are missing.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from merton.config import Model, load, validated
from merton.episodes.assignment import Assignment
from merton.episodes.design import UNDISTORTED, Condition, Design, condition_of
from merton.episodes.episode import Episode
from merton.episodes.folder import (
    DESIGN,
    PARTS_RECORD,
    amend,
    check_is_run,
    check_unchanged,
    make_folder_of_run,
    register,
    register_scenes,
    rewrite,
    trial_json,
    write_trial,
)
from merton.episodes.history import Counts, Past, counts, history, recorded
from merton.episodes.journal import JOURNAL, Journal, read_lines
from merton.episodes.names import safe_name
from merton.episodes.pairs import pairs_of
from merton.episodes.scores import Scores, score
from merton.errors import InputError
from merton.experiment.fields import Identifier
from merton.experiment.subsets import WHOLE
from merton.files import locked_folder
from merton.results.database import RUN_FILE
from merton.results.records import TrialRecord

WORK = "recorder of episodes"
DIED = "the process that recorded it ended before it did"
CLOSED = "the run was closed before it ended"


class EpisodesRun:
    """An open run of episodes, which no other process can write until it is closed. Safe to share between threads.

    Attributes:
        path: its folder.
        id: of the experiment in its record.
        design: the conditions of its scenes.
        said: what was repaired when it was opened, in sentences.
    """

    def __init__(self, path: Path) -> None:
        """Open an existing run and repair what a killed process left; see `open`."""
        self.path = path.resolve()
        check_is_run(path)
        self._until = ExitStack()
        self._lock = threading.RLock()
        self._open: dict[int, Episode] = {}
        self._closed = False
        try:
            self._until.enter_context(locked_folder(self.path, WORK))
            check_unchanged(self.path)
            self.design: Design = load(self.path / DESIGN, Design)
            self._journal = Journal(self.path / JOURNAL)
            self._until.callback(self._journal.close)
            self.id, self._stores = register(self.path, self.design, self._until)
            self.said = tuple(self._repair())
        except BaseException:
            self._until.close()
            raise

    @classmethod
    def create(
        cls, runs: Path, design: Design | Path, name: str | None = None, source: Mapping[str, Any] | None = None
    ) -> EpisodesRun:
        """Start a new run below `runs` and open it: its folder appears whole, or not at all.

        Args:
            runs: made if need be.
            design: a file, which is copied into the run, or a design.
            name: of the run; None makes one of the design's name and the time.
            source: where the episodes come from: protocol, upstream, harness; part of run.json.

        Raises:
            InputError: the name is taken or not a plain name, the folder cannot be written, or the design is wrong.
        """
        return cls(make_folder_of_run(runs, design, name, source or {}))

    @classmethod
    def open(cls, path: Path) -> EpisodesRun:
        """Open a run to go on with it.

        Raises:
            InputError: there is none, another process has it open, or its design is not the one that it began with.
            FileError: its design or its journal is damaged.
        """
        return cls(Path(path))

    def _repair(self) -> list[str]:
        """Give up the episodes of a process that was killed, and make the record again where lines have no row."""
        said = [self._journal.repaired] if self._journal.repaired else []
        episodes = history(self._journal.lines)
        self._next = max((past.number for past in episodes), default=-1) + 1
        given_up = [past for past in episodes if past.end is None and past.lost is None]
        for past in given_up:
            self._journal.append({"event": "lost", "episode": past.number, "at": _now(), "why": DIED})
        if given_up:
            said.append(
                f"{len(given_up)} begun episodes were lost with their process; their conditions are given again"
            )
        self._assignment = Assignment(self.design)
        for past in history(self._journal.lines):
            if past.is_recorded:
                self._assignment.take(*past.key)
        if missing := self._missing():
            self.refresh()
            said.append(f"{missing} results of the journal were not yet in the record and are entered")
        return said

    def _missing(self) -> int:
        there = {name: {(item.experiment, item.id) for item in store.records()} for name, store in self._stores.items()}
        known = set().union(*there.values())
        return sum((past.record(self.id).experiment, past.id) not in known for past in recorded(self.episodes()))

    def episodes(self) -> list[Past]:
        """All episodes that were begun, in their order; without their answers (`folder.EpisodesFolder` has those)."""
        return history(self._journal.lines)

    @property
    def counts(self) -> Counts:
        """How many episodes there were so far."""
        with self._lock:
            return counts(self.episodes())

    def begin(
        self, agent: str, task: str, scene: int, condition: Condition | None = None, *, instruction: str = ""
    ) -> Episode:
        """Begin an episode. When this returns, its beginning is in the journal, and on the disk with the next end.

        Args:
            agent: id of the policy.
            task: as the program calls it; made safe for names of files and ids of cases (`names.safe_name`).
            scene: number of the scene within the task, >= 0: equal numbers are equal scenes.
            condition: asked for by the program; None takes the next of the design. Beyond the design's the episode
                is shown undistorted pictures, or those that were asked for, and is not recorded.
            instruction: the task in words, for trial.json.

        Raises:
            InputError: a name or number that cannot be used, or a condition that does not exist.
            InfrastructureError: the disk refuses.
        """
        _check(agent, scene)
        safe = safe_name(task)
        with self._lock:
            self._check_open()
            chosen = self._assignment.next(agent, safe, scene) if condition is None else self._checked(condition)
            is_new = chosen is not None and self._assignment.take(agent, safe, scene, chosen)
            shown = UNDISTORTED if chosen is None else chosen
            try:
                episode = Episode(self, self._next, agent, safe, task, scene, shown, is_new)
                self._journal.append(
                    {
                        "event": "begin",
                        "episode": episode.number,
                        "at": _now(),
                        "agent": agent,
                        "task": safe,
                        "name": task,
                        "scene": scene,
                        "distortion": shown.distortion,
                        "level": shown.level,
                        "part": shown.part,
                        "asked_for": condition is not None,
                        "recorded": is_new,
                        "instruction": instruction,
                    },
                    durable=False,  # it tells no result, and a policy waits
                )
            except BaseException:
                if is_new:
                    self._assignment.give_back(agent, safe, scene, shown)
                raise
            self._next += 1
            self._open[episode.number] = episode
            return episode

    def scene_to_do(self, agent: str, task: str) -> int:
        """The first scene in which a condition of the design is left for an agent, in tasks named as for `begin`."""
        with self._lock:
            safe, scene = safe_name(task), 0
            while self._assignment.next(agent, safe, scene) is None:
                scene += 1
            return scene

    def _checked(self, condition: Condition) -> Condition:
        """A condition that was asked for, if there is such a one: of any distortion and level, and a part of the
        design's."""
        parts = {WHOLE, *self.design.dissection.designs}
        if condition.part not in parts:
            raise InputError(f"unknown part {condition.part!r}; choose one of: {', '.join(sorted(parts))}")
        return condition_of(condition.distortion, condition.level, condition.part)

    def ended(self, episode: Episode, success: bool | None, why: str) -> bool:
        """See `Episode.end`."""
        files = {} if episode.ended or not episode.recorded else episode.files()  # slow: other episodes go on meanwhile
        with self._lock:
            if episode.ended:
                return False
            self._check_open()
            line = {"event": "end", "episode": episode.number, "at": _now(), **episode.summary(success, why)}
            if not episode.recorded:
                line |= {"answers": [], "actions": [], "frames": []}
            else:
                past = Past(episode.number, self._begun(episode.number), line)
                write_trial(self.path / past.folder, {**files, "trial.json": trial_json(past, self.id)})
            self._journal.append(line)
            episode.ended = True
            self._open.pop(episode.number, None)
            if episode.recorded:
                record = past.record(self.id)
                self._stores[RUN_FILE if record.experiment == self.id else PARTS_RECORD].record(record)
            return True

    def lost(self, episode: Episode, why: str) -> bool:
        """See `Episode.lost`."""
        with self._lock:
            if episode.ended:
                return False
            self._check_open()
            self._journal.append({"event": "lost", "episode": episode.number, "at": _now(), "why": why})
            episode.ended = True
            self._open.pop(episode.number, None)
            if episode.recorded:
                self._assignment.give_back(episode.agent, episode.task, episode.scene, episode.condition)
            return True

    def _begun(self, number: int) -> dict[str, Any]:
        return next(line for line in reversed(self._journal.of(number)) if line["event"] == "begin")

    def told(self, number: int, success: bool) -> bool:
        """Enter the success of an episode that ended without one; False if the same was told before.

        The record follows with the next `refresh`.

        Raises:
            InputError: there is no such episode, it has not ended or is not recorded, or has another success.
        """
        with self._lock:
            self._check_open()
            past = next(iter(history(self._journal.of(number))), None)
            if past is None or past.end is None or not past.is_recorded:
                raise InputError(f"episode {number} has no result in the record that could be completed")
            if past.success is not None:
                if past.success != success:
                    raise InputError(
                        f"episode {number} ({past.id}) has success {str(past.success).lower()} already, and the new "
                        f"one is {str(success).lower()}"
                    )
                return False
            self._journal.append({"event": "result", "episode": number, "at": _now(), "success": success})
            return True

    def refresh(self) -> None:
        """Make the record, the trials' files and run.json what the journal says, with all decision scores."""
        with self._lock:
            self._check_open()
            episodes = history(read_lines(self._journal.path))
            found = score(self.design, episodes)
            why = {(one.trial, one.part): one.why for one in pairs_of(episodes).broken}
            self._write_records(recorded(episodes), found, why)
            register_scenes(self._stores[RUN_FILE], [past for past in episodes if past.condition.part == WHOLE])
            for past in recorded(episodes):
                content = trial_json(past, self.id, found.decisions.get(past.number), found.spreads.get(past.agent))
                write_trial(self.path / past.folder, {"trial.json": content})
            amend(self.path, episodes, found)

    def _write_records(self, episodes: list[Past], found: Scores, broken: Mapping[tuple[str, str], str]) -> None:
        by_store: dict[str, list[TrialRecord]] = {name: [] for name in self._stores}
        for past in episodes:
            decision = found.decisions.get(past.number)
            why = broken.get((past.id, past.condition.part), "")
            record = past.record(self.id, decision.total if decision else None, why)
            by_store[RUN_FILE if record.experiment == self.id else PARTS_RECORD].append(record)
        for name, records in by_store.items():
            rewrite(self._stores[name], records)

    def close(self) -> None:
        """Give up open episodes, compute the scores, and let other processes write the run; harmless to repeat."""
        with self._lock:
            if self._closed:
                return
            try:
                for episode in list(self._open.values()):
                    self.lost(episode, CLOSED)
                self.refresh()
            finally:
                self._closed = True
                self._until.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InputError(f"the run {self.path} is closed")

    def __enter__(self) -> EpisodesRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Agent(Model):
    agent: Identifier


def _check(agent: str, scene: int) -> None:
    validated(_Agent, {"agent": agent}, "")
    if isinstance(scene, bool) or not isinstance(scene, int) or not 0 <= scene < 2**63:
        raise InputError(f"the number of a scene must be a whole number in 0 .. 2^63 - 1, got {scene!r}")


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
