"""Executed trials as demonstrations in the dataset format of LeRobot: pictures, states and actions at an even rate."""

__all__ = ["from_recording", "from_run", "pictures"]
