"""A whole trial in one process: scores, references, the emergency stop, and independence of earlier trials."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from merton.decision.models.base import POLICIES
from merton.errors import ErrorCode, InfrastructureError, InputError, InvalidActionError
from merton.experiment.local import LocalPorts
from merton.experiment.plan import AgentSpec, ExperimentSpec, Trial, single_trial
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner, run_all
from merton.experiment.trial import ReferenceRun, TrialReport, run_trial
from merton.experiment.undistorted import UndistortedRuns
from merton.perception.distortion import distort
from merton.results.records import Outcome, Reference, TestCase, TrialRecord
from merton.seeding import generator
from merton.world.action import ActionChunk, checked_chunk
from merton.world.observation import CameraView, Observation
from patience import stretched
from runs import small_run


@pytest.fixture(scope="module")
def ports(renders: None) -> Iterator[LocalPorts]:
    ports = LocalPorts()
    yield ports
    ports.close()


def experiment(*agents: str) -> ExperimentSpec:
    return ExperimentSpec(
        name="test",
        seed=3,
        agents=tuple(AgentSpec(id=agent, vla=agent) for agent in agents),
        tasks=("reach", "push"),
        distortions=("white_noise",),
        levels=(0, 3),
        max_steps=6,
    )


def trial(spec: ExperimentSpec, agent: str, task: str = "reach", seed: int = 0, level: int = 0) -> Trial:
    found = next(item for item in spec.agents if item.id == agent)
    return Trial(found, TestCase(task, seed, "white_noise" if level else "reference", level))


def run(ports: LocalPorts, agent: str, task: str = "reach", level: int = 0) -> TrialReport:
    spec = experiment(agent)
    return run_trial(ports, spec, "id", trial(spec, agent, task, level=level), None, [])


def timeless(record: TrialRecord) -> TrialRecord:
    return replace(record, wall_s=0.0)


@pytest.mark.usefixtures("renders")
def test_the_oracle_reaches(ports: LocalPorts) -> None:
    report = run(ports, "oracle")
    record = report.record
    assert (record.outcome, record.execution, record.distance_m) == (Outcome.SUCCESS, 100.0, 0.0)
    assert (record.cognition, record.decision) == (pytest.approx(1.0), pytest.approx(1.0))
    assert (record.steps, record.error_code) == (1, 0)
    assert (record.success, record.progress, record.path_m, record.cut_short) == (True, 1.0, 0.0, False)
    assert record.angle_rad == pytest.approx(0, abs=1e-12)
    assert (record.reference, record.reference_success) == (Reference.OWN, True)
    assert 0.5 < record.simulated_s < 2.0
    assert report.reference is not None
    assert report.reference.success
    path = np.array(report.reference.path)
    assert path[0] == pytest.approx((0.45, 0.0, 0.30), abs=0.002)
    assert path[-1] == pytest.approx(report.reference.base_from_tcp[:3, 3], abs=1e-3)
    assert np.linalg.norm(np.diff(path, axis=0), axis=1).max() < 0.015, "20 ms apart, and no faster than 0.6 m/s"


def test_the_corpus_has_one_answer_of_the_vlm_for_each_scene() -> None:
    spec = experiment("oracle", "hold").model_copy(update={"reference_scenes": 1})
    agents = (*spec.agents, AgentSpec(id="other", vlm="gaze", vla="hold"))
    spec = spec.model_copy(update={"agents": agents})
    requested: list[str] = []

    def stored(trial_id: str) -> ReferenceRun | None:
        requested.append(trial_id)
        return None if trial_id == "oracle.reach.1.reference.0" else ReferenceRun(trial_id, np.eye(4), (), True)

    undistorted = UndistortedRuns(spec, stored)
    assert undistorted.corpus(trial(spec, "hold")) == (), "reference trials have none, so their order does not matter"
    first = ("oracle.reach.0.reference.0", "oracle.push.0.reference.0", "oracle.push.1.reference.0")
    for agent in ("oracle", "hold"):
        corpus = undistorted.corpus(trial(spec, agent, level=3))
        assert corpus == (*first, "hold.reach.1.reference.0"), "of any agent with the same VLM"
    assert not any(item.startswith("other") for item in requested)
    assert len(undistorted.corpus(trial(spec, "other", level=3))) == 4


def test_a_failed_reference_without_an_oracle_is_not_scored(ports: LocalPorts) -> None:
    record = run(ports, "hold").record
    assert (record.outcome, record.execution, record.distance_m) == (Outcome.FAILURE, None, None)
    assert (record.reference, record.reference_success) == (Reference.NONE, None)
    assert (record.success, record.path_m, record.angle_rad) == (False, None, None)
    assert record.progress == pytest.approx(0, abs=1e-3)
    assert record.decision == pytest.approx(1.0)


def test_a_failure_loses_a_point_per_centimetre_from_the_oracle(ports: LocalPorts) -> None:
    spec = experiment("oracle", "hold")
    runner = Runner(spec, "id", ports)
    oracle = runner.run(trial(spec, "oracle"))
    failed = runner.run(trial(spec, "hold")).record
    assert oracle.reference is not None
    distance_m = np.linalg.norm(oracle.reference.base_from_tcp[:3, 3] - (0.45, 0.0, 0.30))
    assert failed.distance_m == pytest.approx(distance_m, abs=1e-3)
    assert failed.execution == pytest.approx(100 - 100 * distance_m, abs=0.1)
    assert (failed.reference, failed.reference_success) == (Reference.ORACLE, True)
    assert failed.path_m == pytest.approx(distance_m, abs=5e-3), "the oracle went nearly straight, and hold stayed"
    assert 0.0 <= failed.progress < 1e-3
    again = runner.run(trial(spec, "hold", level=3)).record
    assert (again.reference, again.path_m) == (Reference.ORACLE, pytest.approx(failed.path_m, abs=1e-3))


def test_a_single_trial_is_scored_against_its_reference_run(ports: LocalPorts) -> None:
    spec, distorted = single_trial("hold", "reach", "white_noise", 3, max_steps=1, seed=3)
    stages: list[str] = []
    reports: list[TrialReport] = []
    runner = Runner(spec, "id", ports, on_report=reports.append)
    report = runner.run_single(distorted, lambda stage, progress: stages.append(stage))
    assert [one.record.case.level for one in reports] == [0, 3]
    assert stages[:3] == ["reference run", "reference run of the oracle", "perception"]
    assert (report.record.outcome, report.record.reference) == (Outcome.FAILURE, Reference.ORACLE)
    assert report.record.execution < 90.0, "doing nothing is not measured against doing nothing"
    alone = Runner(spec, "id", ports).run_single(single_trial("hold", "reach", seed=3, max_steps=1)[1])
    assert alone.reference is not None
    assert alone.record.execution == report.record.execution, "the oracle comes before a reference trial, too"


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("gpt", "reach"), "vla: unknown vla 'gpt'; choose one of: .*servo"),
        (("servo", "dance"), "tasks, entry 1: unknown task 'dance'"),
        (("servo", "reach", "fog", 1), "distortions, entry 1: unknown distortion 'fog'"),
        (("servo", "reach", "reference", 1), "distortions, entry 1: unknown distortion 'reference'"),
        (("servo", "reach", "jpeg", 6), "levels, entry 1: must be at most 5, got 6"),
    ],
)
def test_a_trial_that_does_not_exist_is_refused(names: tuple, says: str) -> None:
    with pytest.raises(InputError, match=says):
        single_trial(*names)


@pytest.mark.usefixtures("renders")
def test_local_ports_release_cameras_and_models(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalPorts() as ports:
        ports.reset("reach", 0)
        ports.act("hold", ports.view().observation("reference", "reach"), "reference")
        closed: list[bool] = []
        monkeypatch.setattr(ports.cameras, "close", lambda close=ports.cameras.close: closed.append(not close()))
    assert closed == [True]
    assert not ports._policies


def test_a_plunge_is_stopped_and_stays_stopped_until_reset(ports: LocalPorts) -> None:
    record = run(ports, "plunge").record
    assert (record.outcome, record.execution, record.steps) == (Outcome.EMERGENCY_STOP, 0.0, 1)
    assert record.error_code == ErrorCode.COLLISION
    assert (record.success, record.progress, record.cut_short) == (False, 0.0, True)
    assert "table" in record.error_message
    view = ports.view()
    assert view.base_from_tcp[2, 3] > 0.0
    up = checked_chunk([[0, 0, 0.05, 0, 0, 0, 1]], 0.2)
    for _ in range(2):
        refused = ports.execute(up, view)
        assert (refused.executed, refused.path, refused.error_code) == (0, (), ErrorCode.COLLISION)
        assert refused.error_message == record.error_message
    assert (ports.view().joints_rad == view.joints_rad).all()
    ports.reset("reach", 0)
    assert ports.execute(up, ports.view()).error_code == 0
    assert run(ports, "oracle").record.outcome is Outcome.SUCCESS


def test_an_unpredicted_contact_latches_as_well(ports: LocalPorts) -> None:
    """A motion without the planner ends in the table: the cell reports contact, and the next chunk is refused."""
    ports.reset("reach", 0)
    cell = ports.cell
    down = np.array([0, 0.9, 0, 0, 0, 0])
    cell.command_trajectory([0.0, 2.0], [cell.joints_rad, cell.joints_rad + down])
    cell.advance(3.0)
    assert cell.contact is not None
    refused = ports.execute(checked_chunk([[0, 0, 0.05, 0, 0, 0, 1]], 0.2), ports.view())
    assert (refused.executed, refused.error_code) == (0, ErrorCode.CONTACT)
    assert "touched table" in refused.error_message
    ports.reset("reach", 0)
    assert not ports.world.latch.tripped


@pytest.mark.parametrize(("agent", "level"), [("servo", 0), ("servo", 3), ("oracle", 3)])
def test_a_repeated_trial_has_the_same_results(ports: LocalPorts, agent: str, level: int) -> None:
    """Also after a different trial in between."""
    first = run(ports, agent, "push", level)
    run(ports, "hold")
    second = run(ports, agent, "push", level)
    assert timeless(first.record) == timeless(second.record)
    assert {**first.details, "wall_s": 0} == {**second.details, "wall_s": 0}
    for one, other in zip(first.pictures, second.pictures, strict=True):
        assert (one.distorted == other.distorted).all()


def test_the_noise_of_a_frame_follows_from_seed_camera_and_pixels(ports: LocalPorts) -> None:
    ports.reset("reach", 0)
    ports.set_distortion("white_noise", 4, 11)
    view = ports.view()
    for camera, image in view.reference.items():
        rng = generator(11, camera, zlib.crc32(image.color.tobytes()))
        assert (view.distorted[camera].color == distort(image.color, "white_noise", 4, rng)).all()
    assert (ports.view().distorted["top"].color == view.distorted["top"].color).all()
    ports.set_distortion("white_noise", 4, 12)
    assert (ports.view().distorted["top"].color != view.distorted["top"].color).any()
    ports.set_distortion("reference", 0, 0)
    assert (ports.view().distorted["top"].color == view.reference["top"].color).all()


def test_a_view_has_the_rounding_of_the_transport(ports: LocalPorts) -> None:
    ports.reset("pick", 0)
    view = ports.view()
    assert set(view.reference) == {"wrist", "top", "side"}
    for image in view.reference.values():
        assert image.depth_m is not None
        assert image.depth_m.dtype == np.float32
        millimetres = image.depth_m / np.float32(0.001)
        assert np.abs(millimetres - np.rint(millimetres)).max() < 1e-3
        assert image.stamp_ns == view.stamp_ns
    assert view.gripper_open == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("agent", "sees_depth"), [("servo", True), ("glance", False)])
def test_only_policies_that_use_depth_get_it(
    ports: LocalPorts, monkeypatch: pytest.MonkeyPatch, agent: str, sees_depth: bool
) -> None:
    shown: list[CameraView] = []

    def act(model: str, observation: Observation, side: str) -> ActionChunk:
        shown.extend(observation.views.values())
        return checked_chunk(np.empty((0, 7)), 0.2, done=True)

    monkeypatch.setattr(ports, "act", act)
    run(ports, agent)
    assert {view.camera for view in shown} == set(POLICIES[agent].cameras)
    assert {view.depth_m is not None for view in shown} == {sees_depth}


@pytest.mark.parametrize(("agent", "cameras", "deep"), [("oracle", 0, 0), ("servo", 2, 2), ("glance", 1, 0)])
def test_a_camera_that_no_model_of_the_trial_looks_at_is_not_rendered(
    ports: LocalPorts, monkeypatch: pytest.MonkeyPatch, agent: str, cameras: int, deep: int
) -> None:
    """The VLM looks once, the policy before each chunk; after the last chunk none of them does."""
    rendered: list[CameraView] = []
    render = ports.cameras.render

    def counted(*arguments: Any, **options: Any) -> CameraView:
        rendered.append(render(*arguments, **options))
        return rendered[-1]

    monkeypatch.setattr(ports.cameras, "render", counted)
    report = run(ports, agent, "push")
    steps, seen = report.record.steps, POLICIES[agent].cameras
    assert len(rendered) == len(report.pictures) == steps * cameras + ("top" not in seen)
    assert sum(view.depth_m is not None for view in rendered) == steps * deep
    assert {view.camera for view in rendered} == {"top", *seen}


def test_faults_of_models_and_of_the_infrastructure_differ(ports: LocalPorts) -> None:
    ports.reset("reach", 0)
    view = ports.view()
    with pytest.raises(InvalidActionError, match="cannot understand"):
        ports.act("servo", view.observation("distorted", "make tea"), "distorted")
    with pytest.raises(InfrastructureError, match="unknown distortion 'fog'"):
        ports.set_distortion("fog", 1, 0)
    too_far = ports.execute(checked_chunk([[0.09, 0, 0, 0, 0, 0, 1]], 0.2), view)
    assert (too_far.executed, too_far.error_code) == (0, ErrorCode.STEP_LIMIT)
    assert not ports.world.latch.tripped


def test_a_trial_is_repeated_while_the_infrastructure_fails_and_is_never_scored_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, records, faults = small_run(tmp_path, "failing"), [], []

    def fail(self: Runner, trial: Trial, on_stage: Any) -> TrialReport:
        raise InfrastructureError("arm/execute did not answer within 120 s")

    monkeypatch.setattr(Runner, "run", fail)
    runner = Runner(run.spec, run.id, LocalPorts.__new__(LocalPorts))
    with pytest.raises(InfrastructureError, match=r"^oracle\.reach\.0\.reference\.0: arm/execute did not answer"):
        run_all(runner, run, {}, records.append, on_trial=lambda *_: None, on_fault=faults.append)
    assert [fault.partition("; ")[2] for fault in faults] == ["trying again (1 of 2)", "trying again (2 of 2)"]
    assert records == []


def test_results_are_saved_in_order_while_the_next_trial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, records = small_run(tmp_path, "saving"), []
    begun = [threading.Event() for _ in range(run.spec.trial_count + 1)]
    begun[-1].set()  # after the last trial

    def save(self: RunDirectory, report: TrialReport) -> None:
        assert begun[len(records) + 1].wait(stretched(5.0)), "the next trial waits for this"

    def ran(self: Runner, trial: Trial, on_stage: Any) -> Any:
        next(event for event in begun if not event.is_set()).set()
        return SimpleNamespace(record=SimpleNamespace(id=trial.id, success=True))

    monkeypatch.setattr(Runner, "run", ran)
    monkeypatch.setattr(RunDirectory, "save", save)
    runner = Runner(run.spec, run.id, LocalPorts.__new__(LocalPorts))
    run_all(runner, run, {}, records.append, on_trial=lambda *_: None, on_fault=pytest.fail)
    assert [record.id for record in records] == [trial.id for trial in run.spec.trials()]


def test_a_run_ends_where_results_cannot_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, records = small_run(tmp_path, "full"), []

    def save(self: RunDirectory, report: Any) -> None:
        if len(records) == 2:
            raise InfrastructureError("cannot write: No space left on device")

    monkeypatch.setattr(
        Runner, "run", lambda self, trial, on_stage: SimpleNamespace(record=SimpleNamespace(id=trial.id, success=True))
    )
    monkeypatch.setattr(RunDirectory, "save", save)
    runner = Runner(run.spec, run.id, LocalPorts.__new__(LocalPorts))
    with pytest.raises(InfrastructureError, match="No space left"):
        run_all(runner, run, {}, records.append, on_trial=lambda *_: None, on_fault=pytest.fail)
    assert [record.id for record in records] == [trial.id for trial in run.spec.trials()][:2]
