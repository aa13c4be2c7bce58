"""A scene of the cell, arranged anew: things laid down, put on mats, into bowls and sockets, drawers opened."""

from __future__ import annotations

import atexit
import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import numpy as np

from merton.perception.images import encode_image
from merton.seeding import generator
from merton.simulation.tabletop import Tabletop, Viewpoint
from merton_studies.curation.cell.fact import CellScene, Change, Item, Push, Shot

WIDTH_PX, HEIGHT_PX = 480, 300
_JPEG_QUALITY = 92
_OPEN_M, _CLOSED_M = 0.04, 0.004
"""A drawer is open, or closed, beyond these positions; between them it is neither."""
_LIES = ("cylinder", "bottle", "peg", "spool", "mug")
_IN_BOWL = ("ball", "cube", "cylinder", "brick", "cone")
_FLAT_TOP = ("cube", "cylinder", "brick", "spool")
_SPOT_ROOM_M = 0.105
_AREA_M = ((0.36, -0.32), (0.68, 0.32))
_UNMOVED_M = 0.006
_UNPUSHED = 0.4
_PUSHES_M = (0.05, 0.10, 0.15, 0.20, 0.25)


@lru_cache(maxsize=1)
def table() -> Tabletop:
    """The one of this process: a drawing context takes long to make."""
    made = Tabletop(WIDTH_PX, HEIGHT_PX)
    atexit.register(made.close)
    return made


def arranged(table: Tabletop, split: str, seed: int, pool_seed: int) -> tuple[CellScene, dict[str, bytes]]:
    """The truth about a scene and the files of its pictures: a function of the three numbers and names alone."""
    rng = generator("cell pool scene", pool_seed, split, seed)
    scene_id = f"{split}.{seed}"
    table.set_up(split, seed)
    for step in _steps(table, rng):
        before = table.state()
        step()
        table.settle()
        if not _sound(table):
            table.restore(before)
    table.settle(0.5)
    stem = f"{split}_{seed}"
    pictures: dict[str, bytes] = {}
    shots = [_shot(table, viewpoint, f"{stem}_{number}", pictures) for number, viewpoint in enumerate(_viewpoints(rng))]
    items = {name: _item(table, name) for name in table.things}
    pushes = list(_pushes(table, items, rng))
    change = _change(table, items, rng, stem, pictures)
    return CellScene(scene_id, items, shots, pushes, change), pictures


def _viewpoints(rng: np.random.Generator) -> list[Viewpoint]:
    """One steep from the robot's side, and one aslant from the left or the right of the table."""
    aslant = rng.uniform(50, 130) * rng.choice([-1, 1])
    return [
        Viewpoint(rng.uniform(-25, 25), rng.uniform(-78, -68), rng.uniform(1.0, 1.08), (0.45, 0.0, 0.0)),
        Viewpoint(aslant, rng.uniform(-55, -38), rng.uniform(0.92, 1.05)),
    ]


def _shot(table: Tabletop, viewpoint: Viewpoint, stem: str, pictures: dict[str, bytes]) -> Shot:
    picture, seen, robot = table.look(viewpoint)
    file = f"{stem}.jpg"
    pictures[file] = encode_image(picture, ".jpg", _JPEG_QUALITY)
    return Shot(file, seen, robot)


# Arranging ------------------------------------------------------------------------------------------------------------


