"""A study over HTTP: the pages of its raters and of its operator, and the API behind them."""

from __future__ import annotations

from merton.errors import missing

try:
    from merton_studies.people.serve.app import create_app, run
except ModuleNotFoundError as _error:
    if _error.name not in ("fastapi", "starlette", "uvicorn"):
        raise
    raise missing(_error.name, "serve", "serving a study") from None

__all__ = ["create_app", "run"]
