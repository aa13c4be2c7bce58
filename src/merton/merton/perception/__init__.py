"""Perception: distortions of images, cameras, datasets, image quality."""

__all__ = ["attributes", "camera", "dataset", "distortion", "image_size", "images", "quality", "transparency", "videos"]
