"""Recordings of the graph."""

__all__ = ["recorder_node", "rescore_recording"]
