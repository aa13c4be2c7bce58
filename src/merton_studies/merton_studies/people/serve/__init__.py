"""A study over HTTP: the pages of its raters and of its operator, and the API behind them."""

from __future__ import annotations

from merton.errors import needing

with needing("serve", "serving a study"):
    from merton_studies.people.serve.app import create_app, run

__all__ = ["create_app", "run"]
