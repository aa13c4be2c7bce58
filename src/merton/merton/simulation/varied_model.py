"""The things of a varied scene in a MuJoCo model, each where it stands at the start."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from merton.errors import needing
from merton.simulation import props
from merton.simulation.places import Spot
from merton.simulation.surfaces import FIXTURE, FRICTION, GRIP, OBJECT, RGB, ROBOT, SURROUNDINGS, matte
from merton.simulation.varied import Layout, Thing
from merton.world import shapes
from merton.world.cell import CellConfig, Props
from merton.world.tasks import Prop, prop_of

with needing("sim", "the simulated cell"):
    import mujoco

_TONES = {"dark": (0.10, 0.08, 0.07), "light": (0.86, 0.85, 0.83)}
_CLUTTER_RGB = ((0.45, 0.43, 0.46), (0.62, 0.58, 0.52), (0.30, 0.33, 0.36), (0.52, 0.42, 0.34), (0.74, 0.72, 0.75))
_BOX, _CYLINDER = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CYLINDER
_NOT_LENGTHS = ("mass", "preload", "stiffness", "turn", "friction", "number")
_MAT_THICKNESS_M = 0.0012
_ROLLING_M = 0.002
"""Rolling friction of a ball [m]; ours: it comes to rest within a hand's breadth, as one of felt does."""


def add_things(
    spec: mujoco.MjSpec,
    layout: Layout,
    cell: CellConfig,
    paint: Mapping[str, tuple[float, float, float]] | None = None,
    gloss: float | None = None,
) -> None:
    """Add the things of a layout to a model without objects.

    The body of an object or mat has its name, that of a prop's moving part the name that `body_of` says.

    Args:
        paint: colour word to RGB; that of plain scenes if None.
        gloss: specular share of all things; that of plain scenes if None.
    """
    shine = {} if gloss is None else {"gloss": gloss}
    for tone, rgb in _TONES.items():
        matte(spec, tone, rgb)
    for thing in layout.things:
        rgb = (paint or RGB)[thing.color]
        if thing.shape == "mat":
            _add_mat(spec, thing, matte(spec, thing.name, rgb, **shine), cell)
        elif prop := prop_of(thing.shape):
            _add_prop(spec, prop, thing, rgb, cell)
        else:
            height = shapes.height_m(thing.shape, thing.scale, cell)
            body = spec.worldbody.add_body(name=thing.name, pos=[*thing.spot[:2], height / 2], quat=_turned(thing.spot))
            body.add_freejoint(name=thing.name)
            materials = {"paint": matte(spec, thing.name, rgb, **shine), "dark": "dark", "light": "light"}
            _add_shape(body, thing.shape, thing.scale, cell, materials)
    if layout.cup is not None:
        props.add_beads(spec, cell, layout.cup.spot)
    for number, (kind, spot) in enumerate(layout.clutter):
        matte(spec, f"clutter {number}", _CLUTTER_RGB[(layout.seed + number) % len(_CLUTTER_RGB)])
        _add_clutter(spec, kind, spot, f"clutter {number}")


def body_of(name: str) -> str:
    """The body of a named thing; of a prop with a joint, its moving part."""
    kind = name.split()[-1]
    return f"{name}/{kind}" if prop_of(kind) else name


def _turned(spot: Spot) -> list[float]:
    return [math.cos(spot[2] / 2), 0.0, 0.0, math.sin(spot[2] / 2)]


def _add_mat(spec: mujoco.MjSpec, thing: Thing, material: str, cell: CellConfig) -> None:
    body = spec.worldbody.add_body(name=thing.name, pos=[*thing.spot[:2], 0.0])
    body.add_geom(
        type=_CYLINDER,
        size=[cell.objects.mat_radius * thing.scale, _MAT_THICKNESS_M / 2, 0],
        pos=[0, 0, _MAT_THICKNESS_M / 2],
        material=material,
        contype=0,  # a mat is paint: things stand on the table
        conaffinity=0,
    )


