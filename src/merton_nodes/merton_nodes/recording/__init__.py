"""Recordings of the graph."""
