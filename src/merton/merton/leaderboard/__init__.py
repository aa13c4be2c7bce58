"""Boards of agents: computed from a record or a table, on the terminal, as pages and over HTTP; and submissions."""

__all__ = [
    "board",
    "capabilities",
    "coverage",
    "preferences",
    "published",
    "rate",
    "serve",
    "site",
    "snapshot",
    "submissions",
    "terminal",
]
