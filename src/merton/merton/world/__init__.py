"""The types that all stages share: the cell, its tasks, observations, actions, geometry."""

__all__ = [
    "action",
    "action_space",
    "arms",
    "camera_info",
    "cell",
    "geometry",
    "joint_state",
    "kinematic_calibration",
    "linkage",
    "motion",
    "nouns",
    "observation",
    "opencv",
    "shapes",
    "splits",
    "tasks",
]
