"""The scenes of splits: five clear tasks each, room for all, a look that decides no physics, no shared assets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from merton.decision.models.servo import Servo
from merton.errors import InputError, MissingDependencyError, UnknownNameError
from merton.experiment.local import LocalPorts
from merton.experiment.plan import AgentSpec, ExperimentSpec
from merton.results.records import TestCase
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.gazebo import gazebo_scene
from merton.simulation.look import make_look
from merton.simulation.model import build_model
from merton.simulation.scene import make_plain_scene, make_scene, scene_seeds
from merton.simulation.textures import SHIFTED, TRAINED
from merton.simulation.varied import DIFFICULTIES, SHAPES_OF, Layout, make_layout, verbs_of
from merton.world.nouns import SIZES, Noun, meant, noun
from merton.world.shapes import height_m, parts_of
from merton.world.tasks import SPLITS, TASKS, parse, scene_of, split_and_verb, task_names

SCENES = [(split, seed) for split in SPLITS for seed in range(6)]


def alike(layout: Layout, name: str) -> list[str]:
    """The other things of the same colour and shape."""
    return [
        thing.name for thing in layout.things if thing.name != name and thing.name.split()[-2:] == name.split()[-2:]
    ]


# Names ----------------------------------------------------------------------------------------------------------------


def test_a_task_is_named_by_its_split_and_verb() -> None:
    assert len(task_names()) == len(set(task_names())) == len(TASKS) * (1 + len(SPLITS))
    assert split_and_verb("test-pick") == ("test", "pick")
    assert split_and_verb("pick") == ("plain", "pick")
    assert scene_of("test-pick", 7) == scene_of("test-pull", 7) == "test.7"
    assert scene_of("pick", 7) != scene_of("pull", 7)
    assert all(TestCase(task, 7, "jpeg", 3).scene == scene_of(task, 7) for task in task_names()), "the sampling unit"
    for wrong in ("tset-pick", "test-", "-pick", "test-juggle", "plain-pick"):
        with pytest.raises(UnknownNameError, match="task"):
            split_and_verb(wrong)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("red cube", Noun("red", "cube")),
        ("small red mug", Noun("red", "mug", size="small")),
        ("far blue button", Noun("blue", "button", place="far")),
        ("blue peg nearest to the red ball", Noun("blue", "peg", landmark="red ball")),
    ],
)
def test_a_noun_is_read_as_it_is_written(text: str, expected: Noun) -> None:
    assert noun(text) == expected
    assert str(expected) == text


def test_a_noun_means_one_thing_or_is_refused() -> None:
    there = {
        "small red cube": (0.4, 0.1),
        "large red cube": (0.6, -0.1),
        "blue ball": (0.4, 0.2),
        "red ball": (0.5, 0.3),
    }
    for text, name in {
        "left red cube": "small red cube",
        "right red cube": "large red cube",
        "far red cube": "large red cube",
        "near red cube": "small red cube",
        "large red cube": "large red cube",
        "red cube nearest to the blue ball": "small red cube",
        "blue ball": "blue ball",
    }.items():
        assert meant(text, there) == name
    with pytest.raises(InputError, match="more than one"):
        meant("red cube", there)
    with pytest.raises(InputError, match="no object 'green cube'"):
        meant("green cube", there)
    with pytest.raises(InputError, match="cannot read"):
        meant("the thing", there)


# Layouts --------------------------------------------------------------------------------------------------------------


def test_verbs_and_difficulties_are_balanced() -> None:
    places = Counter((verb, place) for seed in range(150) for place, verb in enumerate(verbs_of(seed), 1))
    for verb in TASKS:
        each = {places[verb, difficulty] for difficulty in DIFFICULTIES}
        assert len(each) == 1, verb
        assert each.pop() >= 10
        assert {verbs_of(seed).index(verb) for seed in scene_seeds(f"test-{verb}", 8)} == set(range(5))
    assert all(len(set(verbs_of(seed))) == 5 for seed in range(150))


@pytest.mark.parametrize(("split", "seed"), SCENES)
def test_a_scene_has_five_clear_tasks_of_rising_difficulty(split: str, seed: int) -> None:
    layout = make_layout(split, seed)
    assert layout == make_layout.__wrapped__(split, seed)
    names = [thing.name for thing in layout.things]
    assert len(set(names)) == len(names)
    assert [job.difficulty for job in layout.jobs.values()] == list(DIFFICULTIES)
    places = {thing.name: thing.spot[:2] for thing in layout.things}
    for verb, job in layout.jobs.items():
        assert parse(job.command.instruction) == job.command
        assert job.command.verb == verb
        assert meant(job.command.object, places) == job.meant.object
        said, others = noun(job.command.object), alike(layout, job.meant.object)
        same_color = [name for name in names if name != job.meant.object and said.color in name.split()]
        match job.difficulty:
            case 1:
                assert not same_color
            case 2:
                assert same_color
                assert not others
            case 3:
                assert said.size
            case 4:
                assert said.place
            case 5:
                assert said.landmark
        assert bool(others) == (job.difficulty >= 3)
        assert said.is_plain == (job.difficulty <= 2)
        scene = make_scene(f"{split}-{verb}", seed)
        assert (scene.command, scene.meant, scene.difficulty) == (job.command, job.meant, job.difficulty)
        assert job.command.target is None or job.command.target in {*scene.placements, *scene.mats}


@pytest.mark.parametrize(("split", "seed"), SCENES)
def test_things_stand_apart_and_can_be_reached(split: str, seed: int, cell: SimulatedCell) -> None:
    layout = make_layout(split, seed)
    spots = np.array([thing.spot[:2] for thing in layout.things])
    distances = np.linalg.norm(spots[:, None] - spots, axis=2) + np.eye(len(spots))
    assert distances.min() > 0.13
    low, high = cell.config.workspace.min, cell.config.workspace.max
    assert (spots > np.add(low[:2], 0.1)).all()
    assert (spots < np.subtract(high[:2], 0.1)).all()
    for _, (x, y, _) in layout.clutter:
        assert np.hypot(*(spots - (x, y)).T).min() > 0.12


@pytest.mark.parametrize("split", ["test", "shift"])
def test_a_thing_to_cover_fits_under_the_lid_at_any_angle(split: str, cell: SimulatedCell) -> None:
    lid, seen = cell.config.objects.props.lid, set()
    for seed in scene_seeds(f"{split}-cover", 25):
        layout = make_layout(split, seed)
        thing = next(thing for thing in layout.things if thing.name == layout.jobs["cover"].meant.object)
        parts = parts_of(thing.shape, thing.scale, cell.config)
        reach = max(np.hypot(*part.size[:2]) if part.kind == "box" else part.size[0] for part in parts)
        assert reach < lid.inner_width / 2, (seed, thing)
        assert height_m(thing.shape, thing.scale, cell.config) < lid.height - lid.wall
        seen.add(thing.shape)
    assert len(seen) >= 3


def test_a_verb_that_a_scene_lacks_is_refused_with_those_it_has() -> None:
    lacking = next(verb for verb in TASKS if verb not in verbs_of(3))
    with pytest.raises(InputError, match=f"no task '{lacking}'; it has: {', '.join(verbs_of(3))}"):
        make_scene(f"val-{lacking}", 3)


def test_an_experiment_takes_the_scenes_that_have_its_task() -> None:
    seeds = scene_seeds("test-pour", 4)
    assert all("pour" in verbs_of(seed) for seed in seeds)
    assert scene_seeds("pour", 4) == [0, 1, 2, 3]
    spec = ExperimentSpec(
        name="x",
        agents=(AgentSpec(id="a", vla="oracle"),),
        tasks=("test-pour", "pick"),
        scenes=2,
        reference_scenes=1,
        distortions=("jpeg",),
        levels=(3,),
    )
    assert [case.id for case in spec.cases()] == [
        f"test-pour.{seeds[0]}.reference.0",
        f"test-pour.{seeds[0]}.jpeg.3",
        f"test-pour.{seeds[1]}.reference.0",
        f"test-pour.{seeds[1]}.jpeg.3",
        f"test-pour.{seeds[2]}.reference.0",
        "pick.0.reference.0",
        "pick.0.jpeg.3",
        "pick.1.reference.0",
        "pick.1.jpeg.3",
        "pick.2.reference.0",
    ]


def test_cells_without_these_things_say_so() -> None:
    with pytest.raises(InputError, match="the lab has the things of plain scenes only"):
        make_plain_scene("test-pick", 3, "the lab")
    with pytest.raises(InputError, match="Gazebo has the things of plain scenes only"):
        gazebo_scene("shift-pick", 3)


# Splits ---------------------------------------------------------------------------------------------------------------


def test_no_texture_lamp_or_shape_of_shift_is_in_another_split() -> None:
    assert not set(SHIFTED) & set(TRAINED)
    new = set(SHAPES_OF["shift"]) - {"cube", "cylinder"}
    assert new
    assert not new & set(SHAPES_OF["train"])
    assert SHAPES_OF["train"] == SHAPES_OF["val"] == SHAPES_OF["test"]
    for seed in range(40):
        looks = {split: make_look(split, seed, ("top",)) for split in SPLITS}
        textures = {split: {finish.texture for finish in look.finishes.values()} for split, look in looks.items()}
        assert textures.pop("shift") <= set(SHIFTED)
        assert all(kinds <= set(TRAINED) for kinds in textures.values())
        sides = {split: look.lamps[0].at[1] > 0 for split, look in looks.items()}
        assert sides == {"train": False, "val": False, "test": False, "shift": True}
        heights = {split: look.lamps[0].at[2] for split, look in looks.items()}
        assert heights.pop("shift") < min(heights.values())


def test_scenes_of_one_seed_differ_between_splits() -> None:
    assert len({make_layout(split, 5).things for split in ("train", "val", "test")}) == 3
    assert len({str(make_look(split, 5, ("top",)).finishes) for split in SPLITS}) == len(SPLITS)


# Physics --------------------------------------------------------------------------------------------------------------


def test_the_look_changes_no_physics() -> None:
    layout = make_layout("test", 4)
    ends = []
    for look in (None, make_look("test", 4, ("top",)), make_look("shift", 9, ("top",))):
        model = build_model(layout=layout, look=look)
        data = mujoco.MjData(model)
        for _ in range(100):
            mujoco.mj_step(model, data)
        ends.append(data.qpos.tobytes() + data.qvel.tobytes())
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize(("split", "seed"), [("test", 1), ("shift", 2)])
def test_things_rest_where_they_are_put_and_nothing_succeeds_by_itself(
    split: str, seed: int, cell: SimulatedCell
) -> None:
    for verb in verbs_of(seed):
        scene = cell.reset(f"{split}-{verb}", seed)
        start = cell.scene_state()
        cell.command_gripper(0.1)
        cell.advance(5.0)
        for item in cell.scene_state().objects:
            spot = {**scene.placements, **scene.mats}[item.name][:2]
            np.testing.assert_allclose(item.base_from_object[:2, 3], spot, atol=5e-4)
            drift = item.base_from_object - start.find(item.name).base_from_object
            assert np.abs(drift).max() < 5e-4, item.name
        assert not cell.success()


def test_the_same_scene_gives_the_same_bytes_after_any_other(cell: SimulatedCell) -> None:
    def run(one: SimulatedCell, task: str, seed: int) -> bytes:
        one.reset(task, seed)
        one.command_trajectory([0.5], [one.config.home_joints + 0.2])
        one.command_gripper(0.05)
        one.advance(9.0)
        return one.qpos.tobytes()

    expected = run(cell, "test-insert", 1)
    run(cell, "pick", 0)
    run(cell, "shift-press", 3)
    assert run(cell, "test-insert", 1) == expected
    assert run(SimulatedCell(), "test-insert", 1) == expected


# Pictures -------------------------------------------------------------------------------------------------------------


def test_a_view_of_a_varied_scene_depends_on_it_alone(cell: SimulatedCell, cameras: SceneCameras) -> None:
    """Stages share a drawing context, into which the textures of each scene are loaded; test.5 has more materials."""

    def colors(by: SceneCameras, task: str, seed: int) -> bytes:
        cell.reset(task, seed)
        return b"".join(by.render(task, seed, cell.qpos, name).color.tobytes() for name in by.names)

    first, other, plain = (
        colors(cameras, "test-twist", 1),
        colors(cameras, "test-place", 5),
        colors(cameras, "pick", 0),
    )
    assert first != other
    assert colors(cameras, "test-twist", 1) == first
    assert colors(cameras, "test-place", 5) == other
    assert colors(cameras, "pick", 0) == plain
    try:
        fresh = SceneCameras()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    assert colors(fresh, "test-place", 5) == other
    fresh.close()


def test_cameras_see_the_things_in_their_colours_although_they_are_off(
    cell: SimulatedCell, cameras: SceneCameras
) -> None:
    seen = 0
    for split, seed in (("train", 1), ("test", 2), ("shift", 3)):
        scene = cell.reset(f"{split}-{verbs_of(seed)[0]}", seed)
        view = cameras.render(scene.task, seed, cell.qpos, "top")
        for item in cell.scene_state().objects:
            if item.name.split()[-1] not in ("mat", "cube", "lid"):
                continue
            point = np.linalg.inv(view.base_from_camera) @ item.base_from_object[:, 3]
            column, row = np.round(view.intrinsics.project(point[:3])).astype(int)
            red, green, blue = view.color[row, column].astype(int)
            wanted = {
                "red": red > 1.4 * max(green, blue),
                "green": green > 1.3 * max(red, blue),
                "blue": blue > 1.3 * max(red, green),
                "yellow": min(red, green) > 1.5 * blue,
            }
            assert wanted[item.name.split()[-2]], (split, seed, item.name, red, green, blue)
            seen += 1
    assert seen >= 5


def test_cameras_are_off_by_little_and_say_the_pose_they_should_have() -> None:
    """As a calibrated camera that has been touched: the view carries the calibrated pose."""
    layout, look = make_layout("test", 0), make_look("test", 0, ("top", "side", "wrist"))
    straight = build_model(layout=layout, look=replace(look, cameras={}))
    off = build_model(layout=layout, look=look)
    for name in ("top", "side", "wrist"):
        shift = np.linalg.norm(off.camera(name).pos - straight.camera(name).pos)
        assert 0 < shift < 0.008
        assert 0.99997 < abs(off.camera(name).quat @ straight.camera(name).quat) < 1 - 1e-9


# Agents ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ports(renders: None) -> LocalPorts:
    try:
        return LocalPorts()
    except MissingDependencyError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("renders")
@pytest.mark.parametrize("task_and_seed", [("shift-push", 2), ("train-insert", 1)])
def test_the_oracle_does_the_task_that_is_meant(task_and_seed: tuple[str, int], ports: LocalPorts) -> None:
    """More of them: tools/studies/scene_oracle.py."""
    task, seed = task_and_seed
    view_of = ports.reset(task, seed), ports.view(color=(), depth=())
    chunk = ports.act("oracle", view_of[1].observation("reference", view_of[0]), "reference")
    execution = ports.execute(chunk, view_of[1])
    assert ports.cell.success(), execution.error_message


def test_servo_refuses_a_thing_that_colour_does_not_single_out(ports: LocalPorts) -> None:
    seed = next(seed for seed in range(30) if verbs_of(seed)[2] == "pick")
    instruction = ports.reset("test-pick", seed)
    assert instruction.split()[3] in SIZES
    with pytest.raises(InputError, match="cannot tell which is the"):
        Servo().act(ports.view().observation("reference", instruction))
