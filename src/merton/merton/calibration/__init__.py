"""Where a camera stands, from pictures of a ChArUco board and the robot's poses."""

from merton.calibration.charuco import Board, Sighting
from merton.calibration.folder import add_shot, look_for, read_lens, read_poses
from merton.calibration.hand_eye import Calibration, Parent, PoseResidual, calibrate
from merton.calibration.lens import Lens, LensCheck, check_lens
from merton.calibration.sheet import write_sheet

__all__ = [
    "Board",
    "Calibration",
    "Lens",
    "LensCheck",
    "Parent",
    "PoseResidual",
    "Sighting",
    "add_shot",
    "calibrate",
    "check_lens",
    "look_for",
    "read_lens",
    "read_poses",
    "write_sheet",
]
