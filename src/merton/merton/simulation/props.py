"""Props that single tasks need: a lid, a peg and its socket, a cup of beads, a bowl, things with joints.

A model has the props of one task only, so that other tasks do not slow down. There is one of each, in the colour of its
name in the scene. Fixtures are mocap bodies: nothing moves them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import mujoco

from merton.simulation.surfaces import FIXTURE, FRICTION, GRIP, OBJECT, RGB, ROBOT, SURROUNDINGS, matte
from merton.world.cell import CellConfig, Props, Vessel

OF_TASK = {
    "cover": ("lid",),
    "insert": ("peg", "socket"),
    "pour": ("cup", "bowl", "beads"),
    "press": ("button",),
    "pull": ("drawer",),
    "twist": ("knob",),
}
"""Task to the props it needs; the other tasks need none."""

FREE = ("lid", "peg", "cup")
"""Props that can be carried; they have a free joint of their own name."""
FIXTURES = {"socket": "socket", "bowl": "bowl", "button": "button_base", "drawer": "drawer_base", "knob": "knob_base"}
"""Fixed props, each with its mocap body; a moving part is a child of that body and has the prop's name."""

_PLAIN = (0.50, 0.51, 0.52)
_BEAD_RGB = (0.93, 0.92, 0.90)
_OCTAGON = 8
_BOX, _CYLINDER = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CYLINDER


def props_of(task: str) -> tuple[str, ...]:
    """The props a task needs."""
    return OF_TASK.get(task, ())


def body_of(name: str) -> str:
    """Name of the body of a thing in a scene: that of an object or mat is its name, that of a prop its last word."""
    prop = name.split()[-1]
    return prop if prop in FREE or prop in FIXTURES else name


def bead_names(cell: CellConfig) -> tuple[str, ...]:
    """The beads' bodies, in the order their free joints stand in qpos."""
    return tuple(f"bead {number}" for number in range(cell.objects.props.beads.number))


def rest_height_m(prop: str, props: Props) -> float:
    """Height above the table of the origin of a prop's frame, when it stands there [m].

    The origin of a peg is its centre, that of a button the top of its cap, that of any other prop its foot.
    """
    if prop == "peg":
        return props.peg.height / 2
    return props.button.base_height + props.button.cap_height if prop == "button" else 0.0


def add_props(spec: mujoco.MjSpec, names: Sequence[str], cell: CellConfig, parked_z: float) -> None:
    """Add props to a model, parked at a height until a scene is set up."""
    if names:
        matte(spec, "plain", _PLAIN)
    for index, name in enumerate(names):
        if name == "beads":
            _add_beads(spec, cell, [(number, 3, parked_z) for number in range(cell.objects.props.beads.number)])
            continue
        matte(spec, name, _PLAIN)  # until `paint` gives it the colour of the scene
        _build(spec, name, cell.objects.props, (index, 2, parked_z), mocap=name in FIXTURES)


def add_prop(spec: mujoco.MjSpec, name: str, sizes: Props, rgb: tuple[float, float, float]) -> None:
    """Add one prop at the origin of a model; a fixture does not move there."""
    matte(spec, "plain", _PLAIN)
    matte(spec, name, rgb)
    _build(spec, name, sizes, (0.0, 0.0, 0.0), mocap=False)


def add_beads(spec: mujoco.MjSpec, cell: CellConfig, cup: tuple[float, float, float]) -> None:
    """Add the beads to a model, in a cup that stands at x, y [m] of `base_link`, turned by a yaw [rad]."""
    x, y, yaw_rad = cup
    cosine, sine = math.cos(yaw_rad), math.sin(yaw_rad)
    inside = [(x + cosine * u - sine * v, y + sine * u + cosine * v, z) for u, v, z in beads_in_cup(cell)]
    _add_beads(spec, cell, inside)


def _build(spec: mujoco.MjSpec, name: str, sizes: Props, at: tuple[float, float, float], *, mocap: bool) -> None:
    body = spec.worldbody.add_body(name=FIXTURES.get(name, name), pos=list(at), mocap=mocap)
    if name in FREE:
        body.add_freejoint(name=name)
    _BUILDERS[name](body, sizes)


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


# Shapes ---------------------------------------------------------------------------------------------------------------


