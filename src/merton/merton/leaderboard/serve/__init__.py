"""A leaderboard over HTTP: the static site, a form for submissions, and a JSON API."""

from __future__ import annotations

from merton.errors import missing

try:
    import python_multipart  # noqa: F401  (starlette reads forms with it)

    from merton.leaderboard.serve.app import create_app, run
except ModuleNotFoundError as _error:
    if _error.name not in ("fastapi", "python_multipart", "starlette", "uvicorn"):
        raise
    raise missing(_error.name, "serve", "serving a leaderboard") from None

__all__ = ["create_app", "run"]
