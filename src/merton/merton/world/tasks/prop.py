"""The form of a prop: a thing that a task needs besides the objects and mats that every cell has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from merton.world.cell import Props
from merton.world.shapes import Part
from merton.world.tasks.room import PLAIN_OBJECT, VARIED_OBJECT, Stand

Point = tuple[float, float, float]


@dataclass(frozen=True)
class Joint:
    """The joint of the moving part of a prop; its position is 0 at the start of a trial.

    Attributes:
        kind: "slide" along an axis [m], or "hinge" about it [rad].
        axis: unit vector in the frame of the prop.
        limits: least and greatest position [m or rad].
        damping: force or torque per unit of velocity [N s/m or N m s].
        friction: force or torque that it takes to move it [N or N m].
        stiffness: of its spring [N/m or N m/rad]; 0 without one.
        spring_reference: position of the spring without load [m or rad].
    """

    kind: Literal["slide", "hinge"]
    axis: Point
    limits: tuple[float, float]
    damping: float
    friction: float = 0.0
    stiffness: float = 0.0
    spring_reference: float = 0.0


@dataclass(frozen=True)
class MovingPart:
    """A part of a fixed prop that moves on a joint.

    Attributes:
        parts: its primitives, in its own frame.
        joint: to the fixed part.
        at: origin of its frame in that of the prop [m].
    """

    parts: tuple[Part, ...]
    joint: Joint
    at: Point = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Prop:
    """A prop. There is one of each in a plain scene, in the colour of its name there.

    Attributes:
        name: one word; that of a thing in a scene is "<color> <name>", such as "red lid".
        parts: its primitives, in its frame, from the sizes in config/cell.yaml; those that do not move if `moving`.
        fixed: nothing moves it; else the hand can carry it.
        moving: the part on a joint of a fixed prop. Then the pose of the prop is that of this part.
        origin_m: height of the origin of its frame when it stands on the table [m].
        round: it looks the same at any yaw, so scenes do not turn it.
        plain: the place that it needs in a plain scene.
        varied: the same in the scenes of splits.
        decoy_scales: factors of the size of a second one there, beside the one that is asked for.
    """

    name: str
    parts: Callable[[Props], Sequence[Part]]
    fixed: bool = False
    moving: Callable[[Props], MovingPart] | None = None
    origin_m: Callable[[Props], float] = lambda sizes: 0.0
    round: bool = False
    plain: Stand = PLAIN_OBJECT
    varied: Stand = VARIED_OBJECT
    decoy_scales: tuple[float, ...] = (0.75, 1.25)

    @property
    def base(self) -> str:
        """Name of the body that stands on the table: a prop with a moving part gives its own name to that part."""
        return f"{self.name}_base" if self.moving else self.name

    @property
    def moves(self) -> bool:
        """Whether its pose can change during a trial."""
        return not self.fixed or self.moving is not None
