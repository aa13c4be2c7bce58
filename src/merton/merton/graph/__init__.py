"""The node graph: which nodes there are, and how they are started and watched without `ros2 launch`."""

__all__ = ["lab", "spec", "supervisor"]
