"""Forks: what goes on from a snapshot is what would have gone on without one, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from merton.errors import InputError
from merton.execution.gate.stop import StopEvent
from merton.experiment.forks import run_forked
from merton.experiment.local import LocalPorts
from merton.experiment.plan import AgentSpec, DistortedPart, ExperimentSpec, Trial
from merton.experiment.trial import TrialReport, TrialRun, run_trial
from merton.results.records import Reference
from merton.simulation.cell import SimulatedCell


@pytest.fixture(scope="module")
def ports(renders: None) -> Iterator[LocalPorts]:
    with LocalPorts() as ports:
        yield ports


def state(cell: SimulatedCell) -> tuple[bytes, int, object, bool, bytes]:
    """All of MuJoCo's state, the clock, the judgement, the stop, and the contacts."""
    full = mujoco.mjtState.mjSTATE_INTEGRATION.value
    values = np.empty(mujoco.mj_stateSize(cell.model, full))
    mujoco.mj_getState(cell.model, cell.data, values, full)
    return values.tobytes(), cell.time_ns, cell.judged(), cell.stopped, cell.data.contact.geom.tobytes()


def go_on(cell: SimulatedCell) -> list[object]:
    """States along the rest of a motion, of a grip, and of a motion into the table."""
    states = []
    for joints in (0.1, -0.6):
        while cell.busy:
            cell.advance(0.05)
            states.append(state(cell))
        cell.command_gripper(0.02)
        cell.command_trajectory([2.0], [cell.joints_rad + np.array([joints, -joints, 0, 0, 0, 0])])
    while cell.busy:
        cell.advance(0.05)
    return [*states, state(cell), cell.contact]


@pytest.mark.parametrize(("task", "seed"), [("pick", 0), ("test-pick", 4)])
def test_a_cell_goes_on_from_a_snapshot_as_without_one(task: str, seed: int) -> None:
    cell = SimulatedCell()
    cell.reset(task, seed)
    cell.command_trajectory([1.5], [cell.joints_rad + 0.2])
    cell.command_gripper(0.01)
    cell.advance(0.7)  # in mid-motion
    snapshot = cell.snapshot()
    first = go_on(cell)
    cell.reset("insert", 1)  # another model, a stop
    cell.stop()
    for _ in range(2):  # a snapshot may be used again
        cell.restore(snapshot)
        assert go_on(cell) == first
    cell.reset(task, seed)
    assert cell.time_ns > 0
    other = SimulatedCell()
    other.restore(snapshot)
    assert go_on(other) == first


def experiment(distortion: str = "max_darken", max_steps: int = 5, **part: object) -> ExperimentSpec:
    return ExperimentSpec(
        name="forks",
        agents=(AgentSpec(id="servo", vla="servo"), AgentSpec(id="glance", vla="glance")),
        tasks=("pick",),
        distortions=(distortion,),
        levels=(5,),
        max_steps=max_steps,
        sensor="d455",
        distort=DistortedPart(**part),
    )


def told(report: TrialReport) -> tuple[object, ...]:
    """All that a trial leaves behind, but its wall time."""
    details = {key: value for key, value in report.details.items() if key != "wall_s"}
    pixels = [(picture.reference.tobytes(), picture.distorted.tobytes()) for picture in report.pictures]
    return replace(report.record, wall_s=0.0), details, pixels


@pytest.mark.usefixtures("renders")
@pytest.mark.parametrize("agent", [0, 1])
def test_a_forked_run_is_the_trial_of_its_own_experiment(ports: LocalPorts, agent: int) -> None:
    parts = [{}, {"steps": (0,)}, {"steps": (1, 2)}, {"steps": (0, 1, 3)}, {"cameras": ("side",)}, {"steps": (4,)}]
    specs = [experiment(**part) for part in parts]
    trial = Trial(specs[0].agents[agent], specs[0].cases()[1])
    runs = run_forked(ports, specs, trial)
    for spec, run in zip(specs, runs, strict=True):
        alone = run_trial(ports, spec, "id", trial, None, ())
        assert told(run.report("id", None, (), Reference.OWN)) == told(alone), spec.distort
    assert len({run.view.base_from_tcp.tobytes() for run in runs}) > 1, "they do fork"


def test_a_fork_holds_what_the_hand_held(ports: LocalPorts) -> None:
    spec = experiment()
    run = TrialRun(ports, spec, Trial(spec.agents[0], spec.cases()[0]))
    while ports.world._hand.held() is None:
        run.take_step()
    held, snapshot = ports.world._hand.held(), ports.snapshot()
    ports.reset("reach", 0)
    assert ports.world._hand.held() is None
    ports.restore(snapshot)
    assert ports.world._hand.held() == held


def test_a_fault_of_time_goes_on_in_each_fork_by_itself(ports: LocalPorts) -> None:
    specs = [experiment("frozen", 4, **part) for part in ({}, {"steps": (2, 3)})]
    trial = Trial(specs[0].agents[0], specs[0].cases()[1])
    for spec, run in zip(specs, run_forked(ports, specs, trial), strict=True):
        assert told(run.report("id", None, (), Reference.OWN)) == told(run_trial(ports, spec, "id", trial, None, ()))


def test_a_stopped_trial_has_no_snapshot(ports: LocalPorts) -> None:
    ports.reset("reach", 0)
    before = ports.snapshot()
    ports.world.latch.trip(StopEvent.COLLISION_PREDICTED, "the table is in the way", ports.cell.halt)
    with pytest.raises(InputError, match="no trial can go on from here: the table is in the way"):
        ports.snapshot()
    ports.restore(before)
    assert not ports.world.latch.tripped
