"""A region of the images: which pixels show the things of the task, and a distortion of those or of all others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from planted import PlantedPorts
from typer.testing import CliRunner

from merton.cli.main import app
from merton.cognition.models.base import Answer
from merton.errors import InfrastructureError
from merton.experiment.forks import run_forked
from merton.experiment.local import LocalPorts
from merton.experiment.plan import DistortedPart, ExperimentSpec, Trial, single_trial
from merton.experiment.ports import REGIONS, Ports, Region, Side
from merton.experiment.trial import TrialReport, run_trial
from merton.results.records import Reference
from merton.world.action import ActionChunk
from merton.world.observation import CameraView, Image, Observation


@pytest.fixture(scope="module")
def ports(renders: None) -> Iterator[LocalPorts]:
    with LocalPorts() as ports:
        yield ports


def points(view: CameraView) -> NDArray[np.float64]:
    """(height, width, 3) [m] in `base_link`."""
    assert view.depth_m is not None
    v, u = np.indices(view.depth_m.shape)
    rotation, origin = view.base_from_camera[:3, :3], view.base_from_camera[:3, 3]
    return view.intrinsics.deproject(u, v, view.depth_m) @ rotation.T + origin


@pytest.mark.usefixtures("renders")
@pytest.mark.parametrize(("task", "seed"), [("pick", 0), ("place", 1), ("press", 2), ("test-pick", 3)])
def test_pixels_of_things_lie_on_the_things_of_the_instruction(ports: LocalPorts, task: str, seed: int) -> None:
    ports.set_distortion("reference", 0, 0)
    ports.reset(task, seed)
    view = ports.view(("top",)).reference["top"]
    things = ports.things("top")
    assert things.shape == view.color.shape[:2]
    assert things.dtype == bool
    assert 30 < things.sum() < 0.1 * things.size
    scene, state = ports.cell.scene, ports.cell.scene_state()
    assert scene is not None
    names = [name for name in (scene.meant.object, scene.meant.target) if name]
    places = np.array([item.base_from_object[:2, 3] for item in state.objects if item.name in names])
    assert len(places) == len(names)
    away_m = np.linalg.norm(points(view)[:, :, None, :2] - places, axis=3)
    assert away_m[things].min(axis=1).max() < 0.09, "no pixel of another thing"
    assert set(away_m[things].argmin(axis=1)) == set(range(len(names))), "pixels of each of them"
    middle = (points(view)[..., 2] > 0.015) & (away_m.min(axis=2) < 0.015)
    assert things[middle].all(), "the middle of a thing belongs to it"
    again = ports.view(("top",)).reference["top"]
    assert again.color.tobytes() == view.color.tobytes(), "pictures are drawn as before"


def trial_in(*regions: Region, task: str = "pick", name: str = "color_noise") -> tuple[ExperimentSpec, Trial]:
    spec, trial = single_trial("servo", task, name, 4, seed=3, max_steps=3)
    return spec.model_copy(update={"distort": DistortedPart(regions=regions)}), trial


def run(ports: Ports, spec: ExperimentSpec, trial: Trial) -> TrialReport:
    return run_trial(ports, spec, "regions", trial, None, ())


def test_the_pictures_differ_in_the_region_alone(ports: LocalPorts) -> None:
    whole = run(ports, *trial_in(*REGIONS)).pictures[0]
    ports.reset("pick", 0)
    things = ports.things(whole.camera)
    regions: tuple[tuple[Region, NDArray[np.bool_]], ...] = (("things", things), ("surroundings", ~things))
    for region, inside in regions:
        picture = run(ports, *trial_in(region)).pictures[0]
        assert (picture.step, picture.camera) == (0, whole.camera)
        np.testing.assert_array_equal(picture.distorted[inside], whole.distorted[inside])
        np.testing.assert_array_equal(picture.distorted[~inside], whole.reference[~inside])
        assert (picture.distorted != picture.reference)[inside].mean() > 0.5


@pytest.mark.parametrize("region", REGIONS)
def test_a_fault_of_depth_stays_in_its_region(ports: LocalPorts, region: Region) -> None:
    """servo deprojects the thing alone, so depth of its surroundings changes none of its motions."""
    report = run(ports, *trial_in(region, task="reach", name="depth_shift"))
    assert all((picture.distorted == picture.reference).all() for picture in report.pictures), "colour is as it was"
    assert report.evidence.first_chunks is not None
    reference, distorted = report.evidence.first_chunks
    assert np.array_equal(reference.deltas, distorted.deltas) == (region == "surroundings")


def test_forks_are_the_trials_of_their_own_regions(ports: LocalPorts) -> None:
    specs = [trial_in(*regions)[0] for regions in (REGIONS, REGIONS[:1], REGIONS[1:])]
    trial = trial_in(*REGIONS)[1]
    forked = [item.report("regions", None, (), Reference.OWN) for item in run_forked(ports, specs, trial)]
    for spec, report in zip(specs, forked, strict=True):
        alone = run(ports, spec, trial)
        assert replace(report.record, wall_s=0.0) == replace(alone.record, wall_s=0.0)
        assert report.evidence.path == alone.evidence.path
        for one, other in zip(report.pictures, alone.pictures, strict=True):
            np.testing.assert_array_equal(one.distorted, other.distorted)


class UnsegmentedPorts(PlantedPorts):
    """A class of its own, as Python remembers of a class which protocols it fits."""

    things = None  # type: ignore[assignment]


def test_a_cell_that_does_not_know_the_pixels_says_so() -> None:
    with pytest.raises(InfrastructureError, match="does not know which pixels show which thing"):
        run(UnsegmentedPorts(()), *trial_in("things"))


class WatchedPorts(PlantedPorts):
    """Keeps the distorted images that the models are shown."""

    def answer(self, model: str, image: Image, question: str, side: Side) -> Answer:
        if side == "distorted":
            self.asked_about = image
        return super().answer(model, image, question, side)

    def act(self, model: str, observation: Observation, side: Side) -> ActionChunk:
        if side == "distorted" and observation.step == 0:
            self.acted_on = observation.views["top"].color
        return super().act(model, observation, side)


def test_a_picture_is_cut_up_once_for_both_stages() -> None:
    ports = WatchedPorts(())
    pictures = run(ports, *trial_in("things")).pictures
    top = next(picture for picture in pictures if (picture.step, picture.camera) == (0, "top"))
    assert top.distorted is ports.asked_about is ports.acted_on


@pytest.mark.parametrize("graph", ["gazebo", "lab"])
def test_without_the_pixels_of_things_it_is_refused_before_anything_starts(graph: str, tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(
        "name: part\nagents: [{id: servo, vla: servo}]\ntasks: [pick]\ndistortions: [jpeg]\n"
        "distort: {regions: [things]}\n"
    )
    done = CliRunner().invoke(app, ["run", str(file), "--graph", graph, "--runs", str(tmp_path / "runs")])
    assert f"in the graph {graph} images do not say which pixels show which thing" in str(done.exception)
    assert not (tmp_path / "runs").exists()
