"""Cameras and the distortion of their images."""

__all__ = ["calibration_collector", "camera_node", "distortion_node", "free_cameras"]
