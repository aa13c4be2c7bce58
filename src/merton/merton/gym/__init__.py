"""Gymnasium environments with distorted observations, and a recorder of their episodes."""

from merton.errors import needing

with needing("gym", "merton.gym"):
    import gymnasium  # noqa: F401  # so that one sentence names it and the command that installs it

from merton.gym.distorted import Distorted, DistortedVector
from merton.gym.recorded import Recorded, RecordedVector

__all__ = ["Distorted", "DistortedVector", "Recorded", "RecordedVector", "distorted", "found", "recorded", "schedule"]
