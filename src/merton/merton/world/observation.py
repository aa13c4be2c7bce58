"""The observation of an agent: camera views, the arm's state, and (for the oracle alone) the simulator's state."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import InputError
from merton.world.action_space import ActionSpace
from merton.world.geometry import Array, Matrix
from merton.world.nouns import meant

_Value = TypeVar("_Value")
Image = NDArray[np.uint8]
"""Colour image, shape (height, width, 3), RGB."""


def millimetres(depth_m: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Depth [m] as a 16-bit image of millimetres, as a D455 gives it; 0 where it is not finite, negative or > 65 m."""
    scaled = np.rint(depth_m * np.float32(1000.0))
    return np.where((scaled >= 0) & (scaled <= 65535), scaled, 0).astype(np.uint16)


def whole_millimetres(depth_m: NDArray[np.float32]) -> NDArray[np.float32]:
    """Depth [m] rounded as by a message: a 16-bit image of millimetres."""
    return np.rint(depth_m * 1000.0).astype(np.float32) * np.float32(0.001)


@dataclass(frozen=True)
class Intrinsics:
    """A pinhole camera without lens distortion, in pixels, in the optical frame (x right, y down, z forward).

    Raises:
        InputError: a size below 1 pixel, a focal length that is not positive, or a value that is not finite.
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float

    def __post_init__(self) -> None:
        values = self.fx, self.fy, self.cx, self.cy
        if self.width < 1 or self.height < 1 or min(self.fx, self.fy) <= 0 or not all(map(math.isfinite, values)):
            raise InputError(
                f"a camera has a size, positive focal lengths and a principal point, got {self.width} x {self.height} "
                f"px, focal lengths {self.fx:g} and {self.fy:g} px, principal point ({self.cx:g}, {self.cy:g}): is it "
                f"calibrated?"
            )

    def deproject(self, u_px: ArrayLike, v_px: ArrayLike, depth_m: ArrayLike) -> Array:
        """The points (..., 3) [m] in the optical frame that are seen at pixels (u, v) at depths along z, each (...)."""
        u, v, depth = (np.asarray(values, dtype=np.float64) for values in (u_px, v_px, depth_m))
        return np.stack(((u - self.cx) / self.fx * depth, (v - self.cy) / self.fy * depth, depth), axis=-1)

    def project(self, point_in_camera: Array) -> Array:
        """The pixel (u, v), shape (2,), at which a point (3,) [m] of the optical frame is seen."""
        x, y, z = point_in_camera
        return np.array([self.fx * x / z + self.cx, self.fy * y / z + self.cy])


def check_picture(color: NDArray[Any], depth: NDArray[Any] | None, intrinsics: Intrinsics | None) -> None:
    """Check that colour, depth and intrinsics are of one picture; every source of pictures comes by here.

    Raises:
        InputError: colour is not (height, width, 3) uint8, or depth or intrinsics are of another size.
    """
    if color.dtype != np.uint8 or color.ndim != 3 or color.shape[2] != 3:
        raise InputError(f"colour must be uint8 (height, width, 3), got {color.dtype} {color.shape}")
    height, width = color.shape[:2]
    if depth is not None and depth.shape != (height, width):
        raise InputError(f"depth {depth.shape} is not aligned to colour {(height, width)}")
    if intrinsics is not None and (intrinsics.width, intrinsics.height) != (width, height):
        raise InputError(
            f"its camera_info is for pictures of {intrinsics.width} x {intrinsics.height} px, and the picture has "
            f"{width} x {height}: a resized, cropped or binned stream needs a camera_info of its own"
        )


@dataclass(frozen=True)
class Frame:
    """The pictures of one camera at one instant, and nothing of where it stands.

    Attributes:
        camera: name of the camera, such as "top".
        color: (height, width, 3) uint8 RGB.
        depth_m: (height, width) float32, metres along the optical axis, 0 where unknown, aligned to `color`; or None.
    """

    camera: str
    color: Image
    depth_m: NDArray[np.float32] | None


@dataclass(frozen=True)
class CameraView(Frame):
    """One camera at one instant.

    Attributes:
        camera, color, depth_m: as of `Frame`.
        intrinsics: pinhole parameters of `color`; None of a camera that is not calibrated.
        base_from_camera: pose of the optical frame in the frame `base_link`; None of a camera that is not calibrated.
        stamp_ns: time of exposure [ns] on the cell's clock.

    Raises:
        InputError: as `check_picture`.
    """

    intrinsics: Intrinsics | None
    base_from_camera: Matrix | None
    stamp_ns: int = 0

    def __post_init__(self) -> None:
        try:
            check_picture(self.color, self.depth_m, self.intrinsics)
        except InputError as error:
            raise InputError(f"camera {self.camera!r}: {error}") from None

    @property
    def lens(self) -> Intrinsics:
        """`intrinsics`; raises InputError for a camera that is not calibrated."""
        if self.intrinsics is None:
            raise InputError(f"camera {self.camera!r} is not calibrated: its intrinsics are not known")
        return self.intrinsics

    @property
    def pose(self) -> Matrix:
        """`base_from_camera`; raises InputError for a camera that is not calibrated."""
        if self.base_from_camera is None:
            raise InputError(f"camera {self.camera!r} is not calibrated: its pose is not known")
        return self.base_from_camera


@dataclass(frozen=True)
class SceneObject:
    """A thing in the simulator's state: its name as in `merton.world.nouns` (such as "red cube"), pose in `base_link`.

    Origin and axes are those of docs/use/tasks.md; a button, drawer or knob shows its joint in its pose.
    """

    name: str
    base_from_object: Matrix


@dataclass(frozen=True)
class SceneState:
    """The simulator's own knowledge of the scene, in `base_link`. Only the oracle may use it."""

    objects: tuple[SceneObject, ...]

    def find(self, name: str) -> SceneObject:
        """The object that a noun of an instruction means; raises InputError listing the objects that are there."""
        places = {item.name: (item.base_from_object[0, 3], item.base_from_object[1, 3]) for item in self.objects}
        found = meant(name, places)
        return next(item for item in self.objects if item.name == found)


