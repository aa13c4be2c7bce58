"""What every page that Merton serves shares: whose name it goes by, who sent a request, headers, tokens, a port."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import math
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from merton.config import Model, load
from merton.errors import InputError

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # "no-referrer" would make browsers hide the origin of what they send, which is how strangers' pages are told
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Of every answer, beside its Content-Security-Policy."""


class Doorkeeper:
    """Refuses what comes under a foreign host name, from another site's page or with a long body; adds headers.

    A web page elsewhere can have its own name resolve to this machine (DNS rebinding) and would then read and write
    here as if it were ours; but the browser still says which name it used. Addresses cannot be rebound, so they pass.

    Args:
        app: what is guarded.
        policy: Content-Security-Policy of every answer.
        names: further host names of this server, besides "localhost" and addresses.
        longest_body: more bytes than this are not taken.
        uploads: paths whose POST may be longer; whoever reads those counts.
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
        """One connection, as ASGI has it. A WebSocket that is refused gets status 403 and is never opened."""
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
            return problem(421, "this server does not go by that name; whoever runs it can add it with --name")
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
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def listening(host: str, port: int) -> socket.socket:
    """A bound TCP socket; port 0 takes a free one. Raises InputError where nobody can listen."""
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
        """Whose token this is; None for nobody's. Takes as long for every token, so none can be guessed bit by bit."""
        digest = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
        found = None
        for name, known in self._hashes.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found


def is_address(text: str) -> bool:
    """Whether this is an IP address, version 4 or 6."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
