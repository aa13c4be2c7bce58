"""Verdicts of the gate, and its limits by robot mode.

All of it supplements the safety controller of the robot and never replaces it. Frame: `base_link`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nan

from merton.errors import ErrorCode, InputError, UnknownNameError
from merton.world.arms import Arm


@dataclass(frozen=True)
class Verdict:
    """The gate's answer to a command.

    Attributes:
        code: `ErrorCode.OK`, or why the motion ends before the chunk does.
        message: one sentence, empty if OK.
        index: the delta concerned, -1 if OK or if the chunk as a whole is meant.
        link_a, link_b: the pair of bodies that would collide, else empty.
        clearance_m: distance of the colliding pair, else the least to table and walls along the allowed motion [m].
    """

    code: ErrorCode = ErrorCode.OK
    message: str = ""
    index: int = -1
    link_a: str = ""
    link_b: str = ""
    clearance_m: float = nan

    @property
    def ok(self) -> bool:
        """True if nothing was refused."""
        return self.code is ErrorCode.OK

    @property
    def stops(self) -> bool:
        """True if the stop has to latch: a predicted collision with table or wall (Embodied-IQA, section 3.5)."""
        return self.code is ErrorCode.COLLISION


SHARE_OF_JOINT_SPEED = 0.96
"""The gate asks joints for this part of the speed that they can do at most. Ours: 3 rad/s of a UR5's pi."""


@dataclass(frozen=True)
class Limits:
    """Limits of a delta, and of the motion that carries it out.

    A chunk beyond the first group is refused, in every mode alike: the definition of an action must not depend on the
    speed that a mode allows. The `peak` group binds the motion: a chunk that would exceed it is slowed down as a whole,
    which keeps its path and so its score. Ours: steps that a camera at 5 Hz can follow, and half of a UR5's limits.

    Attributes:
        step_translation_m: translation of one delta [m].
        step_rotation_rad: rotation of one delta [rad].
        tcp_speed_m_s: mean speed of the tool centre point over one delta, as asked for [m/s].
        joint_speed_rad_s: mean speed of any joint over one delta, as asked for [rad/s].
        joint_step_rad: a joint that turns further in one delta has changed the branch of the inverse kinematics [rad].
        absurd_factor: a delta this many times over a step limit is no action at all, and nothing moves.
        stopping_margin_m: distance to table, walls and itself that is never given up on purpose [m].
        peak_tcp_speed_m_s: of the tool centre point at any instant [m/s].
        peak_tcp_acceleration_m_s2: of the tool centre point at any instant [m/s2]; g is where a grip may slip.
        peak_joint_speed_rad_s: of any joint at any instant [rad/s]; less for an arm that cannot, see `within`.
        peak_joint_acceleration_rad_s2: of any joint at any instant [rad/s2]; half the limit of an unloaded UR5.
        most_slowdown: a chunk that would have to be slowed down more than this many times is refused where it is worst.
    """

    step_translation_m: float = 0.08
    step_rotation_rad: float = 0.35
    tcp_speed_m_s: float = 0.6
    joint_speed_rad_s: float = 2.0
    joint_step_rad: float = 1.0
    absurd_factor: float = 10.0
    stopping_margin_m: float = 0.005
    peak_tcp_speed_m_s: float = 0.9
    peak_tcp_acceleration_m_s2: float = 10.0
    peak_joint_speed_rad_s: float = 3.0
    peak_joint_acceleration_rad_s2: float = 40.0
    most_slowdown: float = 10.0

    def within(self, arm: Arm) -> Limits:
        """The same, with a peak speed of the joints that the slowest joint of an arm can follow."""
        fastest = SHARE_OF_JOINT_SPEED * min(arm.joint_speeds_rad_s)
        return replace(self, peak_joint_speed_rad_s=fastest) if fastest < self.peak_joint_speed_rad_s else self

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < inf:
                raise InputError(f"limit {name} must be a positive number, got {value!r}")
        if self.most_slowdown < 1:
            raise InputError(f"limit most_slowdown must be 1 or more, got {self.most_slowdown!r}")


MODES: dict[str, Limits] = {
    "normal": Limits(),
    "reduced": Limits(
        peak_tcp_speed_m_s=0.25,
        peak_tcp_acceleration_m_s2=2.5,
        peak_joint_speed_rad_s=1.0,
        peak_joint_acceleration_rad_s2=10.0,
    ),
}
"""Limits by robot mode. Reduced: 250 mm/s at the tool (ISO 10218-1), reached in a tenth of a second at the earliest."""


def limits_of_mode(mode: str) -> Limits:
    """The limits of a robot mode; raises UnknownNameError with the modes there are."""
    try:
        return MODES[mode]
    except KeyError:
        raise UnknownNameError("robot mode", mode, MODES) from None