def _solid(
    body: mujoco.MjsBody,
    shape: mujoco.mjtGeom,
    size: tuple[float, ...],
    at: tuple[float, float, float],
    *,
    material: str,
    mass: float = 0.01,
    yaw_rad: float = 0.0,
    fixed: bool = False,
) -> None:
    """A box (half sizes) or a cylinder (radius, half height) of a body, at a place in its frame."""
    body.add_geom(
        type=shape,
        size=[*size, 0.0, 0.0, 0.0][:3],
        pos=list(at),
        quat=[math.cos(yaw_rad / 2), 0, 0, math.sin(yaw_rad / 2)],
        material=material,
        mass=mass,
        contype=FIXTURE if fixed else OBJECT,
        conaffinity=(ROBOT | OBJECT) if fixed else (ROBOT | SURROUNDINGS | OBJECT),
        condim=4,
        friction=list(FRICTION),
        solref=list(GRIP),
        priority=1,
    )


def _lid(body: mujoco.MjsBody, props: Props) -> None:
    size = props.lid
    inner, half_wall = size.inner_width / 2, size.wall / 2
    outer, side_height = inner + size.wall, (size.height - size.wall) / 2
    share = size.mass / 6
    for turn in range(4):
        angle = math.pi / 2 * turn
        middle = inner + half_wall
        at = (middle * math.cos(angle), middle * math.sin(angle), side_height)
        _solid(body, _BOX, (half_wall, outer, side_height), at, material="lid", mass=share, yaw_rad=angle)
    roof = (0.0, 0.0, size.height - half_wall)
    _solid(body, _BOX, (outer, outer, half_wall), roof, material="lid", mass=share)
    grip, grip_height = size.handle_width / 2, size.handle_height / 2
    at = (0.0, 0.0, size.height + grip_height)
    _solid(body, _BOX, (grip, grip, grip_height), at, material="lid", mass=share)


def _peg(body: mujoco.MjsBody, props: Props) -> None:
    size = (props.peg.diameter / 2, props.peg.height / 2)
    _solid(body, _CYLINDER, size, (0.0, 0.0, 0.0), material="peg", mass=props.peg.mass)


def _socket(body: mujoco.MjsBody, props: Props) -> None:
    size = props.socket
    hole, half_height = size.hole_width / 2, size.height / 2
    half_wall = (size.width - size.hole_width) / 4
    for turn in range(4):
        angle = math.pi / 2 * turn
        middle = hole + half_wall
        long = size.width / 2 if turn % 2 == 0 else hole  # two walls reach to the corners, two fit between them
        at = (middle * math.cos(angle), middle * math.sin(angle), half_height)
        _solid(body, _BOX, (half_wall, long, half_height), at, material="socket", yaw_rad=angle, fixed=True)


def _vessel(body: mujoco.MjsBody, size: Vessel, material: str, mass: float, fixed: bool) -> None:
    share, inner, half_height = mass / (_OCTAGON + 1), size.inner_width / 2, size.height / 2
    middle = inner + size.wall / 2
    half_side = (inner + size.wall) * math.tan(math.pi / _OCTAGON)
    for side in range(_OCTAGON):
        angle = 2 * math.pi / _OCTAGON * side
        at = (middle * math.cos(angle), middle * math.sin(angle), half_height)
        wall = (size.wall / 2, half_side, half_height)
        _solid(body, _BOX, wall, at, material=material, mass=share, yaw_rad=angle, fixed=fixed)
    floor = (inner * 1.04, size.wall / 2)  # out to the corners of the octagon, nearly
    _solid(body, _CYLINDER, floor, (0.0, 0.0, size.wall / 2), material=material, mass=share, fixed=fixed)


def _cup(body: mujoco.MjsBody, props: Props) -> None:
    _vessel(body, props.cup, "cup", props.cup.mass, fixed=False)


def _bowl(body: mujoco.MjsBody, props: Props) -> None:
    _vessel(body, props.bowl, "bowl", 0.1, fixed=True)


def _button(base: mujoco.MjsBody, props: Props) -> None:
    size = props.button
    half, half_height = size.base_width / 2, size.base_height / 2
    _solid(base, _BOX, (half, half, half_height), (0.0, 0.0, half_height), material="plain", fixed=True)
    cap = base.add_body(name="button", pos=[0, 0, size.base_height + size.cap_height])
    # Part of the fixture for contacts: it slides into its base. It reaches down so far that no gap shows when it is up.
    shape = (size.cap_diameter / 2, size.cap_height / 2)
    _solid(cap, _CYLINDER, shape, (0.0, 0.0, -size.cap_height / 2), material="button", mass=0.02, fixed=True)
    _joint(
        cap,
        "button",
        mujoco.mjtJoint.mjJNT_SLIDE,
        (0, 0, 1),
        (-size.travel, 0.0),
        damping=3.0,
        stiffness=size.stiffness,
        springref=size.preload / size.stiffness,
    )


