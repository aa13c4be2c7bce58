"""Scores that manufacturers measured and send as archives: packing, checks, rules."""

__all__ = ["archive", "datasets", "evaluated", "evaluation", "manifest", "packing", "receipts", "rules", "sending"]
