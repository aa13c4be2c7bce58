"""A leaderboard over HTTP: the static site, a form for submissions, and a JSON API."""

from __future__ import annotations

from merton.errors import needing

with needing("serve", "serving a leaderboard"):
    import python_multipart  # noqa: F401  (starlette reads forms with it)

    from merton.leaderboard.serve.app import create_app, run

__all__ = ["create_app", "run"]
