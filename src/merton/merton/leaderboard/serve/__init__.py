"""A leaderboard over HTTP: the static site, a form for submissions, and a JSON API.

tokens      the manufacturers that may submit
publisher   the snapshot and the pages that are served, renewed in the background
uploads     from a request to a verdict on a submission
models      the answers of the JSON API
api, pages  the operations
app         the application, and a port
"""

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
