"""Trials in a world of another program: what an experiment may name, its record, its forks, and its faults.

The world is a point in a plane (tests/support), in a process of its own; its policy looks for the colours.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import signal
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from point_added import EXPERIMENT, add_point, forget
from typer.testing import CliRunner

import runs
from merton.cli.gate import _way_on
from merton.cli.main import app
from merton.config import dumps, loads, plain, tree_of
from merton.decision.models.base import POLICIES
from merton.decision.score import score as decision_score
from merton.decision.spread import Spread, likeness
from merton.errors import InfrastructureError, InputError
from merton.experiment import forks
from merton.experiment.changes import experiments
from merton.experiment.forks import run_forked
from merton.experiment.local import ports_of
from merton.experiment.paired import drawn_cases, paired_experiment, scenes_there
from merton.experiment.parts import Job, dissection
from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner
from merton.experiment.trial import TrialRun
from merton.experiment.workers import complete
from merton.experiment.world_facts import WorldFacts
from merton.experiment.world_ports import WorldPorts
from merton.pool import open_pool
from merton.results.decisions import stored_chunks
from merton.results.records import Outcome, TrialRecord
from merton.results.store import ResultStore
from merton.world.action import checked_chunk
from merton.worlds.description import WorldDescription
from merton.worlds.entry import WORLDS

pytestmark = pytest.mark.usefixtures("_point")


@pytest.fixture(scope="module")
def patched() -> Iterator[pytest.MonkeyPatch]:
    """One machine for all tests of the file: adding a world starts a process."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def _point(tmp_path_factory: pytest.TempPathFactory, patched: pytest.MonkeyPatch) -> None:
    add_point(tmp_path_factory.mktemp("machine"), patched)


@pytest.fixture(scope="module")
def ports(_point: None) -> Iterator[WorldPorts[Any]]:
    """The point world, in a process of its own."""
    with ports_of("point") as opened:
        yield opened


def spec_of(text: str = EXPERIMENT, **changes: Any) -> ExperimentSpec:
    """The experiment with other values of some keys."""
    return loads(dumps({**plain(tree_of(text, "small")), **changes}), ExperimentSpec, "small.yaml")


def done(run: RunDirectory, workers: int) -> RunDirectory:
    """A run, carried out by so many workers."""
    with ResultStore(run.database) as store, open_pool(workers, on_fault=pytest.fail) as pool:
        list(complete(pool, run, store))
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, _point: None) -> RunDirectory:
    """The experiment, carried out by one worker."""
    return done(runs.small_run(tmp_path_factory.mktemp("one"), "one", EXPERIMENT), 1)


def test_the_policy_that_looks_does_it_and_the_dark_stops_it(run: RunDirectory) -> None:
    found = {(record.agent, record.case.distortion): record for record in run.records()}
    assert found["seer", "reference"].outcome is Outcome.SUCCESS
    assert found["seer", "max_darken"].outcome is Outcome.INVALID_ACTION  # neither point nor goal is seen
    assert found["hold", "reference"].outcome is Outcome.FAILURE
    detail = json.loads((run.path / "trials" / "seer.reach.0.reference.0" / "trial.json").read_text())
    assert detail["ended"] == "success"
    assert found["seer", "reference"].simulated_s == pytest.approx(found["seer", "reference"].steps * 0.3, abs=0.21)
    about = json.loads((run.path / "run.json").read_text())
    assert about["world"]["name"] == "point"
    assert about["world"]["description"]["versions"]["point"] == "1.0"
    assert "arm" not in about
    assert "1 of" not in str(about.get("reference_runs_added"))
    assert about["reference_runs_added"] == "2 of the expert, not rated"


def test_cases_have_the_group_of_their_task(run: RunDirectory) -> None:
    """The tasks reach and touch are done in the same scenes, which the world says."""
    assert {record.case.scene for record in run.records()} == {"go.0", "go.1"}


def test_two_workers_leave_the_record_of_one(run: RunDirectory, tmp_path: Path) -> None:
    other = done(runs.small_run(tmp_path, "two", EXPERIMENT), 2)
    assert runs.details(other) == runs.details(run)
    names = sorted(path.relative_to(run.path) for path in run.path.glob("trials/*/*.jpg"))
    assert names
    assert all((run.path / name).read_bytes() == (other.path / name).read_bytes() for name in names)


