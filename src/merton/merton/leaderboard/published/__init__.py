"""Boards by the published rules of Embodied Arena and of world models as evaluators."""

__all__ = ["arena", "items", "joining", "tables", "taxonomy", "world_model"]
