"""Sources of images besides the cell: RealSense cameras, recordings of a run, folders of files."""

from merton.perception.camera.folder import FolderCamera, d455_intrinsics
from merton.perception.camera.frame import CameraFrame

__all__ = [
    "CameraFrame",
    "FolderCamera",
    "bag",
    "bag_topics",
    "d455_intrinsics",
    "decoding",
    "folder",
    "frame",
    "pairing",
    "realsense",
    "realsense_driver",
]
