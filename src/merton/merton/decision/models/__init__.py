"""Policies, one module each, and the conventions in which they speak of actions."""

__all__ = ["base", "convention_entry", "conventions", "images", "openpi", "openvla_rest", "oracle", "rows", "segments"]
