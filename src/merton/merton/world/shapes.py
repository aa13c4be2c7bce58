"""Shapes of things, each of a few primitives; those of the objects that stand on the table.

Cubes and cylinders are those of the cell's configuration, the others are ours. All can be grasped across y of their
frame at 22 mm above the table, and fit between the open fingers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from merton.world.cell import CellConfig


@dataclass(frozen=True)
class Part:
    """A primitive of a shape.

    Attributes:
        kind: "box", "cylinder" (its axis is z) or "sphere".
        size: half sizes of a box; radius, half height of a cylinder; radius of a sphere [m].
        at: its centre (x, y, z) in the frame of the thing [m]; of an object the origin is on the table.
        tone: "paint", the colour of the thing's name, or a colour that is the same on every thing: "dark" or "light" of
            an object, "plain" (grey) of a prop.
        solid: whether it has mass and contacts.
        mass_kg: of a part of a prop; an object's mass is spread over its parts by volume.
        yaw_rad: its turn about z, of a part of a prop.
    """

    kind: Literal["box", "cylinder", "sphere"]
    size: tuple[float, ...]
    at: tuple[float, float, float]
    tone: str = "paint"
    solid: bool = True
    mass_kg: float = 0.01
    yaw_rad: float = 0.0

    @property
    def volume_m3(self) -> float:
        """Its volume [m^3]."""
        if self.kind == "box":
            return 8 * self.size[0] * self.size[1] * self.size[2]
        if self.kind == "sphere":
            return 4 / 3 * math.pi * self.size[0] ** 3
        return 2 * math.pi * self.size[0] ** 2 * self.size[1]


def _disc(radius: float, low: float, high: float, tone: str = "paint", *, solid: bool = True) -> Part:
    return Part("cylinder", (radius, (high - low) / 2), (0.0, 0.0, (high + low) / 2), tone, solid)


def _cube(cell: CellConfig) -> list[Part]:
    half = cell.objects.cube_edge / 2
    return [Part("box", (half, half, half), (0.0, 0.0, half))]


def _cylinder(cell: CellConfig) -> list[Part]:
    return [_disc(cell.objects.cylinder_diameter / 2, 0.0, cell.objects.cylinder_height)]


def _ball(cell: CellConfig) -> list[Part]:
    return [Part("sphere", (0.024,), (0.0, 0.0, 0.024))]


def _mug(cell: CellConfig) -> list[Part]:
    """A full one, its handle along x."""
    grip = [
        Part("box", (0.009, 0.004, 0.004), (0.033, 0.0, 0.014)),
        Part("box", (0.009, 0.004, 0.004), (0.033, 0.0, 0.044)),
        Part("box", (0.004, 0.004, 0.019), (0.042, 0.0, 0.029)),
    ]
    return [_disc(0.026, 0.0, 0.058), *grip, _disc(0.022, 0.058, 0.0585, "dark", solid=False)]


def _bottle(cell: CellConfig) -> list[Part]:
    return [_disc(0.021, 0.0, 0.052), _disc(0.010, 0.052, 0.070), _disc(0.0115, 0.070, 0.080, "light")]


def _brick(cell: CellConfig) -> list[Part]:
    return [Part("box", (0.034, 0.0175, 0.021), (0.0, 0.0, 0.021))]


def _spool(cell: CellConfig) -> list[Part]:
    return [_disc(0.028, 0.0, 0.012), _disc(0.018, 0.012, 0.036, "light"), _disc(0.028, 0.036, 0.048)]


def _cone(cell: CellConfig) -> list[Part]:
    step = 0.011
    return [_disc(0.029 - 0.0052 * layer, layer * step, (layer + 1) * step) for layer in range(5)]


_SHAPES: dict[str, Callable[[CellConfig], list[Part]]] = {
    "cube": _cube,
    "cylinder": _cylinder,
    "ball": _ball,
    "mug": _mug,
    "bottle": _bottle,
    "brick": _brick,
    "spool": _spool,
    "cone": _cone,
}


def parts_of(shape: str, scale: float, cell: CellConfig) -> list[Part]:
    """The parts of a shape, `scale` times as large as usual."""
    return [
        replace(
            part,
            size=tuple(scale * side for side in part.size),
            at=(scale * part.at[0], scale * part.at[1], scale * part.at[2]),
        )
        for part in _SHAPES[shape](cell)
    ]


def height_m(shape: str, scale: float, cell: CellConfig) -> float:
    """Height of an object [m]."""
    return max(part.at[2] + part.size[0 if part.kind == "sphere" else -1] for part in parts_of(shape, scale, cell))


def half_width_m(shape: str, scale: float, cell: CellConfig) -> float:
    """Largest distance from the middle of an object to its side along x or y of its frame [m]."""
    return max(
        abs(part.at[axis]) + part.size[axis if part.kind == "box" else 0]
        for part in parts_of(shape, scale, cell)
        for axis in (0, 1)
    )
