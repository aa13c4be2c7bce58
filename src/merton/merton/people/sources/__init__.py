"""Where the items of a project come from: one module for each key of `items`."""

from merton.people.sources.reading import items_of, items_sha256

__all__ = ["items_of", "items_sha256", "run"]
