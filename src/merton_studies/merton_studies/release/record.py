"""The record of runs: trials, ratings of agents and cases, and boards."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.experiment.run import arm_of
from merton.experiment.run_names import find_run
from merton.leaderboard.snapshot.contents import AgentRow, Snapshot, Standing
from merton.leaderboard.snapshot.store import from_json, of_trials, take, to_json
from merton.pages.words import flat
from merton.progress import OnStep
from merton.results.export import statement_of
from merton.results.recorded_world import in_brief, world_of
from merton.results.records import AgentRecord, TestCase, TrialRecord
from merton.results.store import ResultStore, open_record
from merton.results.tables import json_object
from merton_studies.release.part import DatasetPart
from merton_studies.release.table import TEST, Field, Row, Table

_MADE = (
    "id",
    "created",
    "merton",
    "git",
    "python",
    "packages",
    "arm",
    "calibration",
    "world",
    "seed",
    "design",
    "reference_width_px",
)

TRIAL_FIELDS = (
    Field("experiment", "string", "id of the run"),
    Field("id", "string", "of the trial, unique in its run"),
    Field("scene", "string", "the scene: the unit of every interval"),
    Field("agent", "string", "id of the agent"),
    Field("task", "string", "of the case"),
    Field("seed", "int64", "number of the scene"),
    Field("distortion", "string", "of the images; `reference` for none"),
    Field("level", "int64", "of the distortion, 1 (weak) to 5 (strong); 0 for none"),
    Field("outcome", "string", "success, failure, emergency_stop, invalid_action, abstained or infrastructure"),
    Field("cognition", "float64", "answers to distorted and reference image compared, 0..1"),
    Field("decision", "float64", "first actions on distorted and reference image compared, 0..1"),
    Field("execution", "float64", "0..100; null for a fault of the infrastructure"),
    Field("distance_m", "float64", "between the final tool positions of this run and the reference run [m]"),
    Field("success", "int64", "1 if the task was done, else 0; null for a fault of the infrastructure"),
    Field("progress", "float64", "share of the way to success, 0..1"),
    Field("path_m", "float64", "largest distance between the tool's path and the reference run's [m]"),
    Field("angle_rad", "float64", "between the final tool orientations of both runs, 0..pi [rad]"),
    Field("reference", "string", "the run it is measured against: own, oracle or none"),
    Field("reference_success", "int64", "1 if that run did the task"),
    Field("cut_short", "int64", "1 if the gate ended a chunk of actions before a contact"),
    Field("steps", "int64", "chunks of actions carried out"),
    Field("simulated_s", "float64", "time on the clock of the cell [s]"),
    Field("wall_s", "float64", "time on the wall clock [s]; differs between two runs of one experiment"),
    Field("error_code", "int64", "0 none, 1xx model, 2xx kinematics, 3xx safety, 4xx hardware, 5xx scoring"),
)
"""Columns of a trial, but for its error's message, which may name paths and servers."""
_STANDING = (
    Field("rank", "int64", "place by likelihood, else by AGI-Elo; null without a rating"),
    Field("rating", "float64", "by maximum likelihood [Elo points]"),
    Field("rating_low", "float64", "lower end of its 95 % interval, clustered by scene [Elo points]"),
    Field("rating_high", "float64", "upper end of its 95 % interval, clustered by scene [Elo points]"),
    Field("flag", "string", "`only wins` or `only losses`: the rating is a bound"),
    Field("agi_elo", "float64", "rating by AGI-Elo, mean over shuffles [Elo points]"),
    Field("agi_elo_deviation", "float64", "rating deviation RD [Elo points]"),
    Field("matches", "int64", "rated from so many"),
    Field("score", "float64", "mean score of the matches, 0..1"),
)
AGENT_FIELDS = (
    Field("board", "string", "name of the snapshot"),
    Field("agent", "string", "id of the agent"),
    Field("version", "string", "of the agent; empty if unknown"),
    Field("weights_sha256", "string", "of its weights; empty if unknown"),
    Field("success_undistorted", "float64", "share of undistorted trials that did the task, 0..1"),
    Field("success_distorted", "float64", "the same of the distorted trials paired with them, 0..1"),
    Field("drop", "float64", "success_undistorted less success_distorted, -1..1"),
    Field("drop_low", "float64", "lower end of the 95 % interval of drop, clustered by scene"),
    Field("drop_high", "float64", "upper end of the 95 % interval of drop, clustered by scene"),
    Field("no_drop", "string", "why there is no drop; empty if there is one"),
    *_STANDING,
    Field("score_low", "float64", "lower end of the 95 % interval of score, clustered by scene"),
    Field("score_high", "float64", "upper end of the 95 % interval of score, clustered by scene"),
    Field("trials", "int64", "that ended without a fault of the infrastructure"),
    Field("scenes", "int64", "of its matches"),
)
CASE_FIELDS = (
    Field("board", "string", "name of the snapshot"),
    Field("case", "string", "id of the test case; its rating is its difficulty"),
    Field("source", "string", "where its scores came from; empty for trials"),
    Field("task", "string", "of the case; empty for a foreign one"),
    Field("seed", "int64", "number of the scene"),
    Field("distortion", "string", "of the images"),
    Field("level", "int64", "of the distortion; null for a foreign case"),
    *_STANDING,
)
BOARD_FIELDS = (
    Field("board", "string", "name of the snapshot"),
    Field("group", "string", "how its cases are grouped"),
    Field("agent", "string", "id of the agent"),
    Field("column", "string", "heading of the cell; `total` for the mean of all"),
    Field("rank", "int64", "of the agent in this group; null without a total"),
    Field("score", "float64", "mean score, 0..maximum; null if it is missing"),
    Field("maximum", "float64", "the highest score there is"),
    Field("low", "float64", "lower end of the 95 % interval"),
    Field("high", "float64", "upper end of the 95 % interval"),
    Field("n", "int64", "scores in the mean"),
    Field("scenes", "int64", "of these; 0 where the case is the unit"),
)


