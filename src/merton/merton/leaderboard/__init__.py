"""Boards of agents: computed from a record or a table, on the terminal, as pages and over HTTP; and submissions."""

__all__ = ["board", "coverage", "published", "serve", "site", "snapshot", "submissions", "terminal"]