def _drawer(base: mujoco.MjsBody, props: Props) -> None:
    size = props.drawer
    wall, half_depth, half_width, half_height = 0.004, size.depth / 2, size.width / 2, size.height / 2
    for side in (1, -1):
        rail = (half_depth, wall, half_height)
        _solid(base, _BOX, rail, (0.0, side * (half_width + 2 * wall), half_height), material="plain", fixed=True)
    back = (wall, half_width + 3 * wall, half_height)
    _solid(base, _BOX, back, (half_depth + wall, 0.0, half_height), material="plain", fixed=True)

    tray = base.add_body(name="drawer")
    foot, low = 0.008, 0.6 * half_height  # the tray's sides are lower than its front, so that it is seen to be open
    _solid(
        tray, _BOX, (half_depth - wall, half_width, wall), (0.0, 0.0, foot), material="drawer", mass=0.05, fixed=True
    )
    for side in (1, -1):
        panel = (half_depth - wall, wall / 2, low)
        at = (0.0, side * (half_width - wall / 2), foot + low)
        _solid(tray, _BOX, panel, at, material="drawer", mass=0.01, fixed=True)
    handle = size.handle_thickness / 2
    front = (handle, half_width + 3 * wall, half_height - wall)
    at_front = -half_depth - handle
    _solid(tray, _BOX, front, (at_front, 0.0, half_height + wall), material="drawer", mass=0.05, fixed=True)
    upright = (handle, size.handle_width / 2, (size.handle_height - size.height) / 2)
    at = (at_front, 0.0, (size.handle_height + size.height) / 2)
    _solid(tray, _BOX, upright, at, material="drawer", mass=0.03, fixed=True)
    slide = mujoco.mjtJoint.mjJNT_SLIDE
    _joint(tray, "drawer", slide, (-1, 0, 0), (0.0, size.travel), damping=5.0, friction=size.friction)


def _knob(base: mujoco.MjsBody, props: Props) -> None:
    size = props.knob
    plinth = 0.4 * size.height
    _solid(base, _CYLINDER, (size.diameter / 2, plinth / 2), (0.0, 0.0, plinth / 2), material="plain", fixed=True)
    knob = base.add_body(name="knob")
    disc = (size.diameter / 2, (size.height - plinth) / 2)
    at = (0.0, 0.0, (size.height + plinth) / 2)
    _solid(knob, _CYLINDER, disc, at, material="knob", mass=0.05, fixed=True)
    grip = (size.grip_width / 2, size.grip_thickness / 2, (size.grip_height - size.height) / 2)
    at = (0.0, 0.0, (size.grip_height + size.height) / 2)
    _solid(knob, _BOX, grip, at, material="knob", mass=0.05, fixed=True)
    hinge = mujoco.mjtJoint.mjJNT_HINGE
    _joint(knob, "knob", hinge, (0, 0, 1), (-size.turn, size.turn), damping=0.02, friction=size.friction)


def _joint(
    body: mujoco.MjsBody,
    name: str,
    kind: mujoco.mjtJoint,
    axis: tuple[float, float, float],
    limits: tuple[float, float],
    *,
    damping: float,
    friction: float = 0.0,
    stiffness: float = 0.0,
    springref: float = 0.0,
) -> None:
    """A joint with limits [m or rad]; `springref` is the position of its spring without load."""
    joint = body.add_joint(name=name, type=kind, axis=list(axis), range=list(limits), armature=0.001)
    joint.limited = mujoco.mjtLimited.mjLIMITED_TRUE
    joint.damping, joint.stiffness = [damping, 0, 0], [stiffness, 0, 0]  # and no terms of higher order
    joint.springref, joint.frictionloss = springref, friction
    joint.solref_limit = list(GRIP)


def _add_beads(spec: mujoco.MjSpec, cell: CellConfig, places: Sequence[tuple[float, float, float]]) -> None:
    size = cell.objects.props.beads
    material = matte(spec, "beads", _BEAD_RGB)
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


_BUILDERS: dict[str, Callable[[mujoco.MjsBody, Props], None]] = {
    "lid": _lid,
    "peg": _peg,
    "socket": _socket,
    "cup": _cup,
    "bowl": _bowl,
    "button": _button,
    "drawer": _drawer,
    "knob": _knob,
}
