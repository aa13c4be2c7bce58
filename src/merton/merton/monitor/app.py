"""The pages, the buttons and the WebSocket, put together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import merton
from merton.errors import needing
from merton.monitor import session
from merton.monitor.buttons import LONGEST_BODY, Buttons, Controls
from merton.monitor.hub import Hub
from merton.monitor.presses import PressLog
from merton.web.access import AccessMiddleware, Tokens
from merton.web.requests import bearer

with needing("serve", "the monitor"):
    from fastapi import FastAPI, Request, WebSocket
    from fastapi.staticfiles import StaticFiles
    from starlette.responses import FileResponse, JSONResponse, Response

PAGE = Path(__file__).with_name("page")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: files and connections of this server alone, nothing written into a page."""
STOP = ("POST", "/api/stop")
"""Method and path of a press of the stop button."""
MOST_BROWSERS = 20
"""That are shown the content at the same time; one without a valid token is not among them."""


def create_app(
    hub: Hub, controls: Controls, log: PressLog, *, tokens: Tokens | None = None, names: Iterable[str] = ()
) -> FastAPI:
    """The operator's screen as an ASGI application.

    Args:
        hub: the content.
        controls: carry out presses.
        log: keeps presses on disk.
        tokens: of the users who may view and press; None if every client of this server may.
        names: host names of this server, besides "localhost" and addresses.
    """
    app = FastAPI(title="Merton monitor", version=merton.__version__, openapi_url=None)
    buttons = Buttons(controls, log, hub, tokens)
    browsers = session.Browsers(MOST_BROWSERS)

    @app.get("/")
    async def page() -> Response:
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    @app.get("/api/session")
    async def who(request: Request) -> Response:
        """Whether a token is needed, and the owner of the one in the request."""
        owner = buttons.owner(bearer(request))
        return JSONResponse({"needs_token": buttons.needs_token, "allowed": owner is not None, "who": owner or ""})

    app.post(STOP[1])(buttons.stop)
    app.post("/api/reset")(buttons.reset)
    app.post("/api/confirm")(buttons.confirm)
    app.post("/api/arranged")(buttons.arranged)
    app.post("/api/record")(buttons.record)

    @app.websocket("/ws")
    async def watch(socket: WebSocket) -> None:
        await session.serve(socket, hub, buttons.may_view, browsers)

    app.mount("/page", StaticFiles(directory=PAGE))
    app.add_middleware(AccessMiddleware, policy=POLICY, names=tuple(names), longest_body=LONGEST_BODY)
    return app
