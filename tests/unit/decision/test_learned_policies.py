"""The learned policies that come with Merton, and the tools that train them."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from merton.decision.models import gist, glance, picture_view, table_view
from merton.decision.models.base import POLICIES
from merton.decision.models.segments import tokens
from merton.errors import InputError, UnknownNameError
from merton.experiment.local import LocalPorts
from merton.simulation.cameras import SceneCameras
from merton.simulation.scene import make_scene, scene_seeds
from merton.simulation.varied import verbs_of
from merton.world.geometry import transform
from merton.world.nouns import noun
from merton.world.observation import CameraView, Intrinsics
from merton.world.tasks import TASKS

EYES = {f"{name}.weight": np.zeros((1, 1, 3, 3)) for name in ("fine1", "fine2", "coarse2", "coarse3")}
WORDS = ("cube", "left", "mat", "on", "place", "red", "the", "yellow")


@pytest.fixture(scope="module")
def ports(renders: None) -> LocalPorts:
    """One cell for all tests."""
    return LocalPorts()


@pytest.fixture
def training():
    """The training script; it needs torch."""
    pytest.importorskip("torch", reason="the training script needs torch")
    import train_vla

    return train_vla


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of the files of `samples`, and of what is drawn for them."""
    return tmp_path_factory.mktemp("scenes")


