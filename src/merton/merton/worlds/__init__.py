"""Worlds: places where trials happen, of this package or in a process and a virtual environment of their own."""

__all__ = ["adding", "base", "checking", "client", "description", "entry", "environments", "link", "serving"]
