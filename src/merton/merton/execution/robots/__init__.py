"""Robots that carry out joint trajectories, one module each."""

__all__ = ["deviation", "gripper", "homing", "rtde", "safety_status", "urcap", "watchdog"]
