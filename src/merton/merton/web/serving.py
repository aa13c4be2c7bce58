"""An application on a port: the acceptor before it, the hall around it, the form of its refusals."""

from __future__ import annotations

import socket
from collections.abc import Callable

from merton.errors import needing
from merton.web.acceptor import Acceptor, affordable
from merton.web.access import problem
from merton.web.hall import Hall

with needing("serve", "a served page"):
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

SHUTDOWN_S = 5
"""Longest time that requests go on after Ctrl-C [s]."""
CONNECTIONS = 200
"""Connections with a whole head at the same time; see `merton.web.places` for what happens beyond."""


def address_of(bound: socket.socket, host: str) -> str:
    """The address of a server that listens on a host's socket, as a browser takes it."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{bound.getsockname()[1]}/"


def serve(app: ASGIApp, bound: socket.socket, known: Callable[[str], bool]) -> None:
    """Serve an application on a bound socket until Ctrl-C.

    Args:
        app: the application.
        bound: not listening yet; closed at the end.
        known: whether a token is valid; connections with such a token keep their places.
    """
    hall = Hall(app, affordable(CONNECTIONS), ws="none", timeout_graceful_shutdown=SHUTDOWN_S)
    acceptor = Acceptor(bound, (hall,), lambda head: (hall, known(head.token)))
    acceptor.start()
    try:
        hall.run()
    finally:
        acceptor.end()


def add_refusals(app: Starlette) -> None:
    """All refusals of an application, and its faults, have one form: {"detail": one sentence}."""
    app.add_exception_handler(HTTPException, _refusal)
    app.add_exception_handler(Exception, _fault)


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 304:
        return Response(status_code=304, headers=error.headers)
    return problem(error.status_code, str(error.detail), dict(error.headers or {}))


async def _fault(request: Request, error: Exception) -> Response:
    return problem(500, "a fault of this server; see its log")
