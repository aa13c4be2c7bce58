"""The pose of a camera, from pictures of a ChArUco board and the robot's poses."""

from merton.calibration.charuco import CharucoBoard, Sighting
from merton.calibration.folder import add_shot, find_board, read_lens
from merton.calibration.hand_eye import Calibration, calibrate
from merton.calibration.lens import Lens, LensCheck, check_lens
from merton.calibration.mistakes import check_place
from merton.calibration.poses import read_poses
from merton.calibration.problem import Parent, PoseResidual
from merton.calibration.sheet import write_sheet

__all__ = [
    "Calibration",
    "CharucoBoard",
    "Lens",
    "LensCheck",
    "Parent",
    "PoseResidual",
    "Sighting",
    "add_shot",
    "calibrate",
    "check_lens",
    "check_place",
    "find_board",
    "read_lens",
    "read_poses",
    "write_sheet",
]