def record(runs: Sequence[Path], boards: Sequence[str], progress: OnStep) -> DatasetPart:
    """Trials of runs, and ratings and boards of the runs together and of each board.

    Args:
        runs: their folders, names, or `latest`.
        boards: folders that `merton leaderboard build` wrote, board.json files, or records.
        progress: called with a line of text at the start of each long step.

    Raises:
        InputError: a run or a board does not exist or cannot be rated, a run.json does not name the arm of its run,
            or one run is named twice.
        InfrastructureError: a record cannot be read.
    """
    part, snapshots = DatasetPart(), list[Snapshot]()
    folders = [find_run(run) for run in runs]
    if folders:
        trials = _trials(part, folders)
        progress("rating the runs")
        snapshots.append(_versioned(of_trials(trials, "runs"), folders))
    for board in boards:
        progress(f"reading the board {board}")
        snapshots.append(_snapshot(board))
    if twice := [name for name, times in Counter(one.name for one in snapshots).items() if times > 1]:
        raise InputError(f"two boards have the name {twice[0]!r}: export one of them elsewhere")
    part.tables += [
        Table("ratings_agents", "An agent's rating on a board.", AGENT_FIELDS, lambda: _agents(snapshots)),
        Table("ratings_cases", "A test case's difficulty on a board.", CASE_FIELDS, lambda: _cases(snapshots)),
        Table("boards", "A cell of a board.", BOARD_FIELDS, lambda: _cells(snapshots)),
    ]
    _describe(part, snapshots)
    return part


def _trials(part: DatasetPart, folders: Sequence[Path]) -> list[TrialRecord]:
    """The trials of the runs, whose table and sentences are added to the part."""
    found, arms, worlds = list[TrialRecord](), set[str](), set[str]()
    for folder in folders:
        with ResultStore(folder / "results.sqlite", read_only=True) as store:
            own = store.records()
        if not own:
            raise InputError(f"the run {folder.name} has no trials yet: there is nothing to export")
        if {trial.experiment for trial in own} & {trial.experiment for trial in found}:
            raise InputError(f"the run {folder.name} is named twice, or is a copy of another one that is named")
        found += own
        about = json_object(folder / "run.json")
        name = str(about.get("id", folder.name))
        if world := world_of(about):
            worlds.add(world.shown)
        else:
            arms.add(arm_of(about, folder / "run.json"))
        told = in_brief(about)
        part.provenance += flat({key: told[key] for key in _MADE[1:] if key in told}, f"run {name} · ")
        part.provenance.append((f"run {name} · experiment_sha256", str(about.get("experiment_sha256", ""))))
    outcomes = Counter(trial.outcome.value for trial in found)
    part.shares.append(("trials by outcome", ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items()))))
    agents, scenes = {trial.agent for trial in found}, {trial.case.scene for trial in found}
    where = [f"a simulated or real cell with a {' or '.join(sorted(arms))}"] if arms else []
    where += sorted(worlds)
    part.made.append(
        f"`merton run` let {len(agents)} agents do {len(found)} trials in {len(scenes)} scenes of "
        f"{' and of '.join(where)}; each trial is measured against the undistorted run."
    )
    part.tables.append(Table("trials", "An agent on a test case.", TRIAL_FIELDS, lambda: _rows(folders)))
    part.limits += [
        "Cognition and decision measure faithfulness to the undistorted image, not skill: an agent that does nothing "
        "has the decision 1.",
        "The physics of a simulated cell is not that of a real one.",
        "Trials of one scene are alike: cluster every interval by `scene`.",
        "Messages of errors are left out, because they may name paths and servers; their codes are in `error_code`.",
    ]
    part.privacy.append("Tables of trials hold numbers and ids; pictures of the runs' cameras are not in them.")
    return found


