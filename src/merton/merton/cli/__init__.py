"""The `merton` command."""

__all__ = ["main"]
