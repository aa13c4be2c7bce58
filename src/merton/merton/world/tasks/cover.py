"""Cover an object with a lid."""

from __future__ import annotations

import math

from merton.world.cell import CellConfig, Props
from merton.world.geometry import inverse
from merton.world.motion import CLEAR_M, Motion, yaw_of
from merton.world.shapes import Part, half_width_m
from merton.world.tasks.prop import Prop
from merton.world.tasks.room import Stand
from merton.world.tasks.situation import Remaining, Situation, excess
from merton.world.tasks.task import Command, Poses, Task


def _walls_roof_and_handle(sizes: Props) -> list[Part]:
    size = sizes.lid
    inner, half_wall = size.inner_width / 2, size.wall / 2
    outer, side_height = inner + size.wall, (size.height - size.wall) / 2
    middle, share = inner + half_wall, size.mass / 6
    walls = [
        Part(
            "box",
            (half_wall, outer, side_height),
            (middle * math.cos(angle), middle * math.sin(angle), side_height),
            mass_kg=share,
            yaw_rad=angle,
        )
        for angle in (math.pi / 2 * turn for turn in range(4))
    ]
    roof = Part("box", (outer, outer, half_wall), (0.0, 0.0, size.height - half_wall), mass_kg=share)
    grip, grip_height = size.handle_width / 2, size.handle_height / 2
    handle = Part("box", (grip, grip, grip_height), (0.0, 0.0, size.height + grip_height), mass_kg=share)
    return [*walls, roof, handle]


LID = Prop("lid", _walls_roof_and_handle, plain=Stand(0.095), varied=Stand(0.092, far_m=0.73))


def _remaining(command: Command, situation: Situation, cell: CellConfig) -> Remaining:
    lid = str(command.target)
    offset = (inverse(situation.now[lid]) @ situation.now[command.object])[:2, 3]
    half = half_width_m(command.object.split()[-1], situation.scales.get(command.object, 1.0), cell)
    play = cell.objects.props.lid.inner_width / 2 - half + 0.001
    way = sum(excess(abs(part), play) for part in offset) + situation.off_table(lid)
    met = situation.is_upright(lid) and situation.stands(command.object) and situation.is_released(lid)
    return Remaining(way, met)


def _motion(hand: Motion, poses: Poses) -> Motion:
    """Carry the lid, which is the target, by its handle to the object."""
    grasp_m = poses.sizes.lid.height + CLEAR_M
    return hand.carry(poses.target, yaw_of(poses.target), poses.thing[:2, 3], grasp_m)


TASK = Task(
    name="cover",
    template="cover the {object} with the {target}",
    description="the lid ends upright on the table with the whole object under its roof, released",
    remaining=_remaining,
    motion=_motion,
    plan="grasp {target}, set over it",
    targets=(LID.name,),
    props=(LID,),
    kit="lid and cup",
    unfit=("mug", "bottle", "brick", "cone"),
    use=(LID.name, "put it over another object"),
)
