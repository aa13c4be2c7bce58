"""Sources of images other than the cell: RealSense cameras, recordings of a run, folders of files."""

from merton.perception.camera.folder import FolderCamera, d455_intrinsics
from merton.perception.camera.frame import Frame

__all__ = ["FolderCamera", "Frame", "d455_intrinsics"]
