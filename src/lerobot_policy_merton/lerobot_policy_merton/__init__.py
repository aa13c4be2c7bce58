"""The policy type `merton` of LeRobot: any policy, shown distorted pictures."""

from lerobot_policy_merton.configuration_merton import MertonConfig
from lerobot_policy_merton.processor_merton import DistortPicturesStep

__all__ = ["DistortPicturesStep", "MertonConfig"]
