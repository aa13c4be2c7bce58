"""The embedded cell: physics and rendering in MuJoCo. Nothing outside this package imports mujoco."""
