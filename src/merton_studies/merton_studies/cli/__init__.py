"""The commands of the studies, which the `merton` command finds by an entry point."""

__all__ = ["commands"]
