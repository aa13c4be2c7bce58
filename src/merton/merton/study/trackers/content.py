"""All that a tracker gets of a run: dose-response curves with intervals, drops, trials, settings and files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.pages.words import flat
from merton.results import trial_files
from merton.results.export import table_rows
from merton.results.recorded_world import in_brief
from merton.results.records import TrialRecord
from merton.results.store import ResultStore
from merton.results.text import plain_name
from merton.statistics.means import mean_interval
from merton.study import beside, outputs, sections

SCALES = {"success": 1.0, "cognition": 1.0, "decision": 1.0, "execution": 100.0}
"""Score to its largest value, as in trials.csv."""
FILES = (
    *("report.html", "trials.csv", "model_scores.csv", "thresholds.csv"),
    *("run.json", "experiment.yaml", "design.yaml"),
)
"""The files of a run that a tracker keeps beside its curves, as far as there are."""
LONGEST = 80
"""Characters of a name: three of them are one of MLflow, which takes 250."""


@dataclass(frozen=True)
class Point:
    """The mean of a score at one level, with its 95 % interval, clustered by scene.

    Attributes:
        level: 0 (undistorted) .. 5.
        mean, low, high: in the units of trials.csv: 0..1, of execution 0..100.
        trials, scenes: with this score.
    """

    level: int
    mean: float
    low: float
    high: float
    trials: int
    scenes: int


@dataclass(frozen=True)
class Curve:
    """The dose-response curve of an agent under one distortion: a point for each level that has the score."""

    score: str
    agent: str
    distortion: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Table:
    """A table of the record: the names of its columns, and its rows; None is an unknown value."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Content:
    """A run as a tracker gets it.

    Attributes:
        run: its id.
        created: when it was begun.
        settings: of run.json, nested names joined by dots: seeds, versions, hashes.
        curves: of every score, agent and distortion.
        summary: such as "drop/servo" to its value; shares 0..1, drops -1..1 with their 95 % interval.
        tables: "trials" and "drops", as `merton results export` writes them.
        files: of the run, of `FILES`.
    """

    run: str
    created: datetime
    settings: Mapping[str, str]
    curves: Sequence[Curve]
    summary: Mapping[str, float]
    tables: Mapping[str, Table]
    files: Sequence[Path]

    @cached_property
    def identity(self) -> str:
        """16 hexadecimal digits that tell this run from another of its name, however many trials it has by now."""
        about = [self.run, self.created.isoformat(), *(self.settings.get(key, "") for key in _SPECIFICATIONS)]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]

    @cached_property
    def sha256(self) -> str:
        """Of all numbers and settings, 64 hexadecimal digits: a tracker that has them gets nothing twice."""
        trials = self.tables["trials"]
        all_of_it = [self.identity, dict(self.settings), trials.columns, trials.rows]
        return hashlib.sha256(json.dumps(all_of_it, sort_keys=True).encode()).hexdigest()

    def by_level(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Each level with its values by name: "success/servo/jpeg", and below that low, high and trials."""
        for level in sorted({point.level for curve in self.curves for point in curve.points}):
            values: dict[str, float] = {}
            for curve in self.curves:
                name = f"{curve.score}/{plain(curve.agent)}/{plain(curve.distortion)}"
                for point in curve.points:
                    if point.level == level:
                        values |= {name: point.mean, f"{name}/low": point.low, f"{name}/high": point.high}
                        values[f"{name}/trials"] = float(point.trials)
            yield level, values


_SPECIFICATIONS = ("experiment_sha256", "design_sha256", "seed")


def plain(name: str) -> str:
    """A name as every tracker takes it: letters, digits, points, dashes, underscores; distinct ones stay distinct."""
    return plain_name(name, "[^A-Za-z0-9_.-]", LONGEST, "_")


def content(run: Path) -> Content:
    """Read a run whose report is written; raises InputError if its run.json or record is missing or unreadable."""
    facts = trial_files.json_object(run / "run.json")
    if facts is None:
        raise InputError(f"{run / 'run.json'} is missing or is not a JSON object")
    with ResultStore(run / "results.sqlite", read_only=True) as store:
        records = store.records()
        further = beside.by_trial(beside.scored(outputs.read(run, records)))
        trials, drops = _table(store, "trials", further), _table(store, "drops", {})
    return Content(
        run=str(facts.get("id") or run.name),
        created=_created(facts),
        settings={name.replace(" · ", "."): text for name, text in flat(in_brief(facts))},
        curves=curves(records),
        summary=dict(_summary(drops)),
        tables={"trials": trials, "drops": drops},
        files=[run / name for name in FILES if (run / name).is_file()],
    )


def curves(records: Sequence[TrialRecord]) -> list[Curve]:
    """All curves of a run that have a point, by score, agent and distortion; level 0 is the same in all of an agent."""
    found = []
    players = sorted((key, mine) for key, mine in sections.by_player(records).items() if key[1] is not None)
    for score in SCALES:
        for (agent, distortion), mine in players:
            points = tuple(_points(score, mine))
            if points:
                found.append(Curve(score, agent, str(distortion), points))
    return found


def _points(score: str, records: Sequence[TrialRecord]) -> Iterator[Point]:
    scale = SCALES[score]
    by_level: dict[int, list[tuple[str, float]]] = {}
    for record in records:
        value = getattr(record, score)
        if value is not None:
            by_level.setdefault(record.case.level, []).append((record.case.scene, float(value)))
    for level, scored in sorted(by_level.items()):
        scenes, values = [scene for scene, _ in scored], [value / scale for _, value in scored]
        low, high = mean_interval(values, scenes)
        mean = sum(values) / len(values)
        yield Point(level, scale * mean, scale * low, scale * high, len(values), len(set(scenes)))


def _table(store: ResultStore, name: str, further: Mapping[str, Mapping[tuple[str, str], float]]) -> Table:
    kinds, rows = table_rows(store, name, further)
    return Table(tuple(map(str, kinds)), tuple(rows))  # a client refuses SQLAlchemy's names, which are a type of theirs


def _summary(drops: Table) -> Iterator[tuple[str, float]]:
    for row in drops.rows:
        values = dict(zip(drops.columns, row, strict=True))
        agent = plain(values.pop("agent"))
        yield from ((f"{name}/{agent}", float(value)) for name, value in values.items())


def _created(facts: Mapping[str, Any]) -> datetime:
    """When the run was begun; the epoch if run.json does not say it, so that the same run is the same run."""
    try:
        created = datetime.fromisoformat(str(facts.get("created")))
    except ValueError:
        return datetime.fromtimestamp(0.0, timezone.utc)
    return created if created.tzinfo else created.replace(tzinfo=timezone.utc)
