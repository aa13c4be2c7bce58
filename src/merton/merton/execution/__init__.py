"""Execution: whether and how the arm moves, with which hardware, and the score of where it ends."""

__all__ = ["gate", "kinematics", "robots", "score", "stillness", "trajectory"]
