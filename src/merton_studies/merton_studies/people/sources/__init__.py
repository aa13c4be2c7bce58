"""The sources of a project's items: one module for each key of `items`."""

from merton_studies.people.sources.reading import check_still_there, items_of, items_sha256

__all__ = ["check_still_there", "items_of", "items_sha256", "run"]
