"""Gymnasium environments with distorted observations, and a recorder of their episodes."""

from merton.errors import needing

with needing("gym", "merton.gym"):
    from gymnasium.vector import AutoresetMode  # noqa: F401  # 1.1 or later; one sentence names what installs it

from merton.gym.distorted import Distorted, DistortedVector
from merton.gym.recorded import Recorded, RecordedVector

__all__ = ["Distorted", "DistortedVector", "Recorded", "RecordedVector", "distorted", "found", "recorded", "schedule"]
