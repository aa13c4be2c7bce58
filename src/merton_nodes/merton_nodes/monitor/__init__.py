"""The operator's page, fed from the graph."""

__all__ = ["monitor_node"]
