"""What stands before every page: names of this server, origins of what is sent to it, sizes, and headers."""

from __future__ import annotations

import ipaddress
import json
import math
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 64 * 1024
"""The longest body of a request that is no submission; nothing reads it."""

POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Content-Security-Policy of every answer: files of this server, and nothing written into a page."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # "no-referrer" would make browsers hide the origin of forms, which is how strangers' forms are told
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


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
        return name in self._names or _is_address(name)


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """A refusal as JSON, in the form of all errors of the API: {"detail": one sentence}."""
    return Response(json.dumps({"detail": detail}), status, headers, "application/json")


def announced_bytes(headers: Headers) -> float:
    """The length of a body as it is announced; infinite for what is no length, 0 if nothing is said."""
    length = headers.get("content-length", "0")
    return int(length) if length.isdecimal() and len(length) < 20 else math.inf


def is_from_elsewhere(headers: Headers) -> bool:
    """Whether a browser sends this on behalf of another site (cross-site request forgery).

    Browsers say so themselves in Sec-Fetch-Site or Origin; what sends neither is no browser, and nobody's session.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()


def is_loopback(host: str) -> bool:
    """Whether `host`, a name or an address to listen on, can be reached from this machine alone."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