@dataclass(frozen=True)
class Observation:
    """Everything a policy may use to decide. Whatever the robot of another world lacks is None, not zero.

    Attributes:
        views: camera name to view.
        joints_rad: (n,) arm joint angles, base to wrist 3 of the UR5's six.
        base_from_tcp: (4, 4) pose of the tool centre point (between the finger pads) in `base_link`.
        gripper_open: 0 closed .. 1 open.
        instruction: the task in words.
        step: number of chunks executed in this trial before this observation.
        scene: the simulator's state; None for every policy but the oracle.
        noise_seed: seed of a stochastic model, in [0, 2**64); the same for a reference and its distorted copies, so
            that only the image differs.
        action: the action space of a world that is not the UR5 cell, which takes tool deltas of any duration.
        rest_row: the row of `action` that keeps the robot still.
        extra: further numbers of the robot that this world gives, by name.
        expert: decides as the world's own expert, (n, columns) rows of `action`; None for every policy but that one.
    """

    views: Mapping[str, CameraView]
    joints_rad: Array | None
    base_from_tcp: Matrix | None
    gripper_open: float | None
    instruction: str
    step: int = 0
    scene: SceneState | None = None
    noise_seed: int = 0
    action: ActionSpace | None = None
    rest_row: Array | None = None
    extra: Mapping[str, Array] | None = None
    expert: Callable[[], Array] | None = None

    @property
    def joints(self) -> Array:
        """`joints_rad`; raises InputError if this world's robot has none."""
        return _there(self.joints_rad, "joint angles")

    @property
    def tool(self) -> Matrix:
        """`base_from_tcp`; raises InputError if this world's robot has none."""
        return _there(self.base_from_tcp, "tool pose")

    @property
    def opened(self) -> float:
        """`gripper_open`; raises InputError if this world's robot has none."""
        return _there(self.gripper_open, "gripper")


def _there(value: _Value | None, name: str) -> _Value:
    if value is None:
        raise InputError(f"the robot of this world has no {name}, which the policy needs")
    return value
