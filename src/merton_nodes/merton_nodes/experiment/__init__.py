"""Experiments over the graph: trials, scores, the record."""
