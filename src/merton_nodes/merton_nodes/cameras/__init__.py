"""Cameras and the distortion of their images."""