def _add_shape(body: mujoco.MjsBody, shape: str, scale: float, cell: CellConfig, materials: dict[str, str]) -> None:
    """Add the geoms of a shape to a body; `materials` has the material of each tone."""
    parts = shapes.parts_of(shape, scale, cell)
    middle = shapes.height_m(shape, scale, cell) / 2
    density = cell.objects.mass * scale**3 / sum(part.volume_m3 for part in parts if part.solid)
    for part in parts:
        rolls = part.kind == "sphere"
        body.add_geom(
            type=props.GEOMS[part.kind],
            size=[*part.size, 0.0, 0.0][:3],
            pos=[part.at[0], part.at[1], part.at[2] - middle],
            material=materials[part.tone],
            mass=density * part.volume_m3 if part.solid else 0.0,
            contype=OBJECT if part.solid else 0,
            conaffinity=(ROBOT | SURROUNDINGS | OBJECT) if part.solid else 0,
            condim=6 if rolls else 4,
            friction=[*FRICTION[:2], _ROLLING_M] if rolls else list(FRICTION),
            solref=list(GRIP),
            priority=1,
        )


def _add_prop(spec: mujoco.MjSpec, prop: Prop, thing: Thing, rgb: tuple[float, float, float], cell: CellConfig) -> None:
    """Build the prop in a model of its own, and attach that under the name of the thing."""
    own = mujoco.MjSpec()
    own.compiler.degree = False
    sizes = _scaled(cell, thing)
    height = 0.0 if prop.fixed else prop.origin_m(sizes)
    props.add_prop(own, prop, sizes, rgb)
    frame = spec.worldbody.add_frame(pos=[*thing.spot[:2], height], quat=_turned(thing.spot))
    spec.attach(own, prefix=f"{thing.name}/", frame=frame)


def _scaled(cell: CellConfig, thing: Thing) -> Props:
    """The sizes of the props, those of one of them `scale` times as large."""
    sizes = cell.objects.props
    of_one = getattr(sizes, thing.shape)
    lengths = {field: thing.scale * value for field, value in of_one.model_dump().items() if field not in _NOT_LENGTHS}
    return sizes.model_copy(update={thing.shape: of_one.model_copy(update=lengths)})


def _add_clutter(spec: mujoco.MjSpec, kind: str, spot: Spot, material: str) -> None:
    """A thing without a name; it does not move."""
    body = spec.worldbody.add_body(name=material, pos=[*spot[:2], 0.0], quat=_turned(spot))
    upright = [1.0, 0.0, 0.0, 0.0]
    lying = [math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0]
    around = np.linspace(0.0, 2 * math.pi, 8, endpoint=False)
    parts = {
        "rod": [(_CYLINDER, (0.011, 0.055, 0.0), (0.0, 0.0, 0.011), lying)],
        "slab": [(_BOX, (0.05, 0.035, 0.008), (0.0, 0.0, 0.008), upright)],
        "post": [(_CYLINDER, (0.016, 0.045, 0.0), (0.0, 0.0, 0.045), upright)],
        "tray": [
            (_BOX, (0.05, 0.04, 0.003), (0.0, 0.0, 0.003), upright),
            (_BOX, (0.05, 0.003, 0.015), (0.0, 0.04, 0.015), upright),
            (_BOX, (0.05, 0.003, 0.015), (0.0, -0.04, 0.015), upright),
        ],
        "ring": [
            (_BOX, (0.006, 0.016, 0.01), (0.035 * math.cos(at), 0.035 * math.sin(at), 0.01),
             [math.cos(at / 2), 0.0, 0.0, math.sin(at / 2)])
            for at in around
        ],
    }  # fmt: skip
    for shape, size, at, quat in parts[kind]:
        body.add_geom(
            type=shape,
            size=list(size),
            pos=list(at),
            quat=list(quat),
            material=material,
            contype=FIXTURE,
            conaffinity=ROBOT | OBJECT,
        )