def _steps(table: Tabletop, rng: np.random.Generator) -> Iterator[Callable[[], None]]:
    """Changes to a scene, each tried by itself. Nothing is put on a thing of its own colour: one sees it badly."""
    color = {name: thing.color for name, thing in table.things.items()}
    of_kind: dict[str, list[str]] = {}
    for name, thing in table.things.items():
        of_kind.setdefault(thing.shape, []).append(name)
    free = [name for name in table.things if table.movable(name) and table.things[name].shape not in ("lid", "cup")]
    rng.shuffle(free)
    for name in of_kind.get("drawer", ()):
        if rng.random() < 0.5:
            value = float(rng.uniform(0.55, 0.95)) * table.cell.objects.props.drawer.travel
            yield partial(table.move_joint, name, value)
    for socket in of_kind.get("socket", ()):
        if rng.random() < 0.5 and (
            pegs := [name for name in free if table.things[name].shape == "peg" and color[name] != color[socket]]
        ):
            fits = min(pegs, key=lambda name: abs(table.things[name].scale - 1.0))
            x, y, _ = table.things[socket].spot
            free.remove(fits)
            yield partial(table.put, fits, x, y, 0.001)
    for bowl in of_kind.get("bowl", ()):
        x, y, _ = table.things[bowl].spot
        inside = [name for name in free if table.things[name].shape in _IN_BOWL and color[name] != color[bowl]]
        draw = rng.random()
        if draw < 0.35:
            yield partial(table.pour, bowl)
        elif draw < 0.75 and inside:
            free.remove(inside[0])
            yield partial(table.put, inside[0], x, y, 0.008)
    for mat in of_kind.get("mat", ()):
        guests = [name for name in free if table.things[name].shape != "ball" and color[name] != color[mat]]
        if rng.random() < 0.6 and guests:
            free.remove(guests[0])
            x, y = np.array(table.things[mat].spot[:2]) + rng.uniform(-0.012, 0.012, 2)
            yield partial(table.put, guests[0], x, y, 0.002)
    flat = [name for name in free if table.things[name].shape in _FLAT_TOP]
    if len(flat) >= 2 and color[flat[0]] != color[flat[1]] and rng.random() < 0.5:
        upper, lower = sorted(flat[:2], key=lambda name: table.things[name].scale)
        free = [name for name in free if name not in (upper, lower)]
        x, y, _ = table.things[lower].spot
        yield partial(table.put, upper, x, y, float(table.extent(lower)[1][2]))
    for name in free:
        if table.things[name].shape in _LIES and rng.random() < 0.45:
            x, y, _ = table.things[name].spot
            angle = float(rng.uniform(-math.pi, math.pi))
            yield partial(table.put, name, x, y, lying_rad=angle)


def _sound(table: Tabletop) -> bool:
    """Whether everything stands or lies on the table, near where it can be reached."""
    for name in table.things:
        low, high = table.extent(name)
        if table.movable(name) and (table.upright(name) is None or low[2] < -0.01):
            return False
        if np.any(high[:2] > (0.85, 0.5)) or np.any(low[:2] < (0.2, -0.5)):
            return False
    return True


def _item(table: Tabletop, name: str) -> Item:
    thing = table.things[name]
    low, high = table.extent(name)
    opened = None
    if thing.shape == "drawer":
        position = table.joint(name)
        opened = True if position > _OPEN_M else False if position < _CLOSED_M else None
    on, inside = _support(table, name)
    upright = table.upright(name) if table.movable(name) else True
    beads = table.beads_in(name) if thing.shape in ("cup", "bowl") else 0
    return Item(
        name, thing.color, thing.shape, thing.scale, low, high, upright, table.movable(name), on, inside, opened,
        *table.spans_m(name), beads,
    )  # fmt: skip


def _support(table: Tabletop, name: str) -> tuple[str, str]:
    """The mat or thing that a loose thing stands on, and the bowl or socket that it is in; "" for none."""
    if not table.movable(name):
        return "", ""
    low, high = table.extent(name)
    middle = (low + high) / 2
    for other, thing in table.things.items():
        if other == name:
            continue
        floor, top = table.extent(other)
        aside = float(np.hypot(*(middle - (floor + top) / 2)[:2]))
        if thing.shape in ("bowl", "socket") and aside < (0.045 if thing.shape == "bowl" else 0.01):
            return "", other
        if thing.shape == "mat" and aside < 0.03:
            return other, ""
        if low[2] > 0.02 and abs(low[2] - top[2]) < 0.004 and aside < 0.02:
            return other, ""
    return "", ""


# Physics and changes --------------------------------------------------------------------------------------------------


