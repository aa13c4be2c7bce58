"""The geometry of the cell, read from `config/cell.yaml`, the file the xacro reads too.

Metres, radians, seconds. Positions are in `base_link` (x forward, y left, z up, z = 0 is the table top) unless a camera
says otherwise.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from merton.config import load
from merton.errors import FileError, InputError, UnknownNameError
from merton.files import resource
from merton.world.arms import ARMS, Arm
from merton.world.cell_robot import GripperSettings, NotNegative, Number, Positive, Robot, Section, Tool
from merton.world.geometry import Array, Matrix, transform
from merton.world.kinematic_calibration import KinematicCalibration, check_is_of, read_calibration
from merton.world.linkage import tip_behind_m
from merton.world.observation import Intrinsics

Point = tuple[Number, Number, Number]

ARM_JOINTS = (
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
)
"""Names of the arm's joints in the URDF, base to wrist 3."""
FINGER_JOINTS = ("gripper_left_finger_joint", "gripper_right_finger_joint")
"""Names of the prismatic finger joints, each half the opening [m]; the right one mimics the left."""

_CAMERA_SETTINGS = ("width", "height", "fx", "fy", "rate_hz")


def _ordered(section: Any) -> Any:
    if any(low >= high for low, high in zip(section.min, section.max, strict=True)):
        raise ValueError(f"min {section.min} must lie below max {section.max} on every axis")
    return section


class Table(Section):
    """A slab whose top is z = 0: centre (x, y), size (x, y) and thickness [m]."""

    center: tuple[Number, Number]
    size: tuple[Positive, Positive]
    thickness: Positive


class Box(Section):
    """An axis-aligned box in `base_link`: centre and full size along x, y, z [m]."""

    name: str
    center: Point
    size: tuple[Positive, Positive, Positive]


class Floor(Section):
    """Height of the room's floor [m]; below the table top, so negative."""

    z: Annotated[float, Field(lt=0, allow_inf_nan=False)]


class Area(Section):
    """A rectangle on the table: its corners (x, y) [m]."""

    min: tuple[Number, Number]
    max: tuple[Number, Number]

    _corners = model_validator(mode="after")(_ordered)


class Lid(Section):
    """A square hood, open below, with a handle on its roof: `height` is that of the roof's top [m, kg]."""

    inner_width: Positive
    wall: Positive
    height: Positive
    handle_width: Positive
    handle_height: Positive
    mass: Positive


class Peg(Section):
    """A cylinder [m, kg]."""

    diameter: Positive
    height: Positive
    mass: Positive


class Socket(Section):
    """A block with a square hole down to the table [m]."""

    width: Positive
    hole_width: Positive
    height: Positive


class Vessel(Section):
    """An eight-sided cup or bowl, `inner_width` across its flats [m]."""

    inner_width: Positive
    wall: Positive
    height: Positive


class Cup(Vessel):
    """A vessel that can be lifted [kg]."""

    mass: Positive


class Beads(Section):
    """The balls in the cup [m, kg]."""

    number: Annotated[int, Field(gt=0)]
    diameter: Positive
    mass: Positive


class Button(Section):
    """A round cap on a square base and a spring [m]: `preload` [N] at rest, `stiffness` [N/m]."""

    base_width: Positive
    base_height: Positive
    cap_diameter: Positive
    cap_height: Positive
    travel: Positive
    preload: Positive
    stiffness: Positive


class Drawer(Section):
    """A tray that slides between two rails, with an upright handle at its front [m]; `friction` [N]."""

    width: Positive
    depth: Positive
    height: Positive
    handle_width: Positive
    handle_thickness: Positive
    handle_height: Positive
    travel: Positive
    friction: Positive


class Knob(Section):
    """A disc with a bar on top to grip it by [m]; it turns by `turn` either way [rad], against `friction` [N m]."""

    diameter: Positive
    height: Positive
    grip_width: Positive
    grip_thickness: Positive
    grip_height: Positive
    turn: Positive
    friction: Positive


class Props(Section):
    """Sizes of the props that single tasks need."""

    lid: Lid
    peg: Peg
    socket: Socket
    cup: Cup
    bowl: Vessel
    beads: Beads
    button: Button
    drawer: Drawer
    knob: Knob


class Objects(Section):
    """Sizes [m] and mass [kg] of the objects on the table, and the area for their centres."""

    cube_edge: Positive
    cylinder_diameter: Positive
    cylinder_height: Positive
    mass: Positive
    mat_radius: Positive
    area: Area
    props: Props


class Simulation(Section):
    """The embedded cell: physics after every motion and reset [s], force the pads may meet table and walls with [N]."""

    settle_s: NotNegative
    pad_force_limit: Positive


class Workspace(Section):
    """The axis-aligned box the tool centre point may be in: its corners [m] in `base_link`."""

    min: Point
    max: Point

    _corners = model_validator(mode="after")(_ordered)

    def outside_m(self, point: Array) -> float:
        """Distance of a point (3,) [m] outside the workspace from it [m]; 0 inside."""
        return float(np.linalg.norm(point - np.clip(point, self.min, self.max)))


class Camera(Section):
    """Place and viewing direction of a camera in its parent frame; `up` is the direction that is up in the image."""

    parent: Literal["base_link", "tool0"]
    look_from: Point
    look_at: Point
    up: Point

    @model_validator(mode="after")
    def _has_a_direction(self) -> Camera:
        forward = np.subtract(self.look_at, self.look_from)
        if np.linalg.norm(np.cross(forward, self.up)) < 1e-9:
            raise ValueError("look_from, look_at and up leave the camera's direction open")
        return self

    @cached_property
    def parent_from_camera(self) -> Matrix:
        """Pose (4, 4) of the optical frame (x right, y down, z forward) in the parent frame."""
        forward = np.subtract(self.look_at, self.look_from)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, self.up)
        right /= np.linalg.norm(right)
        pose = transform(self.look_from)
        pose[:3, :3] = np.column_stack((right, np.cross(forward, right), forward))
        return pose


