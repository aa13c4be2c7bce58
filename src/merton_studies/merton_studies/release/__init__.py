"""Publications of a lab: datasets with a card and a Croissant file, demonstrations for LeRobot."""

__all__ = ["card", "hub", "lerobot", "licences"]
