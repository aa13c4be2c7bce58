"""The servo: it finds the named object, does the task on clean images, and gives valid actions for any image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from merton.decision.models.base import POLICIES
from merton.decision.models.servo import CORRECTOR, FINDER, LOOK_HEIGHT_M, LOOKOUT_M, VERBS, Servo, locate
from merton.errors import InputError
from merton.experiment.local import LocalPorts
from merton.world import motion as motions
from merton.world.geometry import transform
from merton.world.observation import Image, Observation
from merton.world.tasks import COLORS

INSTRUCTIONS = (
    "reach above the red cube",
    "push the green cylinder to the left",
    "pick up the blue cube",
    "place the yellow cylinder on the red mat",
)


@pytest.fixture(scope="module")
def ports(renders: None) -> Iterator[LocalPorts]:
    ports = LocalPorts()
    yield ports
    ports.close()


def observe(ports: LocalPorts, task: str, seed: int, distortion: tuple[str, int] = ("reference", 0)) -> Observation:
    ports.set_distortion(*distortion, 7)
    instruction = ports.reset(task, seed)
    return ports.view().observation("distorted", instruction)


def act(observation: Observation) -> tuple[NDArray[np.float64], bool]:
    chunk = Servo().act(observation)
    assert chunk.step_s == motions.STEP_S
    assert np.linalg.norm(chunk.deltas[:, :3], axis=1).max() <= motions.MAX_TRANSLATION_M + 1e-9
    assert np.linalg.norm(chunk.deltas[:, 3:6], axis=1).max() <= motions.MAX_ROTATION_RAD + 1e-9
    return chunk.deltas, chunk.done


def shown(instruction: str, image: Image, depth_m: NDArray[np.float32] | None = None, step: int = 0) -> Observation:
    """An observation in which both cameras see this image."""
    example = replace(Servo().make_example(), instruction=instruction, step=step)
    depths = {name: view.depth_m if depth_m is None else depth_m for name, view in example.views.items()}
    views = {name: replace(view, color=image, depth_m=depths[name]) for name, view in example.views.items()}
    return replace(example, views=views)


def test_the_catalogue_names_its_cameras() -> None:
    assert isinstance(POLICIES["servo"].build(), Servo)
    assert POLICIES["servo"].cameras == (FINDER, CORRECTOR)
    assert not POLICIES["servo"].needs_scene


@pytest.mark.usefixtures("renders")
@pytest.mark.parametrize("task", VERBS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_servo_does_the_task(ports: LocalPorts, task: str, seed: int) -> None:
    """Motion after motion, until it reports done."""
    ports.set_distortion("reference", 0, 0)
    instruction = ports.reset(task, seed)
    view = ports.view()
    for step in range(6):
        chunk = ports.act("servo", view.observation("distorted", instruction, step), "distorted")
        assert ports.execute(chunk, view).error_code == 0
        view = ports.view()
        if chunk.done:
            break
    assert chunk.done
    assert view.success


@pytest.mark.parametrize("task", ["reach", "place"])
def test_located_objects_are_near_their_true_poses(ports: LocalPorts, task: str) -> None:
    """From a metre away to 5 mm and a few degrees: a pixel of the top camera is 4.5 mm wide."""
    for seed in range(5):
        view = observe(ports, task, seed).views["top"]
        scene = ports.cell.scene
        assert scene is not None
        for name, (x, y, yaw) in scene.placements.items():
            sighting = locate(view, name)
            assert sighting is not None
            assert sighting.top[:2] == pytest.approx((x, y), abs=0.005)
            assert sighting.center[2] == pytest.approx(0.0225 if name.endswith("cube") else 0.03, abs=0.002)
            if name.endswith("cylinder"):
                assert sighting.yaw_rad is None
            else:
                assert sighting.yaw_rad is not None
                away = (sighting.yaw_rad - yaw + np.pi / 4) % (np.pi / 2) - np.pi / 4
                assert abs(away) < np.radians(12)
        for name, center in scene.mats.items():
            sighting = locate(view, name)
            assert sighting is not None
            assert sighting.top == pytest.approx((*center, 0.001), abs=0.005)


def test_first_it_goes_above_the_object(ports: LocalPorts) -> None:
    observation = observe(ports, "pick", 1)
    deltas, done = act(observation)
    thing = ports.cell.scene_state().find(observation.instruction.removeprefix("pick up the "))
    end = observation.base_from_tcp[:3, 3] + deltas[:, :3].sum(axis=0)
    assert end == pytest.approx((*thing.base_from_object[:2, 3], LOOK_HEIGHT_M), abs=0.005)
    assert deltas[:, 6] == pytest.approx(1.0, abs=0.001), "the fingers stay open"
    assert not done


def test_the_servo_keeps_no_state(ports: LocalPorts) -> None:
    servo = Servo()
    first, second = observe(ports, "pick", 1), observe(ports, "push", 0)
    alone = servo.act(first)
    servo.act(second)
    assert (servo.act(first).deltas == alone.deltas).all()


def test_without_the_object_it_goes_to_the_lookout_and_then_ends() -> None:
    nothing = np.full((240, 424, 3), 200, np.uint8)
    observation = shown(INSTRUCTIONS[0], nothing)
    deltas, done = act(observation)
    assert observation.base_from_tcp[:3, 3] + deltas[:, :3].sum(axis=0) == pytest.approx(LOOKOUT_M)
    assert not done
    above = observation.base_from_tcp.copy()
    above[:3, 3] = LOOKOUT_M
    deltas, done = act(replace(observation, base_from_tcp=above, step=1))
    assert deltas.tolist() == [[0, 0, 0, 0, 0, 0, 1]]
    assert done


def test_with_a_held_object_it_looks_for_the_mat(ports: LocalPorts) -> None:
    """At the lookout, with an object between the fingers, it goes to the mat and releases the object there."""
    observation = observe(ports, "place", 0)
    scene = ports.cell.scene
    assert scene is not None
    (center,) = scene.mats.values()
    above = transform(LOOKOUT_M)
    above[:3, :3] = observation.base_from_tcp[:3, :3]
    holding = replace(observation, base_from_tcp=above, gripper_open=0.3, views=dict(observation.views))
    deltas, done = act(holding)
    opens = int(np.argmax(deltas[:, 6]))
    released = np.add(LOOKOUT_M, deltas[:opens, :3].sum(axis=0))
    assert released[:2] == pytest.approx(center, abs=0.005)
    assert 0.02 < released[2] < 0.03
    assert (deltas[:opens, 6] == 0.3).all(), "the fingers stay where they are on the way"
    assert done


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
@pytest.mark.parametrize("step", [0, 1, 5])
def test_any_image_gives_a_valid_action(instruction: str, step: int) -> None:
    rng = np.random.default_rng(step)
    shape = (240, 424)
    images = [
        np.zeros((*shape, 3), np.uint8),
        np.full((*shape, 3), 255, np.uint8),
        rng.integers(0, 256, (*shape, 3), np.uint8),
        np.broadcast_to(np.array((229, 25, 25), np.uint8), (*shape, 3)).copy(),
        np.where(rng.random((*shape, 1)) < 0.7, (229, 25, 25), (20, 60, 205)).astype(np.uint8),
    ]
    depths = [
        np.zeros(shape, np.float32),
        rng.uniform(0, 6, shape).astype(np.float32),
        np.full(shape, 0.98, np.float32),
    ]
    for image in images:
        for depth_m in depths:
            for gripper_open in (0.0, 0.3, 1.0):
                act(replace(shown(instruction, image, depth_m, step), gripper_open=gripper_open))


def test_invalid_requests_are_refused(ports: LocalPorts) -> None:
    observation = observe(ports, "reach", 0)
    with pytest.raises(InputError, match="cannot understand the instruction"):
        Servo().act(replace(observation, instruction="make tea"))
    with pytest.raises(InputError, match="servo cannot twist; it can: reach, push, pick, place"):
        Servo().act(replace(observation, instruction="twist the red knob to the left"))
    with pytest.raises(InputError, match="needs the view of camera 'top'"):
        Servo().act(replace(observation, views={}))
    blind = {name: replace(view, depth_m=None) for name, view in observation.views.items()}
    with pytest.raises(InputError, match="aligned depth from camera 'wrist'"):
        Servo().act(replace(observation, views=blind, step=1))


@pytest.mark.parametrize(
    ("distortion", "limit"), [("white_noise", 15), ("multiplicative_noise", 15), ("color_quantization", 15)]
)
def test_it_finds_less_in_a_worse_image(ports: LocalPorts, distortion: str, limit: int) -> None:
    """How many of the 30 objects of ten scenes the first camera shows it at levels 0, 3 and 5."""
    found = dict.fromkeys((0, 3, 5), 0)
    for level in found:
        for seed in range(10):
            view = observe(ports, "reach", seed, (distortion, level)).views["top"]
            found[level] += sum(locate(view, f"{color} cube") is not None for color in COLORS)
    assert found[0] == 30
    assert found[0] >= found[3] > found[5]
    assert found[5] < 15
