"""The numbers of a board at one moment, as bytes that can be computed again from the same record."""

__all__ = ["by_metric", "compute", "contents", "groups", "inputs", "live", "ranges", "rows", "store", "terminal"]
