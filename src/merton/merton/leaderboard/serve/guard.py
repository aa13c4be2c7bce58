"""What stands before every page: names of this server, origins of what is sent to it, sizes, and headers."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from merton.web import HEADERS, announced_bytes, is_address, problem

MAX_BODY_BYTES = 64 * 1024
"""The longest body of a request that is no submission; nothing reads it."""

POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Content-Security-Policy of every answer: files of this server, and nothing written into a page."""

_HEADERS = {"Content-Security-Policy": POLICY, **HEADERS}


class Guard:
    """Refuses requests under a foreign host name or with a long body, and puts the security headers on every answer.

    A web page elsewhere can have its own name resolve to this machine (DNS rebinding) and would then read and write
    here as if it were ours; but the browser still says which name it used. Addresses cannot be rebound, so they pass.

    Args:
        app: what is guarded.
        names: further host names of this server, besides "localhost" and addresses.
        uploads: paths whose POST may be longer; whoever reads those counts.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str], uploads: Iterable[str]) -> None:
        self.app = app
        self._names = {"localhost", *(name.lower() for name in names)}
        self._uploads = frozenset(uploads)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, as ASGI has it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refused(scope)
        await (refused or self.app)(scope, receive, send_with_headers)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self._is_ours(headers.get("host", "")):
            return problem(421, "this server does not go by that name; whoever runs it can add it with --name")
        is_upload = scope["method"] == "POST" and scope["path"] in self._uploads
        if not is_upload and announced_bytes(headers) > MAX_BODY_BYTES:
            return problem(413, f"only submissions may be longer than {MAX_BODY_BYTES} bytes")
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._names or is_address(name)
