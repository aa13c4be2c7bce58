"""Insert a peg into a socket."""

from __future__ import annotations

import math

from merton.world.cell import CellConfig, Props
from merton.world.geometry import inverse
from merton.world.motion import Motion
from merton.world.shapes import Part
from merton.world.tasks.prop import Prop
from merton.world.tasks.room import Stand
from merton.world.tasks.situation import Remaining, Situation, excess
from merton.world.tasks.task import Command, Poses, Task

INSERTED_SHARE = 0.75


def _cylinder(sizes: Props) -> list[Part]:
    peg = sizes.peg
    return [Part("cylinder", (peg.diameter / 2, peg.height / 2), (0.0, 0.0, 0.0), mass_kg=peg.mass)]


def _walls(sizes: Props) -> list[Part]:
    """Two walls reach to the corners, two fit between them."""
    size = sizes.socket
    hole, half_height = size.hole_width / 2, size.height / 2
    half_wall = (size.width - size.hole_width) / 4
    middle = hole + half_wall
    return [
        Part(
            "box",
            (half_wall, size.width / 2 if turn % 2 == 0 else hole, half_height),
            (middle * math.cos(angle), middle * math.sin(angle), half_height),
            yaw_rad=angle,
        )
        for turn, angle in ((turn, math.pi / 2 * turn) for turn in range(4))
    ]


PEG = Prop("peg", _cylinder, origin_m=lambda sizes: sizes.peg.height / 2, round=True)
SOCKET = Prop("socket", _walls, fixed=True, plain=Stand(0.095), varied=Stand(0.095, far_m=0.73))


def _remaining(command: Command, situation: Situation, cell: CellConfig) -> Remaining:
    peg, socket = cell.objects.props.peg, cell.objects.props.socket
    offset = (inverse(situation.now[str(command.target)]) @ situation.now[command.object])[:3, 3]
    play = (socket.hole_width - peg.diameter) / 2 + 0.001
    above = excess(offset[2] - peg.height / 2, (1 - INSERTED_SHARE) * socket.height)
    way = sum(excess(abs(part), play) for part in offset[:2]) + above
    return Remaining(way, situation.is_upright(command.object) and situation.is_released(command.object))


def _motion(hand: Motion, poses: Poses) -> Motion:
    """Grasp the peg near its upper end and lower it into the hole."""
    return hand.carry(poses.thing, None, poses.target[:2, 3], poses.sizes.peg.height - 0.02)


TASK = Task(
    name="insert",
    template="insert the {object} into the {target}",
    description="the peg ends upright in the hole, at least three quarters of the way in, released",
    remaining=_remaining,
    motion=_motion,
    plan="grasp it, lower into {target}",
    objects=(PEG.name,),
    targets=(SOCKET.name,),
    props=(PEG, SOCKET),
    kit="knob and peg",
    use=(SOCKET.name, "insert a peg into it"),
    goal="{object} is in {target}",
)
