"""The ROS 2 nodes of Merton: each wires topics to one library object and holds no algorithm of its own."""

__all__ = ["arm", "cameras", "cell", "experiment", "models", "monitor", "recording", "ros"]
