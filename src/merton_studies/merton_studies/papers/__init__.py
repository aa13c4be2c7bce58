"""The printed numbers of the papers that Merton follows, recomputed, each with a verdict."""

__all__ = ["page", "reproduce"]
