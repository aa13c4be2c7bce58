"""The embedded cell: physics and rendering in MuJoCo. Nothing outside this package imports mujoco."""

__all__ = [
    "cameras",
    "cell",
    "delay",
    "gazebo",
    "gazebo_props",
    "imaging",
    "layout",
    "look",
    "model",
    "props",
    "scene",
    "sensor",
    "stereo",
    "success",
    "tabletop",
    "varied",
    "varied_model",
]