def _pushes(table: Tabletop, items: dict[str, Item], rng: np.random.Generator) -> Iterator[Push]:
    """A push of a thing that stands by itself, whose end is the same for a little more and a little less.

    Four scenes in ten have none: few questions are about pushes, and a push takes as long as all the rest. Four in
    ten are aimed at something, which would be met by chance too seldom.
    """
    names = [
        name
        for name, item in items.items()
        if item.loose and item.upright and not item.on and not item.inside and item.kind not in ("ball", "lid", "cup")
    ]
    if not names or rng.random() < _UNPUSHED:
        return
    name = str(rng.choice(names))
    left, at_three_quarters = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    distance_m = float(rng.choice(_PUSHES_M))
    ahead = [(other, item) for other in names for item in items.values() if _in_lane(items[other], item)]
    if ahead and rng.random() < 0.4:
        name, met = ahead[int(rng.integers(len(ahead)))]
        left = bool(met.middle[1] > items[name].middle[1])
        distance_m = _PUSHES_M[-1]
    along, share = np.array([0.0, 1.0 if left else -1.0]), 0.75 if at_three_quarters else 0.5
    ended = table.push(name, along, distance_m, share)
    near = (table.push(name, along, distance_m + more, share + up) for more, up in ((0.012, 0.03), (-0.012, -0.03)))
    if all((other.fell, bool(other.hit)) == (ended.fell, bool(ended.hit)) for other in near):
        yield Push(name, left, distance_m, at_three_quarters, ended)


def _in_lane(one: Item, other: Item) -> bool:
    """Whether a push to the left or right would make one thing meet another."""
    across, along = np.abs((other.middle - one.middle)[:2])
    return bool(across < 0.03 and 0.05 < along < _PUSHES_M[-1] + 0.03 and other.kind != "mat")


def _change(
    table: Tabletop, items: dict[str, Item], rng: np.random.Generator, stem: str, pictures: dict[str, bytes]
) -> Change | None:
    """One thing is changed, or none, and a second picture is taken from where the first of the pair was."""
    viewpoint = Viewpoint(rng.uniform(50, 130) * rng.choice([-1, 1]), rng.uniform(-60, -45), rng.uniform(0.92, 1.02))
    before = _shot(table, viewpoint, f"{stem}_before", pictures)
    plain = [item for item in items.values() if item.loose and not item.inside and item.kind not in ("cup", "lid")]
    plain = [item for item in plain if not any(other.on == item.name for other in items.values())]
    drawers = [item for item in items.values() if item.opened is not None]
    rng.shuffle(plain)
    done = str(rng.choice(["moved", "moved", "removed", "toppled", "drawer", "drawer", "nothing"]))
    name = plain[0].name if plain else ""
    if done == "drawer" and drawers:
        drawer = drawers[int(rng.integers(len(drawers)))]
        name, done = drawer.name, "closed" if drawer.opened else "opened"
        table.move_joint(name, 0.0 if drawer.opened else 0.8 * table.cell.objects.props.drawer.travel)
    elif done == "toppled" and (tall := [item for item in plain if item.kind in _LIES and item.upright]):
        name = tall[0].name
        table.put(name, *tall[0].middle[:2], lying_rad=float(rng.uniform(-math.pi, math.pi)))
    elif done == "removed" and name:
        table.remove(name)
    elif done != "nothing" and name and (spot := _free_spot(items, name, rng)) is not None:
        done = "moved"
        table.put(name, *spot)
    else:
        name, done = "", "nothing"
    if done != "removed":
        table.settle()
    return _compared(table, items, done, name, before, viewpoint, stem, pictures)


def _compared(
    table: Tabletop,
    items: dict[str, Item],
    done: str,
    name: str,
    before: Shot,
    viewpoint: Viewpoint,
    stem: str,
    pictures: dict[str, bytes],
) -> Change | None:
    """The change as physics left it; None if it is not the one that was meant, or moved something else."""
    for other, item in items.items():
        low, high = table.extent(other)
        moved = float(np.abs(np.concatenate([low - item.low, high - item.high])).max())
        if (other != name and moved > _UNMOVED_M) or (other == name and moved < 0.02):
            return None
    if name and done == "toppled" and table.upright(name) is not False:
        return None
    if name and done == "moved" and table.upright(name) != items[name].upright and items[name].upright is not True:
        return None
    left_m = 0.0
    if name:
        low, high = table.extent(name)
        left_m = float((low + high)[1] / 2 - items[name].middle[1])
    after = _shot(table, viewpoint, f"{stem}_after", pictures)
    return Change(done, name, left_m, before, after)


def _free_spot(items: dict[str, Item], name: str, rng: np.random.Generator) -> tuple[float, float] | None:
    others = np.array([item.middle[:2] for item in items.values()])
    for x, y in rng.uniform(*_AREA_M, size=(60, 2)):
        room = np.hypot(*(others - (x, y)).T)
        if room.min() > _SPOT_ROOM_M and np.hypot(*(items[name].middle[:2] - (x, y))) > 0.12:
            return float(x), float(y)
    return None
