"""The cells: MuJoCo, Gazebo, the lab."""

__all__ = [
    "gazebo_cell_node",
    "lab_cell_node",
    "messages",
    "mujoco_cell_node",
    "operator_desk",
    "ur_driver_node",
    "ur_robot_node",
]
