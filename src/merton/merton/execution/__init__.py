"""Execution: the gate before every motion, kinematics, the robots, and the Execution score."""

__all__ = ["braking", "gate", "kinematics", "robots", "score", "stillness", "trajectory"]
