"""The look of a varied scene: textures, paint, lamps, and how far the cameras are off. It decides no physics."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.errors import needing
from merton.seeding import generator
from merton.simulation.surfaces import RGB
from merton.simulation.textures import SHIFTED, SIDE_PX, TRAINED, texture
from merton.world.cell import CellConfig

with needing("sim", "the simulated cell"):
    import mujoco

Color = tuple[float, float, float]
"""RGB, 0 .. 1 each."""

SURFACES = ("table", "wall")
"""Those with textures; each costs time wherever a camera sees it, so the ground has a colour alone."""
_HUE, _VALUE, _SATURATION = 0.012, (0.80, 1.12), (0.85, 1.08)
"""Limits of a thing's paint about the colour of its name: change of hue (1 is the circle), factors of the other two."""
_CAMERA_OFF_M, _CAMERA_OFF_RAD = 0.004, math.radians(0.4)
"""Greatest displacement and turn of a camera along and about each axis; the pose that is reported has neither."""
_AIM = (0.47, 0.0, 0.0)


@dataclass(frozen=True)
class Finish:
    """The surface of the table or the walls.

    Attributes:
        texture: kind of `merton.simulation.textures`.
        light, dark: the colours between which the texture varies.
        gloss: specular share, 0 .. 1.
    """

    texture: str
    light: Color
    dark: Color
    gloss: float


@dataclass(frozen=True)
class Lamp:
    """A lamp that shines on the table.

    Attributes:
        at: its place (x, y, z) [m] in `base_link`.
        color: its light.
        spot: whether it is a spot with a soft edge; else its light comes from one direction everywhere.
    """

    at: tuple[float, float, float]
    color: Color
    spot: bool


@dataclass(frozen=True)
class Look:
    """The look of the scene of a split and a seed.

    Attributes:
        finishes: of each of `SURFACES`.
        ground: colour of the floor.
        paint: of each colour word.
        gloss: specular share of the things, 0 .. 1.
        lamps: one to three.
        ambient: light that comes from everywhere.
        cameras: name to displacement [m] and turn [rad] (3, 3) of the camera in its own frame.
    """

    split: str
    seed: int
    finishes: Mapping[str, Finish]
    ground: Color
    paint: Mapping[str, Color]
    gloss: float
    lamps: tuple[Lamp, ...]
    ambient: Color
    cameras: Mapping[str, tuple[tuple[float, float, float], tuple[float, float, float]]]


def make_look(split: str, seed: int, cameras: tuple[str, ...]) -> Look:
    """The look of a scene; that of the split `shift` has textures and lamps that no other split has."""
    rng = generator("look", split, seed)
    shifted = split == "shift"
    kinds = SHIFTED if shifted else TRAINED
    finishes = {surface: _finish(rng, str(rng.choice(kinds))) for surface in SURFACES}
    return Look(
        split,
        seed,
        finishes,
        _finish(rng, "plain").dark,
        {name: _paint(rng, RGB[name]) for name in RGB},
        float(rng.uniform(0.0, 0.5)),
        _lamps(rng, shifted),
        _rgb(rng.uniform(0.28, 0.38) if shifted else rng.uniform(0.26, 0.44), 0.0),
        {
            name: (_three(rng.uniform(-1, 1, 3) * _CAMERA_OFF_M), _three(rng.uniform(-1, 1, 3) * _CAMERA_OFF_RAD))
            for name in cameras
        },
    )


def _finish(rng: np.random.Generator, kind: str) -> Finish:
    """Muted colours, of which none is one of a thing."""
    hue, saturation, value = rng.random(), rng.uniform(0.0, 0.28), rng.uniform(0.45, 0.9)
    light = colorsys.hsv_to_rgb(hue, saturation, value)
    darker = value * rng.uniform(0.45, 0.8)
    dark = colorsys.hsv_to_rgb((hue + rng.uniform(-0.05, 0.05)) % 1.0, min(1.0, saturation * 1.3), darker)
    return Finish(kind, light, dark, float(rng.uniform(0.0, 0.3)))


def _paint(rng: np.random.Generator, rgb: Color) -> Color:
    hue, saturation, value = colorsys.rgb_to_hsv(*rgb)
    return colorsys.hsv_to_rgb(
        (hue + rng.uniform(-_HUE, _HUE)) % 1.0,
        min(1.0, saturation * rng.uniform(*_SATURATION)),
        min(1.0, value * rng.uniform(*_VALUE)),
    )