@pytest.fixture(scope="module")
def samples(folder, renders):
    """Two scenes of the training split, drawn once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        import split_samples

        patch.setattr(split_samples, "BLOCK", 2)
        yield split_samples.load(folder, "train", range(2))


def test_places_and_pixels_are_inverse():
    places = np.array([[0.35, -0.33], [0.68, 0.33], [0.5, 0.0]])
    assert table_view.places(table_view.pixels(places)) == pytest.approx(places)
    pixels = table_view.pixels(places)
    assert (pixels >= 0).all()
    assert (pixels < [table_view.COLUMNS, table_view.ROWS]).all()


@pytest.mark.parametrize(("width", "height"), [(424, 240), (640, 480), (1280, 720)])
def test_a_place_is_at_its_pixel_whatever_the_camera(width, height):
    """A white square drawn where the camera would see it comes back at its place, for any size and pose."""
    focal = width / 2
    lens = Intrinsics(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2)
    down = transform((0.60, 0.05, 1.10))
    down[:3, :3] = [[0.0, -0.96, -0.28], [-1.0, 0.0, 0.0], [0.0, 0.28, -0.96]]
    for place in ((0.40, -0.20), (0.60, 0.25)):
        corners = [
            (place[0] + x, place[1] + y) for x, y in ((-0.02, -0.02), (-0.02, 0.02), (0.02, 0.02), (0.02, -0.02))
        ]
        seen = [
            lens.project((np.linalg.inv(down) @ (*corner, table_view.HEIGHT_M, 1.0))[:3]).tolist() for corner in corners
        ]
        picture = Image.new("RGB", (width, height))
        ImageDraw.Draw(picture).polygon([tuple(corner) for corner in seen], fill="white")
        table = table_view.from_above(CameraView("top", np.asarray(picture), None, lens, down))
        rows, columns = np.nonzero(table[..., 0] > 127)
        assert table_view.places(np.array([columns.mean(), rows.mean()])) == pytest.approx(place, abs=0.003)


@pytest.mark.parametrize(("width", "height", "focal"), [(424, 240, 212.0), (640, 480, 384.0), (1280, 720, 640.0)])
def test_a_direction_has_one_pixel_of_the_grid_for_every_size_of_the_picture(width, height, focal):
    lens = Intrinsics(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2)
    u, v = lens.project(np.array([0.1, -0.05, 1.0]))
    assert picture_view.pixels(lens, np.array([u, v])) == pytest.approx((79.5 + 21.2, 60.0 - 10.6))
    picture = np.zeros((height, width, 3), np.uint8)
    square = np.s_[round(v - 0.02 * focal) : round(v + 0.02 * focal), round(u - 0.02 * focal) : round(u + 0.02 * focal)]
    picture[square] = 255
    drawn = [np.nonzero(picture[..., 0])[axis].mean() for axis in (1, 0)]
    rows, columns = np.nonzero(
        picture_view.from_picture(CameraView("top", picture, None, lens, np.eye(4)))[..., 0] > 127
    )
    assert (columns.mean(), rows.mean()) == pytest.approx(picture_view.pixels(lens, np.array(drawn)), abs=0.3)


def test_the_strength_and_offset_of_the_light_are_levelled():
    rng = np.random.default_rng(0)
    lens = Intrinsics(424, 240, 212.0, 212.0, 211.5, 119.5)
    picture = 2 * rng.integers(30, 60, (240, 424, 3)).astype(np.uint8)
    bright, dim = (
        picture_view.from_picture(CameraView("top", image, None, lens, np.eye(4)))
        for image in (picture, picture // 2 + 10)
    )
    assert dim.astype(int) == pytest.approx(bright.astype(int), abs=2)  # half a grey value of the dim one, levelled
    assert bright.mean() == pytest.approx(picture_view.MEAN, abs=0.5)
    assert bright.std() == pytest.approx(picture_view.SPREAD, abs=0.5)


def test_samples_tell_where_the_things_are(samples):
    """In the order of the tasks: the thing, the target and the landmark of each instruction, at their true places."""
    index = 0
    for seed in samples.seeds:
        for verb in verbs_of(seed):
            scene = make_scene(f"train-{verb}", seed)
            there = {name: spot[:2] for name, spot in (scene.placements | scene.mats).items()}
            named = (scene.meant.object, scene.meant.target, noun(scene.command.object).landmark)
            expected = [there[name] if name else (np.nan, np.nan) for name in named]
            assert samples.instructions[index] == scene.command.instruction
            assert samples.keypoints[index] == pytest.approx(np.array(expected), abs=0.003, nan_ok=True)
            index += 1
    assert index == len(samples.instructions) == len(samples.deltas)


@pytest.mark.usefixtures("renders")
def test_samples_are_drawn_once_and_the_same_again(samples, folder, tmp_path):
    import split_samples

    files = sorted(folder.glob("train_*.npz"))
    before = [(file.stat().st_mtime_ns, file.read_bytes()) for file in files]
    split_samples.load(folder, "train", range(2))
    assert [(file.stat().st_mtime_ns, file.read_bytes()) for file in files] == before
    again = split_samples.load(tmp_path / "again", "train", range(2))
    assert again.instructions == samples.instructions
    for camera in split_samples.CAMERAS:
        for one, other in zip(samples.images(camera), again.images(camera), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.usefixtures("renders")
def test_the_second_look_is_near_the_end_of_the_first_movement(samples, folder):
    """And the oracle's motion from there ends where its motion from the start ends."""
    import hover_samples

    hover = hover_samples.load(folder / "hover", "train", samples.seeds)
    for index, deltas in enumerate(samples.deltas):
        first = glance.first_movement(deltas)
        start, there = samples.start, hover.poses[index, :3, 3]
        assert 0 < np.linalg.norm(there - start - first[:, :3].sum(0)) < 0.12
        ends = start + deltas[:, :3].sum(0), there + hover.deltas[index][:, :3].sum(0)
        assert ends[0] == pytest.approx(ends[1], abs=0.002), samples.instructions[index]
    assert hover.images("wrist").shape == (len(samples.deltas), 3, table_view.ROWS, table_view.COLUMNS)
    assert hover.images("wrist").any(axis=(1, 2, 3)).all()


def table_points(view, pixels):
    """Points (n, 2) x, y [m] in the plane of the grid, of pixels (n, 2) (u, v) of a view: where their rays meet it."""
    rays = view.intrinsics.deproject(*np.asarray(pixels).T, np.ones(len(pixels))) @ view.base_from_camera[:3, :3].T
    origin = view.base_from_camera[:3, 3]
    return origin[:2] + rays[:, :2] * ((table_view.HEIGHT_M - origin[2]) / rays[:, 2])[:, None]


