"""Datasets in LeRobot's format, versions 2.0 to 3.0, without LeRobot: their paths and names, read, and distorted."""

__all__ = ["conditions", "distorted", "folder", "layout", "statistics"]
