"""The placebo changes images by one grey level; a trial that differs today is refused only if it does so again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from planted import CAMERAS, STEPS, PlantedPorts

from merton.decision.models.base import POLICIES
from merton.errors import InputError
from merton.experiment import parts as parts_module
from merton.experiment.parts import WHOLE, Job, dissection, run_job
from merton.experiment.placebo import PLACEBO, PlaceboPorts, one_level_off, run_placebo
from merton.experiment.plan import AgentSpec, ExperimentSpec, Trial
from merton.experiment.ports import Execution, SegmentingPorts, StopRule
from merton.experiment.runner import Runner
from merton.world.action import ActionChunk
from merton.world.observation import CameraView, Intrinsics


@pytest.fixture(autouse=True)
def _eyes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that looks through all cameras."""
    entry = POLICIES["servo"].model_copy(update={"cameras": CAMERAS, "needs_depth": False})
    monkeypatch.setattr(ExperimentSpec, "vla_entry", lambda *_: entry)


def planted(ports: PlantedPorts) -> tuple[Runner, Trial]:
    """The runner and the one distorted trial of a small experiment."""
    agent = AgentSpec(id="a", vla="servo")
    spec = ExperimentSpec(
        name="planted", agents=(agent,), tasks=("reach",), distortions=("jpeg",), levels=(5,), max_steps=STEPS
    )
    runner = Runner(spec, "planted", ports)
    reference, distorted = (Trial(agent, case) for case in spec.cases())
    runner.run(reference)
    return runner, distorted


def test_no_value_of_an_image_differs_by_more_than_one() -> None:
    color = np.repeat(np.array([0, 128, 255], np.uint8), 3000).reshape(30, 100, 3)
    depth = np.ones((30, 100), np.float32)
    seen = CameraView("top", color, depth, Intrinsics(100, 30, 1.0, 1.0, 50.0, 15.0), np.eye(4), 7)
    changed = one_level_off(seen, 3).astype(int) - color
    assert set(np.unique(changed)) == {-1, 0, 1}
    assert abs(changed[color == 128].mean()) < 0.05
    assert np.array_equal(one_level_off(seen, 3), one_level_off(seen, 3))
    for other in (replace(seen, camera="wrist"), replace(seen, stamp_ns=8)):
        assert not np.array_equal(one_level_off(other, 3), one_level_off(seen, 3))
    assert not np.array_equal(one_level_off(seen, 4), one_level_off(seen, 3))


def test_placebo_ports_are_the_cell_with_other_images() -> None:
    ports = PlantedPorts(())
    ports.set_distortion("jpeg", 5, 0)
    placebo = PlaceboPorts(ports, 1)
    assert isinstance(placebo, SegmentingPorts)
    view, changed = ports.view(), placebo.view()
    assert set(changed.reference) == set(view.reference) == set(CAMERAS)
    assert max(int(seen.color.max()) for seen in changed.reference.values()) == 1
    assert min(int(seen.color.min()) for seen in changed.distorted.values()) >= 254
    assert changed.reference["top"].depth_m is None


def test_a_policy_to_which_any_other_image_matters_shows_it_in_the_placebo() -> None:
    """A planted policy fails at any pixel that is not black, and sees some of them one level above it."""
    runner, trial = planted(PlantedPorts({(camera, 0) for camera in CAMERAS}))
    undistorted = Trial(trial.agent, trial.case.reference)
    assert runner.run(undistorted).record.success
    record = run_placebo(runner, undistorted)
    assert (record.experiment, record.id, record.success) == (PLACEBO, undistorted.id, False)
    runner, trial = planted(PlantedPorts(()))
    assert run_placebo(runner, undistorted).success


class Fickle(PlantedPorts):
    """A world in which every execution takes another while: nothing repeats itself."""

    executed = 0

    def execute(self, chunk: ActionChunk, view: object, stop_rule: StopRule = "gate") -> Execution:
        self.executed += 1
        return Execution(1, ((0.001 * self.executed, 0.0, 0.0),))


def test_a_trial_is_refused_only_if_it_has_other_results_twice_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, trial = planted(PlantedPorts({("top", 1)}))
    designs = dissection(runner.spec, trial.agent, ["cameras"]).designs
    monkeypatch.setattr(parts_module, "opened", lambda path: (None, runner))
    known = runner.run(trial).record
    found = run_job(Path("run"), Job(trial, designs, placebo=True), known)
    assert [record.experiment for record in found] == [*designs, PLACEBO]
    with pytest.raises(
        InputError, match=r"run has other results of a.reach.0.jpeg.5 .* twice gave the same ones \(prog"
    ):
        run_job(Path("run"), Job(trial, designs, placebo=False), replace(known, progress=0.5))
    runner, trial = planted(Fickle(()))
    known = runner.run(trial).record
    found = run_job(Path("run"), Job(trial, designs, placebo=False), known)
    whole = next(record for record in found if record.experiment == WHOLE)
    assert whole.path_m != known.path_m, "another throw, and no error"
