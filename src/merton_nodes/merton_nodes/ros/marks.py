"""A text that a command to arm or gripper bears, in a field that the controllers of ros2_control do not read."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

from std_msgs.msg import Float64MultiArray, MultiArrayDimension
from trajectory_msgs.msg import JointTrajectory

Command: TypeAlias = JointTrajectory | Float64MultiArray
Message = TypeVar("Message", JointTrajectory, Float64MultiArray)


def marked(command: Message, text: str) -> Message:
    """The command with the text written into it: the frame of a trajectory's header, the label of the numbers."""
    if isinstance(command, JointTrajectory):
        command.header.frame_id = text
    else:
        size = len(command.data)
        command.layout.dim = [MultiArrayDimension(label=text, size=size, stride=size)]
    return command


def mark_of(command: Command) -> str:
    """The text; empty for a command without one."""
    if isinstance(command, JointTrajectory):
        return str(command.header.frame_id)
    return str(command.layout.dim[0].label) if command.layout.dim else ""
