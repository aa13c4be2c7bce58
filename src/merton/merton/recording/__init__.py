"""Runs recorded as MCAP: writing that never blocks, and reading also after a crash; and videos."""

__all__ = ["bag_files", "entry", "images", "messages", "reader", "video", "writer"]
