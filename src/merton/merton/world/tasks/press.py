"""Press a button and hold it down."""

from __future__ import annotations

from merton.world.cell import CellConfig, Props
from merton.world.motion import APPROACH_HEIGHT_M, CLEAR_M, GENTLE_TRANSLATION_M, TIP_M, Motion
from merton.world.shapes import Part
from merton.world.tasks.prop import Joint, MovingPart, Prop
from merton.world.tasks.room import Stand
from merton.world.tasks.situation import Remaining, Situation, shortfall
from merton.world.tasks.task import Command, Poses, Task

PRESSED_SHARE = 0.8
_PRESS_SHARE = 0.95


def _base(sizes: Props) -> list[Part]:
    half, half_height = sizes.button.base_width / 2, sizes.button.base_height / 2
    return [Part("box", (half, half, half_height), (0.0, 0.0, half_height), "plain")]


def _cap(sizes: Props) -> MovingPart:
    """It reaches down so far that no gap shows when it is up, and slides into its base."""
    size = sizes.button
    cap = Part("cylinder", (size.cap_diameter / 2, size.cap_height / 2), (0.0, 0.0, -size.cap_height / 2), mass_kg=0.02)
    joint = Joint(
        "slide",
        axis=(0.0, 0.0, 1.0),
        limits=(-size.travel, 0.0),
        damping=3.0,
        stiffness=size.stiffness,
        spring_reference=size.preload / size.stiffness,
    )
    return MovingPart((cap,), joint, at=(0.0, 0.0, size.base_height + size.cap_height))


BUTTON = Prop(
    "button",
    _base,
    fixed=True,
    moving=_cap,
    origin_m=lambda sizes: sizes.button.base_height + sizes.button.cap_height,
    round=True,
    varied=Stand(0.082, far_m=0.73),
)


def _remaining(command: Command, situation: Situation, cell: CellConfig) -> Remaining:
    down = -situation.moved(command.object)[2]
    return Remaining(shortfall(down, PRESSED_SHARE * cell.objects.props.button.travel))


def _motion(hand: Motion, poses: Poses) -> Motion:
    """Close the hand, press from above, and stay; the pose of a button is that of its cap's top."""
    x, y, top = poses.thing[:3, 3]
    hand.grip(0.0).move((x, y, APPROACH_HEIGHT_M)).move((x, y, top + TIP_M + CLEAR_M))
    down = top + TIP_M - _PRESS_SHARE * poses.sizes.button.travel
    return hand.move((x, y, down), max_translation_m=0.3 * GENTLE_TRANSLATION_M)


TASK = Task(
    name="press",
    template="press and hold the {object}",
    description="the button ends pressed down by at least 80 % of its travel, against its spring",
    remaining=_remaining,
    motion=_motion,
    plan="close gripper, press it down",
    objects=(BUTTON.name,),
    props=(BUTTON,),
    kit="button and drawer",
    use=(BUTTON.name, "press it down"),
)
