"""Twins of a dataset of demonstrations: its frames distorted, any policy asked again, in the data set's own units."""

__all__ = ["asked", "page", "scores", "tables"]