class Cameras(Section):
    """The cameras by name, and their common settings: image size and focal lengths [px], frames per second."""

    width: Annotated[int, Field(gt=0)]
    height: Annotated[int, Field(gt=0)]
    fx: Positive
    fy: Positive
    rate_hz: Positive
    named: Annotated[dict[str, Camera], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, raw: Any) -> Any:
        """The cameras under `named`; in the file they stand beside the common settings."""
        if not isinstance(raw, dict) or "named" in raw:
            return raw
        settings = {key: value for key, value in raw.items() if key in _CAMERA_SETTINGS}
        return {**settings, "named": {key: value for key, value in raw.items() if key not in _CAMERA_SETTINGS}}


class CellConfig(Section):
    """The content of `config/cell.yaml`, a field for each section.

    `kinematic_calibration` is what the file has that `robot.calibration` names, see `load_cell`.
    """

    robot: Robot
    tool: Tool
    gripper: GripperSettings
    table: Table
    walls: tuple[Box, ...]
    floor: Floor
    objects: Objects
    workspace: Workspace
    cameras: Cameras
    simulation: Simulation
    kinematic_calibration: KinematicCalibration | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_the_walls(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and isinstance(raw.get("walls"), dict):
            walls = raw["walls"].items()
            return {**raw, "walls": [{"name": name, **box} if isinstance(box, dict) else box for name, box in walls]}
        return raw

    @property
    def arm(self) -> Arm:
        """The entry of the arm: its lengths, limits, capsules, description."""
        return ARMS[self.robot.model]

    @cached_property
    def home_joints(self) -> Array:
        """Joint angles at the start of every trial, (6,) [rad]."""
        return np.array(self.robot.home_joints or self.arm.home_joints_rad)

    @cached_property
    def tool0_from_tcp(self) -> Matrix:
        """Pose (4, 4) of the tool centre point in `tool0`.

        It does not move with the fingers. With a linkage it is the point between the pads when they hold an object as
        wide as those on the table: there the pads lie a little behind those of the closed gripper.
        """
        z = self.tool.tcp_from_tool0_z
        return transform((0.0, 0.0, z - tip_behind_m(self.objects.cube_edge) if self.gripper.linkage else z))

    @cached_property
    def intrinsics(self) -> Intrinsics:
        """The pinhole parameters all cameras share.

        A pixel's number is the place of its centre (as in OpenCV and ROS), so the optical axis meets the image at
        ((width - 1) / 2, (height - 1) / 2).
        """
        common = self.cameras
        centre = ((common.width - 1) / 2, (common.height - 1) / 2)
        return Intrinsics(common.width, common.height, common.fx, common.fy, *centre)

    def with_linkage(self, linkage: bool) -> CellConfig:
        """The same cell, its gripper with or without the linkage of the real one."""
        return self._with(gripper=self.gripper.model_copy(update={"linkage": linkage}))

    def with_calibration(self, calibration: KinematicCalibration) -> CellConfig:
        """The same cell with an arm that has this calibration; raises InputError if that is of another model."""
        check_is_of(calibration, self.arm)
        return self._with(kinematic_calibration=calibration)

    def _with(self, **changed: Any) -> CellConfig:
        """A copy without the cached properties, which `model_copy` would keep."""
        return CellConfig.model_construct(**{name: getattr(self, name) for name in CellConfig.model_fields} | changed)

    @property
    def camera_names(self) -> tuple[str, ...]:
        """The cameras, in the order of the file."""
        return tuple(self.cameras.named)

    def camera(self, name: str) -> Camera:
        """The camera called `name`; raises UnknownNameError with the names there are."""
        try:
            return self.cameras.named[name]
        except KeyError:
            raise UnknownNameError("camera", name, self.cameras.named) from None

    def base_from_camera(self, name: str, base_from_tool0: Matrix | None = None) -> Matrix:
        """Pose (4, 4) of a camera's optical frame (x right, y down, z forward) in `base_link`.

        Args:
            base_from_tool0: (4, 4) pose of `tool0` in `base_link`; only a camera on the tool needs it.

        Raises:
            InputError: no such camera, or one on the tool without the tool's pose.
        """
        camera = self.camera(name)
        if camera.parent == "base_link":
            return camera.parent_from_camera.copy()
        if base_from_tool0 is None:
            raise InputError(f"camera {name!r} rides on tool0: its pose needs base_from_tool0")
        return base_from_tool0 @ camera.parent_from_camera


def cell_file() -> Path:
    """The path of `config/cell.yaml`."""
    return resource("merton_bringup", "config/cell.yaml")


def load_cell(path: str | Path | None = None, *, linkage: bool = False) -> CellConfig:
    """Read the cell's geometry (`cell_file` if None); raises InputError that names file, line and offending key.

    `linkage`: the gripper has the linkage of the real 2F-140, as in the lab; else fingers that slide.
    """
    file = cell_file() if path is None else Path(path)
    cell = load(file, CellConfig).with_linkage(linkage)
    if cell.robot.calibration is None:
        return cell
    calibration = file.parent / cell.robot.calibration
    try:
        return cell.with_calibration(read_calibration(calibration))
    except InputError as error:
        raise FileError(f"{file}: robot.calibration: {error}") from None
