"""The entry of an arm: all that the rest of Merton has to know of it. Metres, radians, seconds."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from math import pi

from merton.registry import Registry

Point = tuple[float, float, float]
Six = tuple[float, float, float, float, float, float]
"""A number for each joint, shoulder pan to wrist 3."""


ONE_TURN: Six = (2 * pi, 2 * pi, pi, 2 * pi, 2 * pi, 2 * pi)
"""Universal Robots' limits but for the smallest arms [rad]: one turn either way; half a turn for the elbow, as in
`ur_description`, since the arm is in its own way before."""


@dataclass(frozen=True)
class Lengths:
    """Denavit-Hartenberg lengths [m] of an arm of Universal Robots' build, as the maker publishes them.

    Axes 2, 3 and 4 are parallel and the wrist is offset; a2 and a3 are negative.
    """

    d1: float
    a2: float
    a3: float
    d4: float
    d5: float
    d6: float


@dataclass(frozen=True)
class Capsule:
    """All points within `radius_m` of the segment `start` to `end` [m], fixed to a link frame.

    Attributes:
        link: name of the link in `urdf/`.
        frame: index in `UniversalRobot.link_frames` of the frame it moves with (0 is `base`, 6 is `tool0`).
        meets_table: whether its distance to the table is checked.
        slide: moves by this times half the opening of the gripper along x of `tool0`.
    """

    link: str
    frame: int
    start: Point
    end: Point
    radius_m: float
    meets_table: bool = True
    slide: int = 0


@dataclass(frozen=True)
class Arm:
    """An arm.

    Its shape for RViz, Gazebo and the simulator is the macro `arm` of `xacro`; tests/unit/world/test_arms.py compares
    that file with this entry.

    Attributes:
        name: as `robot.model` of config/cell.yaml has it.
        lengths: the kinematics.
        joint_limits_rad: each joint may turn by plus or minus this [rad].
        joint_speeds_rad_s: the fastest each joint can turn [rad/s].
        home_joints_rad: where a trial begins: in a cell like Merton's with the tool centre point at (0.45, 0, 0.30) m,
            pointing down, the fingers opening along y [rad].
        capsules: the shape of base, links and wrist for the gate, without gripper and cameras; no point of the
            drawn links is further outside than the stopping margin.
        ur_type: the arm's name in the UR ROS 2 driver and in `ur_description`.
        control_rate_hz: the control cycle of its controller [Hz].
    """

    name: str
    lengths: Lengths
    joint_limits_rad: Six
    joint_speeds_rad_s: Six
    home_joints_rad: Six
    capsules: tuple[Capsule, ...]
    ur_type: str
    control_rate_hz: int

    @property
    def xacro(self) -> str:
        """Its description, from the top of the checkout; urdf/cell.urdf.xacro includes the file by this rule."""
        return f"urdf/arms/{self.name.lower()}.xacro"

    @property
    def calibration(self) -> str:
        """The lengths that the UR ROS 2 driver assumes, a file of the package `ur_description`."""
        return f"config/{self.ur_type}/default_kinematics.yaml"

    @property
    def reach_m(self) -> float:
        """All lengths in a row [m]: no pose of `tool0` is farther from the arm's origin."""
        return sum(map(abs, astuple(self.lengths)))


ARMS: Registry[Arm] = Registry("arm")
"""Every arm by its name."""


def register(arm: Arm) -> Arm:
    """Enter an arm; raises MertonError if another has its name."""
    return ARMS.add(arm.name, arm)
