"""The small learned models that come with Merton."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from merton.cognition.models.base import MODELS, question_for
from merton.decision.models import tiny_vla
from merton.decision.models.base import POLICIES
from merton.errors import InputError
from merton.experiment.local import LocalPorts
from merton.world.observation import Observation
from merton.world.tasks import TASKS

START = np.array([0.45, 0.0, 0.30])


@pytest.fixture(scope="module")
def ports(renders: None) -> LocalPorts:
    """One cell for all tests."""
    return LocalPorts()


def observed(ports: LocalPorts, task: str, seed: int) -> Observation:
    """The view for a policy at the start of a scene."""
    instruction = ports.reset(task, seed)
    return ports.view().observation("reference", instruction)


@pytest.mark.usefixtures("renders")
@pytest.mark.parametrize("task", TASKS)
def test_segments_represent_every_motion_of_the_oracle(ports, task):
    instruction = ports.reset(task, 3)
    view = ports.view()
    chunk = ports.act("oracle", view.observation("reference", instruction), "reference")
    segments = tiny_vla.from_deltas(chunk.deltas, view.base_from_tcp[:3, 3])
    assert len(segments) <= tiny_vla.SEGMENTS
    assert tiny_vla.to_deltas(segments, view.base_from_tcp[:3, 3]) == pytest.approx(chunk.deltas, abs=1e-9)


def test_segments_end_with_the_motion():
    segments = np.zeros((3, tiny_vla.SEGMENT_SIZE))
    segments[:, :3] = [[0.45, 0.1, 0.3], [0.45, 0.1, 0.2], [9, 9, 9]]
    segments[:, 6] = (1.7, -0.2, 0.5)
    segments[:, 7] = (np.log(2), -3.0, 0.0)
    segments[:, 8] = (1.0, 0.1, -0.1)
    deltas = tiny_vla.to_deltas(segments, START)
    assert deltas == pytest.approx(np.array([[0, 0.05, 0, 0, 0, 0, 1]] * 2 + [[0, 0, -0.1, 0, 0, 0, 0]]))
    assert tiny_vla.to_deltas(segments[2:], START).shape == (0, 7)


def test_words_become_numbers():
    words = ("cube", "pick", "red", "the", "up")
    assert tiny_vla.tokens("Pick up the RED cube.", words).tolist() == [3, 6, 5, 4, 2] + [0] * 11
    assert tiny_vla.tokens("pick a cube", words)[:4].tolist() == [3, 1, 2, 0]
    assert len(tiny_vla.tokens("the " * 40, words)) == tiny_vla.SLOTS


def test_pixels_are_put_onto_the_table(ports):
    """A thing of the scene, projected into the view, comes back to where it stands."""
    ports.reset("pick", 0)
    view = ports.view().reference["top"]
    for x, y in ((0.35, -0.25), (0.5, 0.0), (0.65, 0.25)):
        point = np.linalg.inv(view.base_from_camera) @ (x, y, tiny_vla.HEIGHT_M, 1.0)
        pixel = view.intrinsics.project(point[:3])
        assert tiny_vla.view_points(view, pixel[None])[0] == pytest.approx((x, y), abs=1e-9)


def test_it_does_most_tasks_on_scenes_it_has_never_seen(ports):
    """docs/reference/tiny_models.md has 20 scenes a task; here one of each."""
    done = {}
    for task in TASKS:
        observation = observed(ports, task, 1)
        ports.execute(POLICIES["tiny-vla"].build().act(observation), ports.view())
        done[task] = ports.view().success
    assert sum(done.values()) >= 8, done


def test_the_policy_keeps_its_contract(ports):
    policy = POLICIES["tiny-vla"].build()
    observation = observed(ports, "place", 2)
    chunk = policy.act(observation)
    assert np.array_equal(policy.act(observation).deltas, chunk.deltas)
    assert chunk.done
    assert len(policy.act(replace(observation, step=1)).deltas) == 0
    assert len(policy.act(policy.make_example()).deltas) > 0
    with pytest.raises(InputError, match="needs the camera 'top'"):
        policy.act(replace(observation, views={"wrist": observation.views["wrist"]}))


@pytest.mark.usefixtures("renders")
def test_numpy_gives_the_results_of_torch(tmp_path, ports):
    torch = pytest.importorskip("torch", reason="the training script needs torch")
    import train_tiny_vla as training

    torch.manual_seed(0)
    words = ("cube", "pick", "red", "the", "up")
    network = training.TinyVlaNetwork(len(words), training.pixel_to_table(), torch.zeros(9), torch.ones(9))
    training.save(network, words, tmp_path / "weights.npz")
    for name, value in network.state_dict().items():
        value.copy_(value.half().float()) if value.is_floating_point() else name
    ports.reset("pick", 0)
    view = ports.view().reference["top"]
    numbers = tiny_vla.tokens("pick up the red cube", words)
    image = torch.from_numpy(tiny_vla.crop(view.color).transpose(2, 0, 1)[None].copy()) / 255
    with torch.no_grad():
        expected = network(image, torch.from_numpy(numbers)[None])[0][0].numpy()
    found = tiny_vla.Network(tmp_path / "weights.npz").segments(view, numbers)
    assert found == pytest.approx(expected, abs=1e-3)


def test_the_vlm_gives_the_taught_answers(ports):
    """Word by word on unseen scenes; docs/reference/tiny_models.md has the figures over many."""
    pytest.importorskip("transformers", reason="the tiny VLM runs in transformers")
    import train_tiny_vlm as training

    model = MODELS["tiny-vlm"].build()
    right = total = 0
    for seed, task in enumerate(TASKS):
        instruction = ports.reset(task, seed)
        there = {thing.name: tuple(thing.base_from_object[:2, 3]) for thing in ports.cell.scene_state().objects}
        said = model.answer([ports.view().reference["top"].color], question_for(instruction)).text.split()
        taught = training.answer(instruction, there).split()
        right += sum(one == other for one, other in zip(said, taught, strict=False))
        total += len(taught)
    assert right / total > 0.8


def test_a_question_longer_than_the_decoder_is_refused_in_words():
    """GPT-2's positions end at 64; beyond them torch would raise an IndexError."""
    pytest.importorskip("transformers")
    image = np.zeros((96, 128, 3), np.uint8)
    with pytest.raises(InputError, match="reads at most 63 word pieces"):
        MODELS["tiny-vlm"].build().answer([image], "where is it " * 40)
    assert MODELS["tiny-vlm"].build().answer([image], "x " * 60).text is not None
