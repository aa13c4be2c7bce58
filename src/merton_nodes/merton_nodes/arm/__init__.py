"""The arm: the node that carries actions out, and the stop."""

__all__ = ["arm_node"]