def test_a_decision_is_compared_in_units_of_the_action_space(run: RunDirectory) -> None:
    trial = "seer.reach.0.gaussian_blur.5"
    detail = json.loads((run.path / "trials" / trial / "trial.json").read_text())
    chunks = stored_chunks(detail)
    assert chunks is not None
    expected = likeness(chunks[0].deltas, chunks[1].deltas, Spread(np.array([0.1, 0.1])))
    assert detail["decision"]["total"] == expected == decision_score(*chunks).total
    assert set(detail["decision"]) == {"total", "spread", "reference", "distorted"}
    other = checked_chunk(np.zeros((1, 7)), 0.1)
    with pytest.raises(InputError, match="cannot compare a chunk in 'rows' with one in 'base_link'"):
        decision_score(chunks[0], other)


def test_a_run_is_read_where_its_world_is_not_and_goes_on_only_where_it_is(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MERTON_CATALOGUE", "MERTON_WORLDS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    forget(monkeypatch)
    there = RunDirectory(run.path)
    assert there.spec.facts.cameras == ("above",)
    assert there.spec.trial_count == len(there.records())
    with pytest.raises(InputError, match="unknown world 'point'"):
        there.check_here()


def test_a_run_goes_on_where_a_version_is_as_long_a_text_as_that_of_a_renderer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renderer = f"llvmpipe ({'LLVM 15.0.6, ' * 10}) Mesa"
    add_point(tmp_path / "machine", monkeypatch, version=f"{renderer} 22.3.6")
    begun = runs.small_run(tmp_path, "begun", EXPERIMENT)
    begun.check_here()

    add_point(tmp_path / "machine", monkeypatch, version=f"{renderer} 24.0.1")

    with pytest.raises(InputError, match=r"Mesa 22\.3\.6 in the run and .* Mesa 24\.0\.1 in this machine.*'s; start"):
        begun.check_here()


def test_a_killed_process_costs_one_attempt_and_leaves_the_same_record(
    run: RunDirectory, ports: WorldPorts[Any]
) -> None:
    """Kill -9 of the world in the middle of a trial."""
    spec = run.spec
    trial = next(trial for trial in spec.trials() if trial.id == "seer.reach.0.reference.0")
    known = next(record for record in run.records() if record.id == trial.id)
    cut = TrialRun(ports, spec, trial)
    cut.take_step()
    assert ports.world.pid is not None
    os.kill(ports.world.pid, signal.SIGKILL)
    with pytest.raises(InfrastructureError, match="'point' failed at carry_out: its process was ended by SIGKILL"):
        cut.take_step()
    record = Runner(spec, run.id, ports, run.reference_run).run(trial).record
    assert {**vars(record), "wall_s": 0} == {**vars(known), "wall_s": 0}


@pytest.mark.parametrize("adapter", ["Point", "Unforkable"])
def test_forked_designs_equal_separate_runs(
    adapter: str, ports: WorldPorts[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a world cannot go back: then each is run from the reset on."""
    if adapter == "Unforkable":
        monkeypatch.setattr(forks, "can_fork", lambda spec, trial: False)
    spec = spec_of(tasks=["touch"])
    trial = Trial(spec.agents[0], spec.case("touch", 1, "gaussian_blur", 5))
    specs = [spec.model_copy(update={"distort": part}) for part in dissection(spec, spec.agents[0]).designs.values()]
    assert len(specs) > 4
    runs_ = run_forked(ports, specs, trial)
    for one, forked in zip(specs, runs_, strict=True):
        alone = TrialRun(ports, one, trial)
        while not alone.over:
            alone.take_step()
        assert (alone.path, alone.steps) == (forked.path, forked.steps)


FAULTS: dict[str, tuple[Any, str]] = {
    "tasks": (["push"], "tasks, entry 1: unknown task 'push'; choose one of: reach, touch"),
    "vlm_camera": ("top", "vlm_camera: unknown camera 'top'"),
    "distort": ({"cameras": ["top"]}, "distort.cameras, entry 1: unknown camera 'top'"),
    "agents": ([{"id": "glance", "vla": "glance"}], "glance looks through the camera 'top', and point has: above"),
    "scenes": (51, "reach has 50 scenes in the world point, not 51"),
    "sensor": ("d455", "sensor: the world point does not have that"),
    "latency_s": (0.5, "latency_s: the world point does not have that"),
    "stop_rule": ("contact", "stop_rule: the world point does not have that"),
    "world": ("lunar", "unknown world 'lunar'"),
}


@pytest.mark.parametrize("key", FAULTS)
def test_what_a_world_does_not_have_is_refused_in_one_sentence(key: str) -> None:
    value, sentence = FAULTS[key]
    with pytest.raises(InputError) as refused:
        spec_of(**{key: value})
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_images_may_be_judged_that_are_distorted_everywhere() -> None:
    """Everything is that world's cameras, not those of the UR5 cell."""
    spec = spec_of(min_image_quality=0.1, agents=[{"id": "seer", "vla": "point-seer"}])
    assert spec.distorts_everything
    with pytest.raises(InputError, match="must be left out beside min_image_quality"):
        spec_of(min_image_quality=0.1, distort={"stages": ["decision"]})


def test_the_experiment_of_a_run_may_be_changed_to_another_world(run: RunDirectory, tmp_path: Path) -> None:
    """The description of the run's world is that of no other one."""
    file = run.path / "experiment.yaml"
    agents = ({"id": "servo", "vla": "servo"},)
    (made,) = experiments(file, [("world", "ur5"), ("tasks", ("pick",)), ("agents", agents)])
    assert (made.spec.facts.description, made.spec.vlm_camera) == (None, "top")
    with pytest.raises(InputError, match="unknown world 'lunar'"):
        experiments(file, [("world", "lunar")])


def test_an_empty_decision_of_rows_is_compared_whatever_its_columns(ports: WorldPorts[Any]) -> None:
    assert ports.world.action is not None
    none, some = (ports.world.action.chunk(rows) for rows in ([], [[0.0, 0.0]]))
    assert decision_score(none, some).total == decision_score(some, none).total == 0.0
    assert decision_score(none, none).total == 1.0


def test_designs_of_many_steps_are_run_and_named(ports: WorldPorts[Any]) -> None:
    spec = spec_of(max_steps=100)
    found = dissection(spec, spec.agents[0])
    assert list(found.prefixes) == [0, 1, 2, 4, 8, 16, 32, 64], "from each of them on images are clean"
    steps = {first: found.designs[name].steps for first, name in found.prefixes.items()}
    assert steps == {first: tuple(range(min(100, 2 * first or 1))) for first in steps if first < 64} | {64: None}
    trial = Trial(spec.agents[0], spec.case("reach", 0, "gaussian_blur", 5))
    record = TrialRecord("x", "seer", trial.case, Outcome.FAILURE, steps=100, wall_s=1.0)
    job = Job(trial, found.designs, placebo=True)
    assert 2.0 < job.seconds(spec, record) < len(found.designs)
    spec._facts = replace(spec.facts, description=_without(spec.facts, "fork"))
    assert job.seconds(spec, record) == len(found.designs) + 1


def _without(facts: WorldFacts, ability: str) -> WorldDescription:
    assert facts.description is not None
    able = tuple(other for other in facts.description.abilities if other != ability)
    return facts.description.model_copy(update={"abilities": able})


def test_a_run_of_another_world_has_no_arm(run: RunDirectory) -> None:
    with pytest.raises(InputError, match="is a run of the world point, and this is of the UR5 cell alone"):
        _ = run.arm


def test_policies_of_other_forms_are_refused() -> None:
    text = EXPERIMENT.replace("vla: hold", "vla: plunge")
    with pytest.raises(InputError, match="plunge gives tool_deltas, and point takes rows of: x, y"):
        spec_of(text)
    with pytest.raises(InputError, match="oracle decides from a state that point does not give"):
        spec_of(EXPERIMENT.replace("{id: hold, vla: hold}", "{id: oracle, vla: oracle}"))
    with pytest.raises(InputError, match="random acts in other worlds than the UR5 cell"):
        spec_of("name: small\nagents: [{id: random, vla: random}]\ntasks: [pick]\n")
    with pytest.raises(InputError, match="point-seer acts in other worlds than the UR5 cell"):
        spec_of("name: small\nagents: [{id: seer, vla: point-seer}]\ntasks: [pick]\n")


def test_an_experiment_keeps_its_world_where_it_is_copied() -> None:
    """Also where it is validated again, changed or sent to a worker."""
    spec = spec_of()
    copies = [ExperimentSpec.model_validate(spec), spec.model_copy(update={"couple": None})]
    for copied in (*copies, pickle.loads(pickle.dumps(spec)), copy.deepcopy(spec)):
        assert copied.facts == spec.facts
        assert copied.facts.name == "point"


def test_a_chunk_of_another_period_is_no_score(ports: WorldPorts[Any]) -> None:
    """The policy was not made for this world, which says nothing about how well it sees."""
    ports.reset("reach", 0)
    view = ports.view()
    assert ports.world.action is not None
    slow = ports.world.action.model_copy(update={"period_s": 0.5}).chunk([[0.0, 0.0]], "slow")
    with pytest.raises(InfrastructureError, match=r"a row of slow lasts 0.5 s, and one of the world point 0.1 s"):
        ports.execute(slow, view)


def test_a_gate_draws_each_scene_of_a_world_once() -> None:
    """Scenes of the two tasks are the same ones: a world with 50 scenes has 50 units."""
    text = paired_experiment(spec_of(tasks=["reach", "touch"]), "seer", "hold", seed=3)
    spec = loads(text, ExperimentSpec, "gate.yaml")
    drawn = list(islice(drawn_cases(spec), 1000))
    assert sorted(case.seed for case in drawn) == list(range(50))
    assert [case.seed for case in drawn] != list(range(50))
    assert drawn == list(drawn_cases(spec))
    assert {case.task for case in drawn} == {"reach", "touch"}


def test_a_gate_that_has_used_up_a_world_says_so() -> None:
    text = paired_experiment(spec_of(tasks=["reach", "touch"]), "seer", "hold")
    run: Any = SimpleNamespace(spec=loads(text, ExperimentSpec, "gate.yaml"), path=Path("runs/g"))
    assert scenes_there(run.spec) == len(list(drawn_cases(run.spec))) == 50
    judgement: Any = SimpleNamespace(pairs=[None] * 50)
    assert _way_on(run, judgement, None) == (
        "All 50 scenes that the world point has of these tasks are used up: take more of its tasks, or a larger "
        "--delta."
    )


def test_a_plan_in_another_world_says_no_time_and_how_many_scenes_there_are(tmp_path: Path) -> None:
    """The seconds of a trial are those of the UR5 cell."""
    file = tmp_path / "small.yaml"
    file.write_text(EXPERIMENT)
    told = CliRunner().invoke(app, ["plan", str(file)], catch_exceptions=False).stdout
    assert "12 trials (--from RUN says how long)" in told
    assert "The world point has 50 scenes of these tasks." in told
    assert " MB" not in told


def test_the_id_of_a_yardstick_is_for_it_in_its_own_world() -> None:
    with pytest.raises(InputError, match="the id 'expert' is for an agent with vla: expert"):
        spec_of(agents=[{"id": "expert", "vla": "hold"}])
    text = "name: before\nagents: [{id: expert, vla: servo}]\ntasks: [pick]\n"
    assert loads(text, ExperimentSpec, "of before worlds").agents[0].id == "expert"


def test_floors_act_by_the_action_space(ports: WorldPorts[Any]) -> None:
    spec = spec_of(text=EXPERIMENT.replace("{id: seer, vla: point-seer}", "{id: random, vla: random}"))
    trial = next(trial for trial in spec.trials() if trial.agent.id == "random")
    first, second = (TrialRun(ports, spec, trial) for _ in range(2))
    second.take_step()
    first = TrialRun(ports, spec, trial)
    first.take_step()
    assert first.path == second.path
    assert POLICIES["random"].stochastic
    assert max(np.abs(np.diff(np.array(first.path)[:, :2], axis=0)).max(axis=0)) > 0.03


def test_a_world_at_an_address_has_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    point = WORLDS["point"]
    assert WorldFacts("point").workers(4) == 4
    assert WorldFacts("point").workers() is None
    far = point.model_copy(update={"address": "gpu:8010"})
    monkeypatch.setattr(WORLDS, "_entries", {**WORLDS._entries, "point": far})
    assert WorldFacts("point").workers() == 1
    with pytest.raises(InputError, match="the world point at gpu:8010 serves one process at a time, and --workers 4"):
        WorldFacts("point").workers(4)