def _lamps(rng: np.random.Generator, shifted: bool) -> tuple[Lamp, ...]:
    """A main lamp, from the robot's right, or from its left where shifted, and up to two weaker ones."""
    count = int(rng.integers(2, 4)) if shifted else int(rng.integers(1, 4))
    lamps = []
    for number in range(count):
        side = rng.uniform(20, 150) if shifted else rng.uniform(-150, -20)
        azimuth = math.radians(side if number == 0 else rng.uniform(-180, 180))
        height = rng.uniform(0.9, 1.4) if shifted else rng.uniform(1.6, 2.4)
        away = rng.uniform(1.0, 1.5)
        at = (_AIM[0] + away * math.cos(azimuth), away * math.sin(azimuth), float(height))
        warmth = rng.choice([-1.0, 1.0]) * rng.uniform(0.16, 0.28) if shifted else rng.uniform(-0.10, 0.10)
        strength = rng.uniform(0.50, 0.75) if number == 0 else rng.uniform(0.10, 0.25)
        lamps.append(Lamp(at, _rgb(float(strength), float(warmth)), spot=number == 0))
    return tuple(lamps)


def _rgb(strength: float, warmth: float) -> Color:
    """White of a strength, with more red and less blue the warmer it is."""
    return strength * (1 + warmth), float(strength), strength * (1 - warmth)


def _three(values: NDArray[np.float64]) -> tuple[float, float, float]:
    x, y, z = values.tolist()
    return x, y, z


def picture_of(finish: Finish, rng: np.random.Generator) -> NDArray[np.uint8]:
    """The texture of a surface, (SIDE_PX, SIDE_PX, 3) uint8 RGB."""
    shade = np.rint(255 * texture(finish.texture, rng)).astype(np.uint8)
    share = np.linspace(0.0, 1.0, 256)[:, None]
    palette = np.rint(255 * (np.array(finish.light) * (1 - share) + np.array(finish.dark) * share)).astype(np.uint8)
    return palette[shade]


def dress(spec: mujoco.MjSpec, look: Look, cell: CellConfig) -> None:
    """Give a model of a scene its look: textures on table and walls, the lamps, and the cameras' errors."""
    for surface, finish in look.finishes.items():
        pixels = picture_of(finish, generator("texture", look.split, look.seed, surface))
        flat = mujoco.mjtTexture.mjTEXTURE_2D
        image = spec.add_texture(name=surface, type=flat, width=SIDE_PX, height=SIDE_PX, nchannel=3)
        image.data = pixels.tobytes()
        material = spec.add_material(name=f"{surface} surface", specular=finish.gloss, shininess=0.3)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = surface
    spec.material("floor").rgba = [*look.ground, 1.0]
    _clad(spec, cell)
    _light(spec, look)
    for name, (offset, turn) in look.cameras.items():
        camera = spec.camera(name)
        angle = math.sqrt(sum(part**2 for part in turn))
        tilt = np.empty(4)
        mujoco.mju_axisAngle2Quat(tilt, np.array(turn) / (angle or 1.0), angle)
        quat = np.empty(4)
        mujoco.mju_mulQuat(quat, camera.quat, tilt)
        camera.pos, camera.quat = np.add(camera.pos, offset), quat


def _clad(spec: mujoco.MjSpec, cell: CellConfig) -> None:
    """The textures on table top and walls, as seen: a wall becomes a box of the same size whose z is across it."""
    for geom in spec.body("table").geoms:
        if geom.contype == 0 and geom.size[0] > cell.table.size[0] / 2 - 1e-6:
            geom.material = "table surface"
    for wall in cell.walls:
        body = spec.body(f"wall_{wall.name}")
        for geom in list(body.geoms):
            if geom.contype == 0:
                spec.delete(geom)
        across = int(np.argmin(wall.size[:2]))
        half = np.array(wall.size) / 2
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX,
            pos=list(wall.center),
            size=[half[1 - across], half[2], half[across]],
            quat=[0.5, 0.5, 0.5, 0.5] if across == 0 else [math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0],  # its y is up
            material="wall surface",
            contype=0,
            conaffinity=0,
        )


def _light(spec: mujoco.MjSpec, look: Look) -> None:
    for light in list(spec.lights):
        if light.name in ("key", "fill"):
            spec.delete(light)
    spec.visual.headlight.ambient, spec.visual.headlight.diffuse = list(look.ambient), [0.06, 0.06, 0.06]
    for number, lamp in enumerate(look.lamps):
        direction = np.subtract(_AIM, lamp.at)
        kind = mujoco.mjtLightType.mjLIGHT_SPOT if lamp.spot else mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
        spec.worldbody.add_light(
            name=f"lamp {number}",
            type=kind,
            pos=list(lamp.at),
            dir=list(direction / np.linalg.norm(direction)),
            diffuse=list(lamp.color),
            specular=[0.4 * part for part in lamp.color],
            cutoff=60,
            exponent=1,
            castshadow=lamp.spot,
        )