def test_labels_of_an_uncalibrated_member_are_where_the_things_are_in_the_picture(training, samples):
    """The calibration maps the pixels of the labels back onto the true places."""
    lens = samples.intrinsics
    grid_px = table_view.pixels(training.in_picture(samples)).reshape(-1, 2)
    image_px = (grid_px - picture_view.CENTER_PX) * lens.fx / picture_view.FOCAL_PX + (lens.cx, lens.cy)
    view = CameraView("top", next(samples.images("top")), None, lens, samples.base_from_camera["top"])
    there = samples.keypoints.reshape(-1, 2)
    assert table_points(view, image_px) == pytest.approx(there, abs=1e-6, nan_ok=True)
    assert not np.isnan(there).all()


def test_every_member_trains_on_tables_of_its_own(training, samples):
    """A copy as it is and distorted ones, three channels for every camera."""
    for name, member in training.MEMBERS.items():
        copies = training.images_of(samples, member)
        size = (3 * (len(member.cameras) + bool(member.second)), table_view.ROWS, table_view.COLUMNS)
        assert copies.shape == (3 if member.distortions else 1, 2, *size), name
        assert not any(copies[0].equal(other) for other in copies[1:]), name


def test_images_of_a_member_are_drawn_once(training, tmp_path):
    import torch

    drawn = []

    def draw() -> torch.Tensor:
        drawn.append(torch.arange(6, dtype=torch.uint8).reshape(2, 3))
        return drawn[-1]

    copies = [training.kept(tmp_path / "tables.npy", draw) for _ in range(2)]
    assert len(drawn) == 1
    assert all(copy.equal(drawn[0]) for copy in copies)


@pytest.mark.usefixtures("renders")
@pytest.mark.parametrize("name", ["glance-pair", "glance-twice", "gist"])
def test_numpy_gives_the_results_of_torch(name, training, tmp_path, ports):
    import torch

    network = training.new_network(WORDS, torch.randn(4, 12, 9), replace(training.MEMBERS[name], begins_as=""))
    with torch.no_grad():
        for each in ("direction", "nearness"):
            if hasattr(network, each):
                getattr(network, each).weight *= 20.0
    training.save(network, WORDS, tmp_path / "weights.npz")
    for value in network.state_dict().values():
        value.copy_(value.half().float())
    ports.reset("place", 0)
    seen = ports.view().reference
    kind, cameras = (gist.GistNetwork, ("top",)) if name == "gist" else (glance.Network, ("top", "side"))
    image = np.dstack([table_view.from_above(seen[camera]) for camera in cameras])
    numbers = tokens("place the left red cube on the yellow mat", WORDS)
    hand = glance.hand_state(transform((0.5, 0.1, 0.2)), 0.0)
    batch = torch.from_numpy(image.transpose(2, 0, 1)[None].copy()) / 255
    with torch.no_grad():
        expected = network(batch, torch.from_numpy(numbers)[None, None], torch.from_numpy(hand)[None, None])[0][
            0
        ].numpy()
    assert kind(tmp_path / "weights.npz").segments(image, numbers, hand) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("name", ["glance-hardened", "glance-twice"])
