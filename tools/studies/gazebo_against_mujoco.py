"""Compare a run in Gazebo with the same in the embedded cell: a page and its picture.

.venv/bin/python tools/studies/gazebo_against_mujoco.py GAZEBO_RUN docs

The directory of the run in Gazebo has `final_states.json` of `tools/studies/final_states.py` besides its own files. The
run in the embedded cell is carried out here, in its folder `mujoco`, unless it is there.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup

from merton.experiment.local import LocalPorts
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner, run_all
from merton.experiment.trial import TrialReport
from merton.leaderboard.snapshot import store as snapshots
from merton.pages.svg import marker, tag
from merton.results.records import Outcome, TrialRecord
from merton.results.store import ResultStore
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval, mean_scatter, wilson
from merton.study import floors, outputs
from merton.world.tasks import TASKS, parse

HEAD = """# Gazebo against MuJoCo

Made by `tools/studies/gazebo_against_mujoco.py` from two runs of `config/experiments/gazebo_against_mujoco.yaml`: do
not edit. The same scenes, agents and distortions in both; physics and renderers differ. Intervals are 95 %. A scene is
a task and a seed: its trials count as one in every interval, and there are {scenes} scenes, {each} of each task.
Versions, and how the run went: [Gazebo](gazebo.md#what-was-checked).
"""
SCORES = """## Scores

Over all tasks that the agent knows. The oracle reads the simulator's state, so its blurred trials repeat the
undistorted ones; `servo` looks. The floor of a decision score is its value for another scene of the same task.
"""
TASKS_HEAD = """## Tasks, undistorted

Distances [mm] are between the final positions in the two simulators in the oracle's trials, the largest of the scenes:
of the tool centre point, and of the thing that the task moves. The last column is that of the thing between two trials
in Gazebo that differ in nothing: smaller differences between the simulators are not resolved. A knob turns
in its place.
"""
STATES = "final_states.json"
PICTURE = "gazebo_against_mujoco.svg"
Value = Callable[[TrialRecord], float]


@dataclass(frozen=True)
class Finished:
    """A trial, the tool's final position (3,) and those of things, all in `base_link` [m]."""

    record: TrialRecord
    tool_m: np.ndarray
    things_m: dict[str, np.ndarray]
    moved: str
    """The thing that the task moves."""


Pair = tuple[Finished, Finished]
"""One trial: in Gazebo, in MuJoCo."""


@dataclass(frozen=True)
class Run:
    """A run: its trials by id, and how many a fault of the infrastructure ended."""

    directory: RunDirectory
    trials: dict[str, Finished]
    faults: int

    @classmethod
    def read(cls, path: Path) -> Run:
        directory = RunDirectory(path)
        records = directory.records()
        states = json.loads((path / STATES).read_text())
        done = [record for record in records if record.outcome is not Outcome.INFRASTRUCTURE]
        trials = {record.id: _finished(path, record, states.get(record.id, {})) for record in done}
        return cls(directory, trials, len(records) - len(done))


def embedded_run(experiment: Path, runs: Path) -> Path:
    """Carry an experiment out in the embedded cell, and write down where everything is at the end of each trial."""
    run = RunDirectory.create(runs, experiment, "embedded")
    states = {}
    with ResultStore(run.database) as store, LocalPorts() as ports:

        def look(report: TrialReport) -> None:
            things = ports.cell.scene_state().objects
            states[report.record.id] = {thing.name: thing.base_from_object[:3, 3].tolist() for thing in things}

        runner = Runner(run.spec, run.id, ports, run.reference_run, look)
        run_all(runner, run, {}, store.record, on_trial=lambda *_: None, on_fault=print)
    run.write_json(STATES, states)
    return run.path


def _finished(path: Path, record: TrialRecord, state: dict[str, list[float]]) -> Finished:
    details = json.loads((path / "trials" / record.id / "trial.json").read_text())
    command = parse(details["instruction"])
    moved = str(command.target) if command.verb == "cover" else command.object
    things_m = {name: np.array(place) for name, place in state.items()}
    return Finished(record, np.array(details["final_tcp"])[:3, 3], things_m, moved)


def succeeded(trial: TrialRecord) -> float:
    return float(trial.outcome is Outcome.SUCCESS)


def decision(trial: TrialRecord) -> float:
    assert trial.decision is not None
    return trial.decision


def scenes(pairs: Sequence[Pair]) -> list[int]:
    """A number per pair, the same for trials of one scene."""
    names = [(one.record.case.task, one.record.case.seed) for one, _ in pairs]
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    return [numbers[name] for name in names]


def share(pairs: Sequence[Pair], side: int, value: Value) -> str:
    """The mean of a value in 0..1 on one side of pairs, and its interval."""
    values = [value(pair[side].record) for pair in pairs]
    return f"{np.mean(values):.2f} {mean_interval(values, scenes(pairs)):.2f}"


def difference(pairs: Sequence[Pair], value: Value) -> str:
    """The mean of Gazebo's value less MuJoCo's in the same trial, its interval, and whether it is resolved."""
    values, groups = [value(one.record) - value(other.record) for one, other in pairs], scenes(pairs)
    if not np.any(np.abs(values) > 5e-4):
        n = len(set(groups))
        return f"none in any of {n} scenes: fewer than {100 * wilson(0, n)[1]:.0f} % differ"
    scatter = mean_scatter(values, groups)
    between = Interval(np.mean(values) - scatter.half_width, np.mean(values) + scatter.half_width)
    return f"{np.mean(values):+.2g} {between:+.2g}" + (", not resolved" if between.low <= 0 <= between.high else "")


def apart_mm(one: Finished, other: Finished) -> tuple[float, float]:
    """Distance of the tool's final positions, and of those of the thing that is moved, NaN if unknown [mm]."""
    places = [trial.things_m.get(one.moved) for trial in (one, other)]
    thing = np.nan if places[0] is None or places[1] is None else 1000 * np.linalg.norm(places[0] - places[1])
    return 1000 * float(np.linalg.norm(one.tool_m - other.tool_m)), float(thing)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Markdown."""
    cells = [" | ".join(map(str, row)) for row in [head, ["---"] * len(head), *rows]]
    return [*(f"| {row} |" for row in cells), ""]


def time_rows(runs: tuple[Run, Run]) -> Iterable[list[object]]:
    for name, run in zip(("Gazebo", "MuJoCo"), runs, strict=True):
        kept = [trial.record for trial in run.trials.values()]
        wall_s, simulated_s = (
            np.median([getattr(record, key) for record in kept]) for key in ("wall_s", "simulated_s")
        )
        yield [name, len(kept), run.faults, f"{wall_s:.1f}", f"{simulated_s:.1f}"]


def chosen(pairs: Sequence[Pair], agent: str, task: str = "", *, reference: bool = True) -> list[Pair]:
    """The pairs of an agent, undistorted or distorted, of a task or of all."""
    records = ((pair, pair[0].record) for pair in pairs)
    return [
        pair
        for pair, record in records
        if (record.agent, record.case.is_reference) == (agent, reference) and task in ("", record.case.task)
    ]


def task_rows(pairs: Sequence[Pair], again: dict[str, Pair]) -> Iterable[list[str]]:
    """A row for each task: how often each agent succeeds without distortion, and how far apart the oracle ends."""
    for task in [name for name in TASKS if chosen(pairs, "oracle", name)]:
        row = [f"`{task}`"]
        for agent in ("oracle", "servo"):
            mine = chosen(pairs, agent, task)
            refused = all(trial.record.outcome is Outcome.INVALID_ACTION for pair in mine for trial in pair)
            counts = (f"{sum(succeeded(pair[side].record) for pair in mine):.0f}" for side in (0, 1))
            row += ["refused"] * 2 if refused else [f"{count} of {len(mine)}" for count in counts]
        apart = np.array([apart_mm(*pair) for pair in chosen(pairs, "oracle", task)])
        row += [f"{np.max(apart[:, column]):.1f}" for column in (0, 1)]
        repeated = [apart_mm(*pair)[1] for name, pair in again.items() if pair[0].record.case.task == task]
        yield [*row, f"{max(repeated):.1f}" if repeated else ""]


def repetitions(run: Run) -> dict[str, Pair]:
    """The oracle's distorted trials are its undistorted ones again, as it looks at no image."""
    twins = {
        name: name.replace(".reference.0", ".gaussian_blur.3") for name in run.trials if name.startswith("oracle.")
    }
    return {
        name: (run.trials[name], run.trials[twin])
        for name, twin in twins.items()
        if twin != name and twin in run.trials
    }


def floor_of(run: Run, agent: str) -> str:
    """Chance: the decision for another scene of the same task."""
    records = [trial.record for trial in run.trials.values()]
    found = floors.floors(outputs.read(run.directory.path, records), snapshots.of_trials(records))
    floor = found.get(agent, {}).get("decision")
    return "" if floor is None or floor.floor is None else f"{floor.floor:.2f}"


def score_rows(runs: tuple[Run, Run], pairs: Sequence[Pair]) -> Iterable[list[str]]:
    """A row for each agent and value over all tasks."""
    able = [pair for pair in pairs if not any(one.record.outcome is Outcome.INVALID_ACTION for one in pair)]
    decided = [pair for pair in able if None not in [one.record.decision for one in pair]]
    for agent in ("oracle", "servo"):
        floor = " / ".join(floor_of(run, agent) for run in runs)
        for name, mine, value in (
            ("success, undistorted", chosen(able, agent), succeeded),
            ("success, blurred", chosen(able, agent, reference=False), succeeded),
            ("decision, blurred", chosen(decided, agent, reference=False), decision),
        ):
            if mine:
                shares = [share(mine, side, value) for side in (0, 1)]
                yield [agent, name, *shares, difference(mine, value), floor if value is decision else ""]


def picture(pairs: Sequence[Pair], again: dict[str, Pair]) -> Markup:
    """Chart of the distance of the moved thing's ends: a row a task, a mark a scene; logarithmic, 0.01 to 1000 mm."""
    left, width, step, top = 70.0, 420.0, 22.0, 14.0
    tasks = [name for name in TASKS if chosen(pairs, "oracle", name)]

    def x(distance_mm: float) -> float:
        return left + width * (math.log10(max(distance_mm, 0.01)) + 2) / 5

    bottom = top + step * len(tasks)
    parts = [tag("rect", width=left + width + 20, height=bottom + 60, fill="#fff")]
    for power in range(-2, 4):
        at = x(10.0**power)
        parts.append(tag("line", x1=at, x2=at, y1=top, y2=bottom, stroke="#ddd"))
        parts.append(tag("text", f"{10.0**power:g}", x=at, y=bottom + 16, text_anchor="middle"))
    parts.append(tag("text", "distance of the final positions of the moved thing [mm]", x=left, y=bottom + 34))
    kinds = (
        ("Gazebo to MuJoCo", "#b2182b", chosen(pairs, "oracle")),
        ("Gazebo to Gazebo, repeated", "#2166ac", list(again.values())),
    )
    for index, (label, color, mine) in enumerate(kinds):
        parts.append(tag("g", marker(index, left + 5 + 200 * index, bottom + 48), fill=color, stroke=color))
        parts.append(tag("text", label, x=left + 14 + 200 * index, y=bottom + 52))
        for pair in mine:
            row = tasks.index(pair[0].record.case.task)
            at, thing_mm = top + step * (row + 0.35 + 0.3 * index), apart_mm(*pair)[1]
            if not math.isnan(thing_mm):
                parts.append(tag("g", marker(index, x(thing_mm), at), fill=color, stroke=color))
    parts += [
        tag("text", task, x=left - 8, y=top + step * (row + 0.7), text_anchor="end") for row, task in enumerate(tasks)
    ]
    view = f"0 0 {left + width + 20:g} {bottom + 60:g}"
    return tag("svg", *parts, xmlns="http://www.w3.org/2000/svg", viewBox=view, font_family="sans-serif", font_size=12)


def page(runs: tuple[Run, Run], pairs: Sequence[Pair], again: dict[str, Pair]) -> str:
    """The whole page."""
    count = len(set(scenes(pairs)))
    tasks = {pair[0].record.case.task for pair in pairs}
    lines = [HEAD.format(scenes=count, each=count // len(tasks)), SCORES]
    lines += table(
        ["agent", "value", "in Gazebo", "in MuJoCo", "difference", "floor, Gazebo / MuJoCo"], score_rows(runs, pairs)
    )
    lines += [TASKS_HEAD]
    head = [
        "task",
        "oracle in Gazebo",
        "in MuJoCo",
        "servo in Gazebo",
        "in MuJoCo",
        "tool apart",
        "thing apart",
        "thing apart, Gazebo repeated",
    ]
    lines += table(head, task_rows(pairs, again))
    lines += [f"![How far apart the moved thing ends, by task](../images/{PICTURE})", "", "## Time", ""]
    head = [
        "",
        "trials",
        "faults of the infrastructure",
        "wall time of a trial [s], median",
        "simulated time of a trial [s], median",
    ]
    lines += table(head, time_rows(runs))
    return "\n".join(lines).rstrip() + "\n"


def main(gazebo: Path, docs: Path) -> None:
    mujoco = gazebo / "mujoco" / "embedded"
    if not (mujoco / STATES).exists():
        embedded_run(gazebo / "experiment.yaml", mujoco.parent)
    runs = Run.read(gazebo), Run.read(mujoco)
    names = sorted(runs[0].trials.keys() & runs[1].trials.keys())
    pairs, again = [(runs[0].trials[name], runs[1].trials[name]) for name in names], repetitions(runs[0])
    (docs / "lab" / "gazebo_against_mujoco.md").write_text(page(runs, pairs, again), encoding="utf-8")
    (docs / "images" / PICTURE).write_text(str(picture(pairs, again)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
