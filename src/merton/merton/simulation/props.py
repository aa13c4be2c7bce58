"""Props of single tasks (`merton.world.tasks.Prop`) in a MuJoCo model, and the beads in the cup.

A model has the props of one task only, so that other tasks do not slow down. There is one of each, in the colour of its
name in the scene. Fixed ones are mocap bodies; one that can be carried has a free joint of its own name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from merton.errors import UnknownNameError, needing
from merton.simulation.surfaces import FIXTURE, FRICTION, GRIP, OBJECT, RGB, ROBOT, SURROUNDINGS, matte
from merton.world.cell import CellConfig, Props
from merton.world.shapes import Part
from merton.world.tasks import TASKS, Joint, Prop, all_props, prop_of

with needing("sim", "the simulated cell"):
    import mujoco

_PLAIN = (0.50, 0.51, 0.52)
_BEAD_RGB = (0.93, 0.92, 0.90)
BEADS = "beads"

GEOMS = {
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
}
"""Kind of a `merton.world.shapes.Part` to MuJoCo's."""
_JOINTS = {"slide": mujoco.mjtJoint.mjJNT_SLIDE, "hinge": mujoco.mjtJoint.mjJNT_HINGE}


def props_of(task: str) -> tuple[str, ...]:
    """Names of the props that a verb needs, with `BEADS` if it pours them; none of a task of a split."""
    if task not in TASKS:
        return ()
    return (*(prop.name for prop in TASKS[task].props), *([BEADS] if TASKS[task].beads else []))


def body_of(name: str) -> str:
    """Name of the body of a thing in a scene: that of an object or mat is its name, that of a prop its last word."""
    kind = name.split()[-1]
    return kind if prop_of(kind) else name


def bead_names(cell: CellConfig) -> tuple[str, ...]:
    """The beads' bodies, in the order their free joints stand in qpos."""
    return tuple(f"bead {number}" for number in range(cell.objects.props.beads.number))


def add_props(spec: mujoco.MjSpec, names: Sequence[str], cell: CellConfig, parked_z: float) -> None:
    """Add props to a model, parked at a height until a scene is set up."""
    if names:
        matte(spec, "plain", _PLAIN)
    for index, name in enumerate(names):
        if name == BEADS:
            _add_beads(spec, cell, [(number, 3, parked_z) for number in range(cell.objects.props.beads.number)])
            continue
        matte(spec, name, _PLAIN)  # until `paint` gives it the colour of the scene
        prop = known_prop(name)
        _build(spec, prop, cell.objects.props, (index, 2, parked_z), mocap=prop.fixed)


def add_prop(spec: mujoco.MjSpec, prop: Prop, sizes: Props, rgb: tuple[float, float, float]) -> None:
    """Add one prop at the origin of a model; a fixed one does not move there."""
    matte(spec, "plain", _PLAIN)
    matte(spec, prop.name, rgb)
    _build(spec, prop, sizes, (0.0, 0.0, 0.0), mocap=False)


def add_beads(spec: mujoco.MjSpec, cell: CellConfig, cup: tuple[float, float, float]) -> None:
    """Add the beads to a model, in a cup that stands at x, y [m] of `base_link`, turned by a yaw [rad]."""
    x, y, yaw_rad = cup
    cosine, sine = math.cos(yaw_rad), math.sin(yaw_rad)
    inside = [(x + cosine * u - sine * v, y + sine * u + cosine * v, z) for u, v, z in beads_in_cup(cell)]
    _add_beads(spec, cell, inside)


def known_prop(name: str) -> Prop:
    """The prop called `name`; raises UnknownNameError with the valid names."""
    if (prop := prop_of(name)) is None:
        raise UnknownNameError("prop", name, (prop.name for prop in all_props()))
    return prop


def _build(spec: mujoco.MjSpec, prop: Prop, sizes: Props, at: tuple[float, float, float], *, mocap: bool) -> None:
    body = spec.worldbody.add_body(name=prop.base, pos=list(at), mocap=mocap)
    if not prop.fixed:
        body.add_freejoint(name=prop.name)
    for part in prop.parts(sizes):
        _add_part(body, part, prop)
    if prop.moving is None:
        return
    # Fixed for contacts, too: it slides or turns in its base.
    moving = prop.moving(sizes)
    inner = body.add_body(name=prop.name, pos=list(moving.at))
    for part in moving.parts:
        _add_part(inner, part, prop)
    _add_joint(inner, prop.name, moving.joint)


def _add_part(body: mujoco.MjsBody, part: Part, prop: Prop) -> None:
    body.add_geom(
        type=GEOMS[part.kind],
        size=[*part.size, 0.0, 0.0, 0.0][:3],
        pos=list(part.at),
        quat=[math.cos(part.yaw_rad / 2), 0, 0, math.sin(part.yaw_rad / 2)],
        material=prop.name if part.tone == "paint" else part.tone,
        mass=part.mass_kg,
        contype=FIXTURE if prop.fixed else OBJECT,
        conaffinity=(ROBOT | OBJECT) if prop.fixed else (ROBOT | SURROUNDINGS | OBJECT),
        condim=4,
        friction=list(FRICTION),
        solref=list(GRIP),
        priority=1,
    )


def _add_joint(body: mujoco.MjsBody, name: str, form: Joint) -> None:
    joint = body.add_joint(
        name=name, type=_JOINTS[form.kind], axis=list(form.axis), range=list(form.limits), armature=0.001
    )
    joint.limited = mujoco.mjtLimited.mjLIMITED_TRUE
    joint.damping, joint.stiffness = [form.damping, 0, 0], [form.stiffness, 0, 0]  # and no terms of higher order
    joint.springref, joint.frictionloss = form.spring_reference, form.friction
    joint.solref_limit = list(GRIP)


def paint(model: mujoco.MjModel, names: Iterable[str]) -> None:
    """Give the props of a scene the colours that their names begin with."""
    for name in names:
        if (prop := body_of(name)) != name:
            model.mat_rgba[model.material(prop).id, :3] = RGB[name.split()[0]]


def beads_in_cup(cell: CellConfig) -> list[tuple[float, float, float]]:
    """Places of the beads in the frame of the cup: rings of four, each turned against the one below."""
    props = cell.objects.props
    radius = props.beads.diameter / 2
    ring = 1.5 * radius
    spots = []
    for number in range(props.beads.number):
        layer, place = divmod(number, 4)
        angle = math.pi / 2 * place + math.pi / 4 * (layer % 2)
        height = props.cup.wall + radius + layer * 1.55 * radius
        spots.append((ring * math.cos(angle), ring * math.sin(angle), height))
    return spots


def _add_beads(spec: mujoco.MjSpec, cell: CellConfig, places: Sequence[tuple[float, float, float]]) -> None:
    size = cell.objects.props.beads
    material = matte(spec, BEADS, _BEAD_RGB)
    for name, at in zip(bead_names(cell), places, strict=True):
        body = spec.worldbody.add_body(name=name, pos=list(at))
        body.add_freejoint(name=name)
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[size.diameter / 2, 0, 0],
            material=material,
            mass=size.mass,
            contype=OBJECT,
            conaffinity=ROBOT | SURROUNDINGS | OBJECT,
            condim=3,
            friction=list(FRICTION),
            solref=list(GRIP),
            priority=3,  # three rows a contact are enough for a ball on any surface
        )
