"""`poses.csv`: the arm's pose at each picture, in one of the forms in which robots write it.

A header, then a line for each picture: `image`, and either the six joints, named as in the URDF [rad], or a position
and a rotation. Position: `x_m`, `y_m`, `z_m`, or `x_mm`, `y_mm`, `z_mm`, or `x`, `y`, `z` [m]. Rotation: a quaternion
`qx`, `qy`, `qz`, `qw`, or the rotation vector `rx`, `ry`, `rz` [rad] that UR's controllers write. A column `frame` may
say what a pose is in: `base_link`, as quaternions are without it, or UR's own `base`, as rotation vectors are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from merton.calibration.mistakes import BASE_LINK_FROM_BASE
from merton.errors import InputError
from merton.results.tables import file_bytes, plain_number, read_cells
from merton.results.text import one_line
from merton.world.arms import Arm
from merton.world.cell import ARM_JOINTS
from merton.world.geometry import Array, Matrix, from_quaternion, rotation_of_vector

POSES_FILE = "poses.csv"
METRES, MILLIMETRES = ("x_m", "y_m", "z_m"), ("x_mm", "y_mm", "z_mm")
POSITIONS: dict[tuple[str, ...], float] = {METRES: 1.0, MILLIMETRES: 1e-3, ("x", "y", "z"): 1.0}
"""Columns of a position, and metres in their unit."""
QUATERNION, ROTATION_VECTOR = ("qx", "qy", "qz", "qw"), ("rx", "ry", "rz")
FRAME = "frame"
FRAMES = {"base_link": np.eye(4), "base": BASE_LINK_FROM_BASE}
"""Frames that a pose may be in, each with its own pose (4, 4) in `base_link`."""

LARGEST_ANGLE_RAD = 2 * np.pi + 0.1
"""UR's joints turn by 360 degrees either way, and no rotation vector is longer; a little more for rounding."""
LONGEST_TOOL_M = 0.3
"""Ours: a pose may be of a tool on the arm, and so may be farther away than the arm reaches."""
SHORTEST_REACH_M = 0.01
"""Ours: no pose of an arm has its last link within its first."""
UNIT_TOLERANCE = 0.05
"""Largest difference of a quaternion's length from 1. Ours: the error of numbers with two decimals."""


def read_poses(folder: Path, arm: Arm, forward: Callable[[Array], Matrix]) -> list[tuple[Path, Matrix]]:
    """The pictures of a folder, each with the pose (4, 4) of `tool0` in `base_link`, in the order of `poses.csv`.

    Args:
        folder: where `poses.csv` and the pictures are.
        arm: the one that the pictures are of.
        forward: its `base_from_tool0` of joint angles (6,) [rad]; used only if the file has joints.

    Raises:
        InputError: a file is missing, or a line is wrong, or its numbers cannot be a pose of an arm in the unit of
            their column; the text names it.
        InfrastructureError: the disk fails.
    """
    file = folder / POSES_FILE
    rows = read_cells(str(file), file_bytes(file))
    where, header = next(rows)
    read = _reader(str(file), header, arm, forward)
    poses: dict[Path, Matrix] = {}
    for where, cells in rows:
        row = dict(zip(header, cells, strict=True))
        picture = _picture(where, folder, row["image"])
        if picture in poses:
            raise InputError(f"{where}: {one_line(picture.name)} has a pose already; each picture has one line")
        poses[picture] = read(where, row)
    if not poses:
        raise InputError(f"{file} has no poses")
    reach_m = max(float(np.linalg.norm(pose[:3, 3])) for pose in poses.values())
    if reach_m < SHORTEST_REACH_M and not set(ARM_JOINTS) <= set(header):
        raise InputError(f"{file}: no pose is farther than 10 mm from the origin of the arm: are its lengths metres?")
    return list(poses.items())


Row = Mapping[str, Any]


