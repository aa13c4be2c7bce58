"""Runs recorded as MCAP: writing that never blocks, and reading also after a crash."""

__all__ = ["bag_files", "entry", "images", "messages", "reader", "writer"]
