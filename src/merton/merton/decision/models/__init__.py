"""Policies, one module each, and the conventions in which they speak of actions."""

__all__ = ["base", "conventions", "expert", "openpi", "openvla_rest", "tiny_vla"]
