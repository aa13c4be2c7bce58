"""The cells: MuJoCo, Gazebo, the lab."""
