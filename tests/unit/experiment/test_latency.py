"""The latency of an experiment: images and joint state are older than the motion that follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from planted import PlantedPorts
from typer.testing import CliRunner

from merton.cli.main import app
from merton.config import loads
from merton.errors import InputError
from merton.experiment.forks import run_forked
from merton.experiment.local import SLICE_S, LocalPorts
from merton.experiment.plan import DistortedPart, ExperimentSpec, Trial, single_trial
from merton.experiment.trial import TrialReport, run_trial
from merton.results.records import Outcome, Reference
from merton.simulation.cell import SimulatedCell
from merton.simulation.delay import DelayLine, Instant
from merton.simulation.sensor import IDEAL
from merton.world.action import checked_chunk
from merton.world.observation import CameraView

LATENCY_S = 0.5
"""Longer than the arm takes to settle, 0.15 s, so that pictures show it in motion."""
DOWNWARDS = checked_chunk([[0.02, 0, -0.02, 0, 0, 0, 1]] * 4, 0.2)
BLURRED = replace(IDEAL, motion_blur=True)
MINIMAL = "name: late\nagents: [{id: servo, vla: servo}]\ntasks: [pick]\n"


@pytest.fixture(scope="module")
def ports(renders: None) -> Iterator[LocalPorts]:
    with LocalPorts() as ports:
        yield ports
        ports.set_latency(0.0)


def delayed(vla: str, latency_s: float, *distortion: Any, **fields: Any) -> tuple[ExperimentSpec, Trial]:
    spec, trial = single_trial(vla, "pick", *distortion, max_steps=3)
    return spec.model_copy(update={"latency_s": latency_s, **fields}), trial


def run(ports: Any, spec: ExperimentSpec, trial: Trial) -> TrialReport:
    return run_trial(ports, spec, "latency", trial, None, ())


def instant(time_ns: int) -> Instant:
    return Instant(time_ns, np.zeros(7), np.zeros(6), np.zeros(6), 0.0)


@pytest.mark.parametrize("latency_ns", [0, 1, 30, 65, 1000])
def test_the_newest_instant_that_is_old_enough_is_seen(latency_ns: int) -> None:
    times_ns = [20, 40, 46, 60, 80, 100, 107]
    line = DelayLine(latency_ns / 1e9, instant(times_ns[0]))
    for count, time_ns in enumerate(times_ns[1:], start=2):
        line.add(instant(time_ns))
        old_enough = [t for t in times_ns[:count] if time_ns - t >= latency_ns]
        assert line.seen.time_ns == max(old_enough, default=times_ns[0])
        kept_ns = [t for t in times_ns[:count] if t >= line.seen.time_ns]
        for wanted_ns in range(0, 120, 3):
            not_later = [t for t in kept_ns if t <= wanted_ns]
            assert line.at(wanted_ns).time_ns == max(not_later, default=kept_ns[0])
    forked = line.fork()
    line.add(instant(5000))
    assert forked.seen.time_ns == max((t for t in times_ns if 107 - t >= latency_ns), default=20)


@pytest.mark.usefixtures("renders")
def test_a_view_shows_the_moving_arm_as_it_was(ports: LocalPorts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its images are those of that instant, blurred by the motion; arm and hand are measured then."""
    cell, passed = ports.cell, {}

    def advance(duration_s: float) -> float:
        simulated_s = SimulatedCell.advance(cell, duration_s)
        passed[cell.time_ns] = Instant.of(cell)
        return simulated_s

    monkeypatch.setattr(cell, "advance", advance)
    ports.set_distortion("reference", 0, 0)
    ports.set_latency(LATENCY_S)
    ports.cameras.imitate(BLURRED)
    ports.reset("pick", 0)
    first = ports.view(("wrist",))
    assert first.reference["wrist"].stamp_ns == first.stamp_ns, "nothing has moved yet"
    execution = ports.execute(DOWNWARDS, first)
    view, rest = ports.view(("wrist",)), ports.view((), ())
    taken_ns = view.reference["wrist"].stamp_ns
    assert view.stamp_ns == rest.stamp_ns == cell.time_ns
    assert LATENCY_S <= (view.stamp_ns - taken_ns) / 1e9 < LATENCY_S + SLICE_S
    seen = passed[taken_ns]
    np.testing.assert_array_equal(rest.joints_rad, cell.joints_rad)
    np.testing.assert_array_equal(view.joints_rad, seen.joints_rad)
    assert view.base_from_tcp[:3, 3].tolist() == list(execution.path[list(passed).index(taken_ns)])
    assert np.linalg.norm(view.base_from_tcp[:3, 3] - rest.base_from_tcp[:3, 3]) > 0.01, "it was moving"

    def drawn(velocities: NDArray[np.float64] | None) -> CameraView:
        return ports.cameras.render("pick", 0, seen.qpos, "wrist", joint_velocities=velocities)

    assert view.reference["wrist"].color.tobytes() == drawn(seen.joint_velocities).color.tobytes()
    assert view.reference["wrist"].color.tobytes() != drawn(None).color.tobytes()
    np.testing.assert_allclose(view.reference["wrist"].base_from_camera, drawn(None).base_from_camera, atol=1e-6)


