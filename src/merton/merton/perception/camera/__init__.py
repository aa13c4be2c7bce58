"""Sources of images other than the cell: a folder of files."""

from merton.perception.camera.folder import FolderCamera, Frame, d455_intrinsics

__all__ = ["FolderCamera", "Frame", "d455_intrinsics"]
