"""Scores that manufacturers measured and send as archives, and applications that the host evaluates: checks, rules."""

__all__ = [
    "application",
    "applications",
    "archive",
    "datasets",
    "entrance",
    "evaluated",
    "evaluation",
    "manifest",
    "packing",
    "receipts",
    "rules",
    "sending",
]