def _versioned(snapshot: Snapshot, folders: Sequence[Path]) -> Snapshot:
    """The snapshot with versions and hashes of weights of its agents, as the records have them."""
    known = dict[str, AgentRecord]()
    for folder in folders:
        with ResultStore(folder / "results.sqlite", read_only=True) as store:
            known |= {agent.id: agent for agent in store.agents()}
    rows = []
    for row in snapshot.agents:
        about = known[row.id]
        rows.append(replace(row, version=about.version or "", weights_sha256=about.weights_sha256 or ""))
    return replace(snapshot, agents=tuple(rows))


def _rows(folders: Sequence[Path]) -> Iterator[tuple[str, Row]]:
    with ExitStack() as stack:
        for folder in folders:
            store = stack.enter_context(ResultStore(folder / "results.sqlite", read_only=True))
            with store.database.reading() as connection:
                for found in (
                    connection.execution_options(yield_per=4096).execute(statement_of(connection, "trials")).mappings()
                ):
                    of_case = found["task"], found["scene"], found["distortion"], found["level"], found.get("group", "")
                    case = TestCase(*of_case)
                    yield TEST, {**found, "seed": found["scene"], "scene": case.scene}


def _snapshot(board: str) -> Snapshot:
    path = Path(board)
    file = path / "board.json" if path.is_dir() else path
    if file.suffix == ".json":
        try:
            return from_json(file.read_bytes())
        except OSError as error:
            raise InputError(
                f"{board} holds no board: cannot read {file.name}: {error.strerror}; name a folder of `merton "
                "leaderboard build`, its board.json, or a record"
            ) from None
    with open_record(board, read_only=True) as store:
        return take(store, checks=False)


def _standing(likelihood: Standing | None, agi_elo: Standing | None) -> dict[str, Any]:
    first, low, high = likelihood or agi_elo, None, None
    if likelihood and likelihood.interval:
        low, high = likelihood.interval
    return {
        "rank": first and first.rank,
        "rating": likelihood and likelihood.mean,
        "rating_low": low,
        "rating_high": high,
        "flag": first.flag if first else "",
        "agi_elo": agi_elo and agi_elo.mean,
        "agi_elo_deviation": agi_elo and agi_elo.deviation,
    }


def _agents(snapshots: Sequence[Snapshot]) -> Iterator[tuple[str, Row]]:
    for snapshot in snapshots:
        for one in snapshot.agents:
            low, high = one.score_interval or (None, None)
            plain = {name: getattr(one, name) for name in ("version", "weights_sha256", "matches", "score", "trials")}
            own = {"board": snapshot.name, "agent": one.id, "score_low": low, "score_high": high, "scenes": one.scenes}
            yield TEST, plain | own | _drop(one) | _standing(one.likelihood, one.agi_elo) | {"rank": one.rank}


def _drop(one: AgentRow) -> dict[str, Any]:
    low, high = one.drop.interval if one.drop else (None, None)
    return {
        "success_undistorted": one.drop and one.drop.undistorted,
        "success_distorted": one.drop and one.drop.distorted,
        "drop": one.drop and one.drop.points,
        "drop_low": low,
        "drop_high": high,
        "no_drop": one.no_drop,
    }


def _cases(snapshots: Sequence[Snapshot]) -> Iterator[tuple[str, Row]]:
    names = ("source", "task", "seed", "distortion", "level", "matches", "score")
    for snapshot in snapshots:
        for one in snapshot.cases:
            plain = {name: getattr(one, name) for name in names}
            yield TEST, plain | {"board": snapshot.name, "case": one.id} | _standing(one.likelihood, one.agi_elo)


def _cells(snapshots: Sequence[Snapshot]) -> Iterator[tuple[str, Row]]:
    for snapshot in snapshots:
        for board in snapshot.boards:
            for row in board.rows:
                agent = snapshot.agents[row.agent].id if isinstance(row.agent, int) else row.agent
                for column, cell in zip(("total", *board.columns), (row.total, *row.cells), strict=True):
                    low, high = cell.interval or (None, None)
                    yield (
                        TEST,
                        {
                            "board": snapshot.name,
                            "group": board.name,
                            "agent": agent,
                            "column": column,
                            "rank": row.rank,
                            "score": cell.score,
                            "maximum": board.maximum,
                            "low": low,
                            "high": high,
                            "n": cell.n,
                            "scenes": cell.scenes,
                        },
                    )


def _describe(part: DatasetPart, snapshots: Sequence[Snapshot]) -> None:
    for one in snapshots:
        name = f"board {one.name}"
        facts = {"Merton": one.merton_version, "metric": one.metric, "seed of AGI-Elo": one.seed}
        facts |= {"shuffles of AGI-Elo": one.shuffles, "sha256 of inputs": one.inputs_sha256}
        facts |= {"sha256 of the snapshot": hashlib.sha256(to_json(one)).hexdigest()}
        part.provenance += [(f"{name} · {key}", str(value)) for key, value in facts.items()]
        part.made.append(f"Ratings of the board `{one.name}`: {one.method}")
        if one.chance_floor is not None:
            part.floors.append((f"execution of doing nothing ({name}), 0..100", f"{one.chance_floor:.2f}"))
        part.limits += [f"Board `{one.name}`: {warning}" for warning in one.warnings]
