"""The numbers of a board at one moment, as bytes that can be computed again from the same record."""

__all__ = ["compute", "contents", "live", "store", "terminal"]
