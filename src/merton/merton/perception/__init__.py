"""Perception: distortions of images, cameras, datasets, image quality."""

__all__ = ["camera", "dataset", "distortion", "image_size", "images", "quality"]