def _reader(
    file: str, header: Sequence[str], arm: Arm, forward: Callable[[Array], Matrix]
) -> Callable[[str, Row], Matrix]:
    """The function that makes a pose (4, 4) of a line of a file with these columns; InputError for other columns."""
    position = next((columns for columns in POSITIONS if set(columns) <= set(header)), None)
    rotation = next((columns for columns in (QUATERNION, ROTATION_VECTOR) if set(columns) <= set(header)), None)
    if "image" in header and set(ARM_JOINTS) <= set(header):
        return lambda where, row: forward(_joints(where, row, arm))
    if "image" not in header or position is None or rotation is None:
        names = ", ".join((*METRES, *QUATERNION))
        seen = one_line(", ".join(header), 120)
        raise InputError(
            f"{file}: its first line must name the columns image and either {', '.join(ARM_JOINTS)} or {names}, or "
            f"{', '.join(ROTATION_VECTOR)} in place of the last four; it names {seen}"
        )

    def pose(where: str, row: Row) -> Matrix:
        place = _place(where, row, position, arm)
        if rotation == QUATERNION:
            found, frame = from_quaternion(place, _quaternion(where, row)), "base_link"
        else:
            found, frame = np.eye(4), "base"
            found[:3, :3] = rotation_of_vector(_rotation_vector(where, row))
            found[:3, 3] = place
        frame = str(row.get(FRAME) or frame).strip()
        if frame not in FRAMES:
            raise InputError(f"{where}: frame is {one_line(frame, 40)!r}; choose one of: {', '.join(FRAMES)}")
        return FRAMES[frame] @ found

    return pose


def _picture(where: str, folder: Path, cell: Any) -> Path:
    name = str(cell if cell is not None else "").strip()
    picture = folder / name
    try:
        found = bool(name) and picture.is_file()
    except (OSError, ValueError):  # a name that no file can have
        found = False
    if not found:
        raise InputError(f"{where}: there is no picture {one_line(name)!r} in {str(folder)!r}")
    return picture


def _numbers(where: str, row: Row, columns: Sequence[str]) -> Array:
    """The numbers in some columns; raises InputError naming the first that is none."""
    values = [plain_number(row[column]) for column in columns]
    for column, value in zip(columns, values, strict=True):
        if value is None or not np.isfinite(value):
            shown = one_line(row[column] or "", 40)
            raise InputError(f"{where}: expected {len(columns)} finite numbers, but {column} is {shown!r}")
    return np.array(values, np.float64)


def _joints(where: str, row: Row, arm: Arm) -> Array:
    angles = _numbers(where, row, ARM_JOINTS)
    if (largest := np.abs(angles).max()) > LARGEST_ANGLE_RAD:
        joint = ARM_JOINTS[int(np.abs(angles).argmax())]
        raise InputError(
            f"{where}: {joint} is {largest:.6g} rad, and a joint of a {arm.name} turns by 2 pi at most: are these "
            "degrees?"
        )
    return angles


def _rotation_vector(where: str, row: Row) -> Array:
    vector = _numbers(where, row, ROTATION_VECTOR)
    if (length := math.hypot(*vector)) > LARGEST_ANGLE_RAD:
        raise InputError(
            f"{where}: {', '.join(ROTATION_VECTOR)} have length {length:.6g} rad, and a rotation vector turns by 2 pi "
            f"at most: are these degrees?"
        )
    return vector


def _place(where: str, row: Row, columns: tuple[str, ...], arm: Arm) -> Array:
    place = POSITIONS[columns] * _numbers(where, row, columns)
    if (distance_m := math.hypot(*place)) > arm.reach_m + LONGEST_TOOL_M:
        remedy = ": are these millimetres? Then name the columns x_mm, y_mm, z_mm" if columns != MILLIMETRES else ""
        raise InputError(
            f"{where}: {', '.join(columns)} are {distance_m:.6g} m from the arm's origin, and a {arm.name} reaches "
            f"{arm.reach_m:.1f} m{remedy}"
        )
    return place


def _quaternion(where: str, row: Row) -> Array:
    quaternion = _numbers(where, row, QUATERNION)
    length = math.hypot(*quaternion)
    if abs(length - 1) > UNIT_TOLERANCE:
        names = ", ".join(QUATERNION)
        raise InputError(
            f"{where}: expected 7 finite numbers that are a pose, but {names} have length {length:.6g}, not 1"
        )
    return quaternion
