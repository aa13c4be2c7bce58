"""The props of single tasks for Gazebo, as SDF, written from the MuJoCo models of them: each number has one home.

A prop is put into the world for its scene and taken away before the next one: in its colour, its joint at zero.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable

import numpy as np

from merton.errors import needing
from merton.simulation.props import add_props, body_of, known_prop, paint
from merton.simulation.surfaces import FIXTURE, PAD_FRICTION
from merton.world.cell import CellConfig
from merton.world.tasks import all_props

with needing("sim", "the simulated cell"):
    import mujoco

FIXTURE_BITS, SURROUNDINGS_BITS = 2, 1
"""Bits of shapes in Gazebo, of fixtures and of table, walls and floor; other things have all. Two shapes touch
if they have a bit in common: so fixtures do not touch the table they stand on, as in the embedded cell."""

_SHAPES = {mujoco.mjtGeom.mjGEOM_BOX: "box", mujoco.mjtGeom.mjGEOM_CYLINDER: "cylinder"}
_JOINTS = {mujoco.mjtJoint.mjJNT_SLIDE: "prismatic", mujoco.mjtJoint.mjJNT_HINGE: "revolute"}


def movable_props() -> tuple[str, ...]:
    """The props whose poses Gazebo publishes; the others stay where they are put."""
    return tuple(prop.name for prop in all_props() if prop.moves)


def prop_sdf(name: str, cell: CellConfig) -> str:
    """A model of the prop of a scene, such as "red lid": lid, whose frame is that of `SceneState`.

    Its links have the names of the MuJoCo bodies.
    """
    form = known_prop(body_of(name))
    prop = form.name
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    add_props(spec, [prop], cell, 0.0)
    source = spec.compile()
    paint(source, [name])
    sdf = ElementTree.Element("sdf", version="1.9")
    model = ElementTree.SubElement(sdf, "model", name=prop)
    if form.moving:
        model.set("canonical_link", prop)  # so that the model's pose is that of the part
        _link(model, source, form.base, np.zeros(3) - source.body(prop).pos)
        _joint(model, f"{form.base}_joint", "fixed", "world", form.base)
        _link(model, source, prop, np.zeros(3), moves=True)
        _moving_joint(model, source, prop, form.base)
    else:
        _text(model, "static", str(form.fixed).lower())
        _link(model, source, prop, np.zeros(3), moves=not form.fixed)
    if form.moves:
        _publish_pose(model)
    return ElementTree.tostring(sdf, encoding="unicode")


def linear(rgb: Iterable[float]) -> list[float]:
    """Amounts of light of sRGB values 0 .. 1 (IEC 61966-2-1), as `urdf/colors.xacro`."""
    return [((part + 0.055) / 1.055) ** 2.4 if part > 0.04045 else part / 12.92 for part in rgb]


def _link(
    model: ElementTree.Element, source: mujoco.MjModel, body: str, at: np.ndarray, *, moves: bool = False
) -> None:
    """A link with the shapes of a body, at a place (3,) in the model; with its mass if it moves."""
    link = ElementTree.SubElement(model, "link", name=body)
    _pose(link, at)
    if moves:
        view = source.body(body)
        inertial = ElementTree.SubElement(link, "inertial")
        _pose(inertial, view.ipos, view.iquat)
        _text(inertial, "mass", float(view.mass[0]))
        inertia = ElementTree.SubElement(inertial, "inertia")
        for axis, moment in zip(("ixx", "iyy", "izz"), view.inertia, strict=True):
            _text(inertia, axis, moment)
        for product in ("ixy", "ixz", "iyz"):
            _text(inertia, product, 0.0)
    first = int(source.body(body).geomadr[0])
    for index, geom in enumerate(range(first, first + int(source.body(body).geomnum[0]))):
        collision = ElementTree.SubElement(link, "collision", name=f"{body}_collision_{index}")
        _shape(collision, source, geom)
        surface = ElementTree.SubElement(collision, "surface")
        fixed = source.geom_contype[geom] == FIXTURE
        if fixed:
            _text(ElementTree.SubElement(surface, "contact"), "collide_bitmask", FIXTURE_BITS)
        ode = ElementTree.SubElement(ElementTree.SubElement(surface, "friction"), "ode")
        for key in ("mu", "mu2"):
            # the lesser of two surfaces' counts, in MuJoCo that of the pads
            _text(ode, key, source.geom_friction[geom, 0] if fixed else PAD_FRICTION[0])
        visual = ElementTree.SubElement(link, "visual", name=f"{body}_visual_{index}")
        _shape(visual, source, geom)
        material = ElementTree.SubElement(visual, "material")
        light = linear(source.mat_rgba[source.geom_matid[geom], :3])
        for key in ("ambient", "diffuse"):
            _text(material, key, *light, 1.0)
        _text(material, "specular", 0.1, 0.1, 0.1, 1.0)


def _shape(parent: ElementTree.Element, source: mujoco.MjModel, geom: int) -> None:
    kind, size = _SHAPES[mujoco.mjtGeom(source.geom_type[geom])], source.geom_size[geom]
    _pose(parent, source.geom_pos[geom], source.geom_quat[geom])
    shape = ElementTree.SubElement(ElementTree.SubElement(parent, "geometry"), kind)
    if kind == "box":
        _text(shape, "size", *(2 * size))
    else:
        _text(shape, "radius", size[0])
        _text(shape, "length", 2 * size[1])


def _joint(model: ElementTree.Element, name: str, kind: str, parent: str, child: str) -> ElementTree.Element:
    joint = ElementTree.SubElement(model, "joint", name=name, type=kind)
    _text(joint, "parent", parent)
    _text(joint, "child", child)
    return joint


def _moving_joint(model: ElementTree.Element, source: mujoco.MjModel, prop: str, base: str) -> None:
    """The joint of a prop, with the ends, spring, damping and friction that it has in MuJoCo."""
    index = source.joint(prop).id
    freedom = source.jnt_dofadr[index]
    kind = _JOINTS[mujoco.mjtJoint(source.jnt_type[index])]
    axis = ElementTree.SubElement(_joint(model, f"{prop}_joint", kind, base, prop), "axis")
    _text(axis, "xyz", *source.jnt_axis[index])
    limit = ElementTree.SubElement(axis, "limit")
    for key, end in zip(("lower", "upper"), source.jnt_range[index], strict=True):
        _text(limit, key, end)
    dynamics = ElementTree.SubElement(axis, "dynamics")
    _text(dynamics, "damping", source.dof_damping[freedom])
    _text(dynamics, "friction", source.dof_frictionloss[freedom])
    _text(dynamics, "spring_reference", source.qpos_spring[source.jnt_qposadr[index]])
    _text(dynamics, "spring_stiffness", source.jnt_stiffness[index])


def _publish_pose(model: ElementTree.Element) -> None:
    """At every step: the publisher counts its period from the model's first step, which is at no frame."""
    plugin = ElementTree.SubElement(
        model, "plugin", filename="gz-sim-pose-publisher-system", name="gz::sim::systems::PosePublisher"
    )
    for part in ("nested_model", "link", "visual", "collision", "sensor"):
        _text(plugin, f"publish_{part}_pose", "false")
    _text(plugin, "publish_model_pose", "true")
    _text(plugin, "use_pose_vector_msg", "false")


def _pose(parent: ElementTree.Element, at: np.ndarray, wxyz: Iterable[float] = (1, 0, 0, 0)) -> None:
    w, x, y, z = wxyz
    _text(parent, "pose", *at, x, y, z, w).set("rotation_format", "quat_xyzw")


def _text(parent: ElementTree.Element, tag: str, *values: str | float) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, tag)
    element.text = " ".join(value if isinstance(value, str) else f"{value:.9g}" for value in values)
    return element
