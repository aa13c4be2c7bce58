"""Twins of a recording: its pictures distorted, the policy asked again, and the gate's motion of each answer."""

__all__ = [
    "agreement",
    "dataset",
    "executed",
    "finding",
    "motion",
    "page",
    "recorded",
    "replay",
    "summary",
    "tables",
    "twin",
]
