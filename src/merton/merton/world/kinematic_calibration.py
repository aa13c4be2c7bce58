"""The kinematic calibration of one arm: where its joints stand, as measured in the factory. Metres, radians.

Every arm of Universal Robots is measured, and its controller computes with the result; the published lengths are those
of the drawing, and put the tool up to a centimetre elsewhere. `ur_calibration` of the UR ROS 2 driver reads the numbers
out of the controller and writes the file that is read here, which the driver takes as `kinematics_params_file`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from math import pi
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from merton.config import load
from merton.errors import InputError
from merton.world.arms import Arm, Lengths
from merton.world.geometry import Matrix, from_rpy, inverse, rotation_vector_of

LINKS = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")
"""The links that the joints turn, by their names in the file."""

FARTHEST_M, FARTHEST_RAD = 0.02, 0.05
"""A joint this far from its place on the drawing is one of another model, or of a file that is not corrected.

Ours: calibrations move single joints by a millimetre or two, and the tool by up to ten; the shapes that the gate knows
are fixed to the frames of the links, and its margin is 5 mm."""

Origin = tuple[float, float, float, float, float, float]
"""Position [m] and fixed-axis roll, pitch, yaw [rad]."""

_Number = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True)
class KinematicCalibration:
    """The pose of every link in the one before, at joint angle 0; the first in UR's `base`, the last is `tool0`.

    Attributes:
        origins: of the links in the order of `LINKS`.
    """

    origins: tuple[Origin, Origin, Origin, Origin, Origin, Origin]

    @cached_property
    def parent_from_link(self) -> Matrix:
        """The poses as matrices, (6, 4, 4)."""
        return np.array([from_rpy(origin[:3], origin[3:]) for origin in self.origins])

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits of its numbers: runs and reports tell arms by it."""
        return hashlib.sha256(np.array(self.origins).tobytes()).hexdigest()[:12]


def nominal(lengths: Lengths) -> KinematicCalibration:
    """The joints of an arm as drawn."""
    return KinematicCalibration(
        (
            (0.0, 0.0, lengths.d1, 0.0, 0.0, 0.0),
            (0.0, 0.0, 0.0, pi / 2, 0.0, 0.0),
            (lengths.a2, 0.0, 0.0, 0.0, 0.0, 0.0),
            (lengths.a3, 0.0, lengths.d4, 0.0, 0.0, 0.0),
            (0.0, -lengths.d5, 0.0, pi / 2, 0.0, 0.0),
            (0.0, lengths.d6, 0.0, -pi / 2, 0.0, 0.0),
        )
    )


class _Link(BaseModel):
    """A link of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    x: _Number
    y: _Number
    z: _Number
    roll: _Number
    pitch: _Number
    yaw: _Number


class _Links(BaseModel):
    """The links of the file, and the hash that the driver compares with the controller's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    shoulder: _Link
    upper_arm: _Link
    forearm: _Link
    wrist_1: _Link
    wrist_2: _Link
    wrist_3: _Link
    hash: str | None = None


class _File(BaseModel):
    """The file of `ur_calibration`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kinematics: _Links


def read_calibration(path: Path) -> KinematicCalibration:
    """The calibration in a file of `ur_calibration`; raises FileError that names file, line and key."""
    links = load(path, _File).kinematics
    origins: Any = tuple(tuple(getattr(links, link).model_dump().values()) for link in LINKS)
    return KinematicCalibration(origins)


def check_is_of(calibration: KinematicCalibration, arm: Arm) -> None:
    """Raise InputError unless every joint stands near its place on the drawing of the arm."""
    drawn = nominal(arm.lengths).parent_from_link
    for link, here, there in zip(LINKS, calibration.parent_from_link, drawn, strict=True):
        moved = inverse(there) @ here
        shift_m, turn_rad = np.linalg.norm(moved[:3, 3]), np.linalg.norm(rotation_vector_of(moved))
        if shift_m > FARTHEST_M or turn_rad > FARTHEST_RAD:
            raise InputError(
                f"the calibration is not of a {arm.name}: its {link} is {shift_m * 1e3:.1f} mm and {turn_rad:.3f} rad "
                f"from its place, more than {FARTHEST_M * 1e3:g} mm or {FARTHEST_RAD:g} rad"
            )
