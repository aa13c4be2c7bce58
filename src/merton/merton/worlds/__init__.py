"""Worlds: places where trials happen, of this package or in a process and a virtual environment of their own."""

__all__ = ["base", "client", "description", "entry", "environments", "link"]
