"""Readers of published benchmarks into a pool of questions."""

__all__ = ["importers"]
