"""Checks of host and origin, security headers, tokens of served applications, and a port to listen on."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from merton.config import Model, load, text_like
from merton.errors import InputError, needing
from merton.hosts import is_address

with needing("serve", "a served page"):
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

Sha256 = Annotated[str, text_like(r"^[0-9a-f]{64}$", "the 64 digits 0 to 9 and a to f of a SHA-256")]

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # "no-referrer" would make browsers hide the origin of a request, by which those of foreign pages are recognised
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Headers of every answer, beside its Content-Security-Policy."""


class AccessMiddleware:
    """Refuses requests under a foreign host name, from another site's page or with a long body; adds headers.

    A foreign web page can let its own host name resolve to this machine (DNS rebinding), so that the browser treats
    this server as part of that page's site. But the browser still sends that host name, so such requests are refused.
    Addresses cannot be rebound, so they pass.

    Args:
        policy: Content-Security-Policy of every answer.
        names: further host names of this server, besides "localhost" and addresses.
        longest_body: of a request [bytes].
        uploads: paths whose POST may be longer; their handlers limit it.
    """

    def __init__(
        self,
        app: ASGIApp,
        policy: str,
        names: Iterable[str] = (),
        longest_body: int = 4096,
        uploads: Iterable[str] = (),
    ) -> None:
        self.app = app
        self._headers = {"Content-Security-Policy": policy, **HEADERS}
        self._names = {"localhost", *(name.lower() for name in names)}
        self._longest_body, self._uploads = longest_body, frozenset(uploads)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection. A WebSocket that is refused gets status 403 and is never opened."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refused(scope)
        if refused is None:
            await self.app(scope, receive, send_with_headers)
        elif scope["type"] == "websocket":
            await receive()  # websocket.connect
            await send({"type": "websocket.close", "code": 1008, "reason": "refused"})
        else:
            await refused(scope, receive, send_with_headers)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self._is_ours(headers.get("host", "")):
            return problem(421, "this server does not go by that name; it can be added with --name")
        if (scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")) and is_from_elsewhere(headers):
            return problem(403, "this was sent by another site's page; open the page of this server")
        is_upload = scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in self._uploads
        if not is_upload and announced_bytes(headers) > self._longest_body:
            return problem(413, f"no more than {self._longest_body} bytes are taken here")
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._names or is_address(name)


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """A refusal as JSON: {"detail": one sentence}."""
    return Response(json.dumps({"detail": detail}), status, headers, "application/json")


def announced_bytes(headers: Headers) -> float:
    """The length of a body as its header states it; 0 without the header, infinite if the header holds no length."""
    length = headers.get("content-length", "0")
    return int(length) if length.isdecimal() and len(length) < 20 else math.inf


def is_from_elsewhere(headers: Headers) -> bool:
    """Whether a browser sends this on behalf of another site (cross-site request forgery).

    Browsers say so themselves in Sec-Fetch-Site or Origin. A client that sends neither header is not a browser, so it
    carries no session that could be abused.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()


def listening(host: str, port: int) -> socket.socket:
    """A bound TCP socket; port 0 takes a free one. Raises InputError if that is not possible."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
        return bound
    except OSError as error:
        raise InputError(f"cannot listen on {host} port {port}: {error.strerror or error}") from None


class TokenFile(Model):
    """A file of tokens: owner to the SHA-256 of the owner's token in 64 lower-case hexadecimal digits."""

    tokens: Annotated[dict[Annotated[str, Field(min_length=1)], Sha256], Field(min_length=1)]


class Tokens:
    """The tokens of a file, read once; raises InputError for a file that is not as `TokenFile` says."""

    def __init__(self, path: Path) -> None:
        self._hashes = load(path, TokenFile).tokens
        self.owners = tuple(self._hashes)

    def owner(self, token: str) -> str | None:
        """The owner of a token; None if it is unknown. Every token takes the same time, so timing reveals nothing."""
        digest = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
        found = None
        for name, known in self._hashes.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found