def test_a_training_that_was_ended_goes_on_as_if_it_was_not(name, training, samples, folder, tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr("training_loop.SAVED_STEPS", 1)
    monkeypatch.setattr(training, "SCENES_PER_BATCH", 2)
    member = training.MEMBERS[name]
    words = training.vocabulary(samples, member)
    views = training.looks(folder, samples, member, words)

    def trained(file: Path, stop: int) -> dict[str, torch.Tensor]:
        network = training.new_network(words, views[0].tasks["segments"], member)
        for step, _ in training.train(network, 4, file, training.loss_of_steps(network, member, views)):
            if step == stop:
                break
        return network.state_dict()

    whole = trained(tmp_path / "whole.pt", 4)
    trained(tmp_path / "ended.pt", 2)
    resumed = trained(tmp_path / "ended.pt", 4)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


# The members ----------------------------------------------------------------------------------------------------------

GLANCES = [entry.name for entry in POLICIES.values() if entry.adapter in ("glance", "second_glance", "gist")]
SCENES = int(os.environ.get("MERTON_POLICIES", "1"))
"""Scenes of each verb on which the members are tried; MERTON_POLICIES=50 holds them to what they claim."""


@pytest.mark.parametrize("name", GLANCES)
def test_a_member_keeps_its_contract(name, ports):
    policy = POLICIES[name].build()
    assert (glance.FOLDER / f"{name}.npz").stat().st_size <= 1e6
    assert POLICIES[name].cameras == policy.cameras
    task = f"test-{policy.verbs[0]}"
    instruction = ports.reset(task, scene_seeds(task, 1)[0])
    observation = ports.view().observation("reference", instruction)
    looks = 2 if isinstance(policy, glance.SecondGlance) else 1
    chunks = [policy.act(replace(observation, step=step)) for step in range(looks + 1)]
    assert np.array_equal(policy.act(observation).deltas, chunks[0].deltas)
    assert [chunk.done for chunk in chunks] == [False] * (looks - 1) + [True, True]
    assert [len(chunk.deltas) > 0 for chunk in chunks] == [True] * looks + [False]
    assert len(policy.act(policy.make_example()).deltas) > 0
    with pytest.raises(InputError, match="needs camera 'top'"):
        policy.act(replace(observation, views={}))


@pytest.mark.parametrize("name", GLANCES)
def test_a_member_refuses_verbs_that_it_does_not_claim(name):
    policy = POLICIES[name].build()
    for verb in set(TASKS) - set(policy.verbs):
        example = glance.Glance(name, [verb], policy.cameras).make_example()
        with pytest.raises(InputError, match=f"{name} cannot {verb}; it can: "):
            policy.act(example)


@pytest.mark.parametrize("name", GLANCES)
def test_a_member_does_what_it_claims(name, ports):
    """At least 70 % of each verb; of one easy scene of every second verb, 70 % of all."""
    done, verbs = {}, POLICIES[name].build().verbs
    for verb in verbs if SCENES > 1 else verbs[GLANCES.index(name) % 2 :: 2]:
        task = f"test-{verb}"
        seeds = scene_seeds(task, SCENES) if SCENES > 1 else [first_easy_scene(task)]
        done[verb] = sum(attempt(ports, name, task, seed) for seed in seeds) / len(seeds)
    assert np.mean(list(done.values())) >= 0.7, done
    assert SCENES < 20 or min(done.values()) >= 0.7, done


@cache
def first_easy_scene(task: str) -> int:
    """The first scene of a task that has the first difficulty."""
    return next(seed for seed in scene_seeds(task, 50) if make_scene(task, seed).difficulty == 1)


def attempt(ports: LocalPorts, name: str, task: str, seed: int) -> bool:
    """Whether a policy does a task."""
    instruction = ports.reset(task, seed)
    for step in range(2):
        view = ports.view()
        chunk = ports.act(name, view.observation("reference", instruction, step), "reference")
        if ports.execute(chunk, view).error_message or chunk.done:
            break
    return ports.cell.success()


@pytest.mark.usefixtures("renders")
@pytest.mark.parametrize("name", GLANCES)
def test_the_size_of_the_images_matters_little(name, ports):
    """The motion from images of 640 x 480 ends within a centimetre of that from 424 x 240."""
    policy = POLICIES[name].build()
    task = f"test-{policy.verbs[0]}"
    seed = scene_seeds(task, 1)[0]
    instruction = ports.reset(task, seed)
    observation = ports.view().observation("reference", instruction)
    cameras = SceneCameras(640, 480)
    views = {camera: cameras.render(task, seed, ports.cell.qpos, camera) for camera in policy.cameras}
    cameras.close()
    ends = [policy.act(each).deltas[:, :3].sum(0) for each in (observation, replace(observation, views=views))]
    assert ends[0] == pytest.approx(ends[1], abs=0.01)


def test_an_unknown_member_is_named_with_the_choices():
    with pytest.raises(UnknownNameError, match="glance"):
        glance.Glance("glance-sage")


def test_no_delta_is_longer_than_the_arm_may_go():
    segments = np.zeros((2, 9), np.float32)
    segments[:, :3] = [[0.45, 0.0, 0.30], [0.45, 0.2, 0.30]]
    segments[:, 3:6] = [[0.0, 0.0, 0.9], [0.0, 0.0, 0.0]]
    slow = glance.slow_enough(segments, np.array([0.45, 0.0, 0.30]))
    assert np.exp(slow[:, 7]) == pytest.approx([4, 3])
    assert np.array_equal(np.delete(slow, 7, axis=1), np.delete(segments, 7, axis=1))


def test_the_first_movement_ends_where_the_hand_turns():
    """With the gripper command before it, and without the part of a segment that goes elsewhere."""
    deltas = np.zeros((6, 7))
    deltas[1:4, 0] = 0.05
    deltas[4:, 2] = -0.05
    assert np.array_equal(glance.first_movement(deltas), deltas[:4])
    assert np.array_equal(glance.first_movement(deltas[:1]), deltas[:1])


@pytest.mark.parametrize("name", ["glance-uncalibrated", "gist"])
def test_a_member_without_calibration_uses_none(name, ports):
    """The motion is the same wherever the camera is said to stand; that of a calibrated member moves with it."""
    instruction = ports.reset("test-reach", scene_seeds("test-reach", 1)[0])
    observation = ports.view().observation("reference", instruction)
    top = observation.views["top"]
    elsewhere = transform((0.05, 0.0, 0.0)) @ top.base_from_camera
    moved = replace(observation, views={"top": replace(top, base_from_camera=elsewhere)})
    same = [np.array_equal(*(POLICIES[each].build().act(seen).deltas for seen in (observation, moved)))
            for each in (name, "glance")]  # fmt: skip
    assert same == [True, False]


def test_attention_of_pooled_features_may_rest_on_nothing(tmp_path):
    """The less fits, the nearer is the answer to zero; with everything alike it is the mean of what is seen."""
    np.savez(tmp_path / "weights.npz", words=np.array(WORDS), nothing=np.array([-50.0, 0.0]), **EYES)
    network = gist.GistNetwork(tmp_path / "weights.npz")
    seen = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for fit, share in ((0.0, 4 / 5), (-2.0, 4 * np.exp(-2) / (4 * np.exp(-2) + 1)), (-100.0, 0.0)):
        logits = np.full((glance.ROLES, 4), fit, np.float32)
        expected = np.tile(share * seen.mean(axis=1), glance.ROLES)
        assert network.pool(logits, seen, 1) == pytest.approx(expected, abs=1e-5)
    everything = network.pool(np.zeros((glance.ROLES, 4), np.float32), seen, 0)
    assert everything == pytest.approx(np.tile(seen.mean(axis=1), glance.ROLES), abs=1e-5)


def test_the_camera_of_the_second_look_does_not_count_before_it(ports):
    policy = POLICIES["glance-twice"].build()
    instruction = ports.reset("test-pick", scene_seeds("test-pick", 1)[0])
    observation = ports.view().observation("reference", instruction)
    wrist = observation.views["wrist"]
    dark = replace(observation, views=observation.views | {"wrist": replace(wrist, color=np.zeros_like(wrist.color))})
    assert np.array_equal(policy.act(observation).deltas, policy.act(dark).deltas)
    later = [policy.act(replace(each, step=1)).deltas for each in (observation, dark)]
    assert len(later[0]) != len(later[1]) or not np.array_equal(*later)