def test_without_latency_no_instant_is_recorded(ports: LocalPorts, monkeypatch: pytest.MonkeyPatch) -> None:
    ports.set_latency(0.0)
    ports.reset("pick", 0)
    monkeypatch.setattr(DelayLine, "add", lambda line, instant: pytest.fail("a copy of the state for nothing"))
    assert len(ports.execute(DOWNWARDS, ports.view((), ())).path) > 10


def test_no_view_is_older_than_the_last_chunk(ports: LocalPorts) -> None:
    ports.set_sensor("ideal")
    ports.set_latency(9.0)
    ports.reset("pick", 0)
    first = ports.view(("top",))
    ports.execute(DOWNWARDS, first)
    second = ports.view(("top",))
    assert second.stamp_ns > first.stamp_ns
    assert second.reference["top"].stamp_ns == first.stamp_ns
    np.testing.assert_array_equal(second.reference["top"].color, first.reference["top"].color)


def test_the_arm_waits_for_the_part_of_the_latency_that_no_motion_covers(ports: LocalPorts) -> None:
    """Before the first chunk that is all of it; a planted world, in which nothing takes time, waits before each."""
    standing = run(PlantedPorts(()), *delayed("servo", 0.25)).record
    assert standing.simulated_s == pytest.approx(0.25 * standing.steps)
    now, soon = (run(ports, *delayed("glance-twice", latency_s)) for latency_s in (0.0, 0.3))
    assert now.record.outcome is soon.record.outcome is Outcome.SUCCESS
    assert soon.record.simulated_s == pytest.approx(now.record.simulated_s + 0.3), "the second look was in motion"
    for one, other in zip(now.pictures, soon.pictures, strict=True):
        if one.camera == "wrist":
            assert np.array_equal(one.reference, other.reference) == (one.step == 0)


def test_a_policy_of_one_look_does_as_without_latency(ports: LocalPorts) -> None:
    now, late = (run(ports, *delayed("oracle", latency_s)) for latency_s in (0.0, 0.6))
    assert late.evidence.path == now.evidence.path
    assert replace(late.record, wall_s=0, simulated_s=0) == replace(now.record, wall_s=0, simulated_s=0)
    assert late.record.simulated_s == pytest.approx(now.record.simulated_s + 0.6)


def test_forks_are_the_trials_of_their_own_part(ports: LocalPorts) -> None:
    """The pixels of things, too, are those of the instant that the images show."""
    parts: tuple[dict[str, Any], ...] = ({}, {"steps": (1,), "regions": ("things",)})
    distortion = ("color_noise", 4)
    specs = [delayed("servo", 0.3, *distortion, distort=DistortedPart(**part), max_steps=2)[0] for part in parts]
    trial = delayed("servo", 0.3, *distortion)[1]
    for spec, forked in zip(specs, run_forked(ports, specs, trial), strict=True):
        alone, report = run(ports, spec, trial), forked.report("latency", None, (), Reference.OWN)
        assert replace(report.record, wall_s=0.0) == replace(alone.record, wall_s=0.0)
        for one, other in zip(report.pictures, alone.pictures, strict=True):
            np.testing.assert_array_equal(one.distorted, other.distorted)


@pytest.mark.parametrize("latency", ["-0.1", "11", ".nan"])
def test_a_latency_out_of_range_is_refused(latency: str) -> None:
    with pytest.raises(InputError, match="line 4: latency_s: "):
        loads(f"{MINIMAL}latency_s: {latency}\n", ExperimentSpec, "x")


@pytest.mark.parametrize("graph", ["gazebo", "lab"])
def test_without_images_of_the_past_it_is_refused_before_anything_starts(graph: str, tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(f"{MINIMAL}latency_s: 0.3\n")
    refused = CliRunner().invoke(app, ["run", str(file), "--graph", graph, "--runs", str(tmp_path / "runs")]).exception
    assert isinstance(refused, InputError)
    assert f"in the graph {graph} there are no images of the past, so latency_s is refused; only sim" in str(refused)
    assert not (tmp_path / "runs").exists()
