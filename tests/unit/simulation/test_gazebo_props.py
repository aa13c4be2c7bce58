"""Props in Gazebo are those of the embedded cell: the SDF that is put into Gazebo's world, against MuJoCo."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import mujoco
import numpy as np
import pytest
import xacro
from scipy.spatial.transform import Rotation

from merton.files import resource
from merton.simulation import gazebo
from merton.simulation.cell import SimulatedCell
from merton.simulation.gazebo_props import FIXTURE_BITS, SURROUNDINGS_BITS, linear, movable_props, prop_sdf
from merton.simulation.props import body_of, props_of
from merton.simulation.scene import make_scene
from merton.simulation.surfaces import FIXTURE, FRICTION, PAD_FRICTION, RGB
from merton.world.cell import load_cell
from merton.world.geometry import Matrix, transform
from merton.world.tasks import TASKS, all_props
from merton_nodes.ros import names
from sdf import numbers, sdformat

CELL = load_cell()
PROPS = {prop.name: prop for prop in all_props()}
MOVABLE = movable_props()
JOINTED = tuple(name for name, prop in PROPS.items() if prop.moving)
COLOR = "yellow"


def model_of(prop: str) -> ElementTree.Element:
    model = ElementTree.fromstring(prop_sdf(f"{COLOR} {prop}", CELL)).find("model")
    assert model is not None
    return model


def pose_of(element: ElementTree.Element) -> Matrix:
    pose = element.find("pose")
    assert pose is not None
    assert pose.get("rotation_format") == "quat_xyzw"
    x, y, z, *xyzw = numbers(pose.text)
    return transform((x, y, z), Rotation.from_quat(xyzw))


@pytest.mark.parametrize("prop", PROPS)
def test_libsdformat_takes_it_without_a_word(prop: str, tmp_path: Path) -> None:
    file = tmp_path / "prop.sdf"
    file.write_text(prop_sdf(f"{COLOR} {prop}", CELL))
    assert sdformat("-k", file).strip() == "Valid."


@pytest.mark.parametrize("task", TASKS)
def test_a_scene_names_the_props_of_its_task(task: str) -> None:
    assert sorted(map(body_of, make_scene(task, 0).props)) == sorted(set(props_of(task)) - {"beads"})


@pytest.mark.parametrize("task", ["cover", "insert", "press", "pull", "twist"])
def test_every_shape_is_where_the_embedded_cell_has_it(task: str) -> None:
    cell = SimulatedCell()
    scene = cell.reset(task, 7)
    standing = gazebo.places(scene, CELL)
    for name in scene.props:
        prop = body_of(name)
        model = ElementTree.fromstring(prop_sdf(name, CELL)).find("model")
        for link in model.findall("link"):
            body = cell.model.body(prop if prop not in JOINTED else link.get("name"))
            collisions, visuals = link.findall("collision"), link.findall("visual")
            assert len(collisions) == len(visuals) == body.geomnum[0] > 0
            for index, (collision, visual) in enumerate(zip(collisions, visuals, strict=True)):
                geom = body.geomadr[0] + index
                base_from_shape = standing[name] @ pose_of(link) @ pose_of(collision)
                np.testing.assert_allclose(base_from_shape[:3, 3], cell.data.geom_xpos[geom], atol=5e-4)
                np.testing.assert_allclose(base_from_shape[:3, :3], cell.data.geom_xmat[geom].reshape(3, 3), atol=5e-3)
                np.testing.assert_array_equal(pose_of(visual), pose_of(collision))
                geometry = collision.find("geometry")
                assert ElementTree.tostring(geometry) == ElementTree.tostring(visual.find("geometry"))
                size = cell.model.geom_size[geom]
                if cell.model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX:
                    assert numbers(geometry.findtext("box/size")) == pytest.approx(2 * size)
                else:
                    assert float(geometry.findtext("cylinder/radius")) == pytest.approx(size[0])
                    assert float(geometry.findtext("cylinder/length")) == pytest.approx(2 * size[1])
                fixed = cell.model.geom_contype[geom] == FIXTURE
                friction = FRICTION[0] if fixed else PAD_FRICTION[0]  # the lesser of two surfaces' counts
                assert float(collision.findtext("surface/friction/ode/mu")) == friction
                assert collision.findtext("surface/contact/collide_bitmask") == (str(FIXTURE_BITS) if fixed else None)
                light = numbers(visual.findtext("material/diffuse"))[:3]
                srgb = cell.model.mat_rgba[cell.model.geom_matid[geom], :3]
                assert light == pytest.approx(linear(srgb), abs=1e-5)


@pytest.mark.parametrize("prop", MOVABLE)
def test_what_moves_has_its_mass_and_reports_its_pose(prop: str) -> None:
    model = model_of(prop)
    assert model.findtext("static") in (None, "false")
    assert model.get("canonical_link") == (prop if prop in JOINTED else None), "the model's pose is that of the part"
    plugin = model.find("plugin[@filename='gz-sim-pose-publisher-system']")
    assert plugin.findtext("publish_model_pose") == "true"
    assert plugin.find("update_frequency") is None, "every step: else none of them is at a frame"
    link = model.find(f"link[@name='{prop}']")
    moments = [float(link.findtext(f"inertial/inertia/{key}")) for key in ("ixx", "iyy", "izz")]
    assert min(moments) > 0
    assert sum(moments) >= 2 * max(moments)
    mass_kg = float(link.findtext("inertial/mass"))
    if prop == "peg":
        size = CELL.objects.props.peg
        assert mass_kg == pytest.approx(size.mass)
        across = size.mass * (0.75 * size.diameter**2 + size.height**2) / 12
        assert moments == pytest.approx([across, across, size.mass * size.diameter**2 / 8])
    if prop in ("lid", "cup"):
        assert mass_kg == pytest.approx(getattr(CELL.objects.props, prop).mass)


@pytest.mark.parametrize("prop", sorted(PROPS.keys() - set(MOVABLE)))
def test_what_does_not_move_is_static(prop: str) -> None:
    assert model_of(prop).findtext("static") == "true"


def test_joints_have_the_ends_and_forces_of_the_configuration() -> None:
    props = CELL.objects.props
    axes = {}
    for prop in JOINTED:
        model = model_of(prop)
        fixed, moving = model.findall("joint")
        assert (fixed.get("type"), fixed.findtext("parent")) == ("fixed", "world")
        assert (fixed.findtext("child"), moving.findtext("child")) == (PROPS[prop].base, prop)
        assert moving.get("type") == ("revolute" if prop == "knob" else "prismatic")
        axis = moving.find("axis")
        axes[prop] = {part.tag: numbers(part.text)[0] for group in ("limit", "dynamics") for part in axis.find(group)}
        assert numbers(axis.findtext("xyz")) == ([-1, 0, 0] if prop == "drawer" else [0, 0, 1])
    assert (axes["button"]["lower"], axes["button"]["upper"]) == (-props.button.travel, 0)
    stiffness, rest_m = axes["button"]["spring_stiffness"], axes["button"]["spring_reference"]
    assert stiffness == props.button.stiffness
    assert stiffness * rest_m == pytest.approx(props.button.preload)
    assert (axes["drawer"]["upper"], axes["drawer"]["friction"]) == (props.drawer.travel, props.drawer.friction)
    assert (axes["knob"]["upper"], axes["knob"]["friction"]) == (props.knob.turn, props.knob.friction)


def test_a_prop_has_the_colour_of_its_name() -> None:
    for color, rgb in RGB.items():
        model = ElementTree.fromstring(prop_sdf(f"{color} lid", CELL)).find("model")
        light = np.array(numbers(model.findtext("link/visual/material/diffuse"))[:3])
        assert np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055) == pytest.approx(rgb)


def test_amounts_of_light_are_those_of_world_and_robot(tmp_path: Path) -> None:
    """The formula stands in Python for the props and in xacro for the rest."""
    colors = resource("merton_description", "urdf/colors.xacro")
    srgb = [*np.linspace(0, 0.08, 9), *np.linspace(0.1, 1, 12)]
    text = " ".join(f"{part:.9f}" for part in srgb)
    file = tmp_path / "light.xacro"
    file.write_text(
        '<robot xmlns:xacro="http://www.ros.org/wiki/xacro">'
        f"<xacro:include filename=\"{colors}\"/><light>${{linear('{text}')}}</light></robot>"
    )
    light = ElementTree.fromstring(xacro.process_file(str(file)).toxml()).findtext("light")
    np.testing.assert_allclose(linear(srgb), numbers(light), atol=5.1e-5)  # xacro writes four digits


def test_only_fixtures_do_not_touch_table_walls_and_floor() -> None:
    source = resource("merton_description", "urdf/worlds/cell.sdf.xacro")
    world = ElementTree.fromstring(xacro.process_file(str(source)).toxml()).find("world")
    bits = {
        model.get("name"): collision.findtext("surface/contact/collide_bitmask")
        for model in world.findall("model")
        for collision in model.iterfind("link/collision")
    }
    surroundings = {name for name, text in bits.items() if text == str(SURROUNDINGS_BITS)}
    assert surroundings == {"floor", "table", *(f"wall_{wall.name}" for wall in CELL.walls)}
    assert {bits[name] for name in bits.keys() - surroundings} == {None}, "they have all bits"
    assert not SURROUNDINGS_BITS & FIXTURE_BITS


def test_the_bridge_carries_the_pose_of_every_prop_that_moves() -> None:
    assert {names.gazebo_pose(prop) for prop in MOVABLE} == {f"gazebo/{prop}/pose" for prop in MOVABLE}
    scene = make_scene("insert", 0)
    assert set(gazebo.moving_models(scene)) - set(gazebo.moving_models()) == {"peg"}, "its socket is fixed"


def test_the_judge_knows_props_by_the_names_of_the_scene() -> None:
    scene = make_scene("insert", 0)
    judge, touches = gazebo.Judge(CELL), gazebo.Touches(CELL)
    judge.poses |= {gazebo.model_name(name): pose for name, pose in gazebo.places(scene, CELL).items()}
    del judge.poses["socket"]
    judge.begin(scene, np.zeros(3))
    away = np.array([0.3, 0.0, 0.3])
    assert not judge.judged(away, touches, 0).success
    in_the_hole = np.array(judge.poses["socket"])
    in_the_hole[2, 3] = CELL.objects.props.peg.height / 2
    judge.poses["peg"] = in_the_hole
    assert judge.judged(away, touches, 0).success
    assert {item.name for item in judge.scene_state().objects} == {*scene.placements}
    touches.update([gazebo.Touch("gripper_left_pad", "peg", 3.0)], 0)
    assert not judge.judged(away, touches, 0).success, "not released"
