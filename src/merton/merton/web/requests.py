"""The parts of a request that every server reads: the token, and a JSON object."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from merton.errors import needing

with needing("serve", "a served page"):
    from starlette.requests import ClientDisconnect, Request

DEEPEST = 32
"""Of objects and lists within one another. Ours: no request of these servers needs five."""


def bearer(request: Request) -> str:
    """The token in the header Authorization; empty if there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


async def json_object(request: Request, longest: int, limit_s: float) -> dict[str, Any] | None:
    """A JSON object from the body; None if it is not one, too long, deeper than `DEEPEST`, or does not arrive.

    Args:
        request: whose body has not been read.
        longest: body [bytes].
        limit_s: how long it may take to arrive [s].
    """
    data = b""

    async def read() -> bytes:
        nonlocal data
        async for chunk in request.stream():
            data += chunk
            if len(data) > longest:
                return b""
        return data

    try:
        document = json.loads(await asyncio.wait_for(read(), limit_s))
    except (ValueError, RecursionError, ClientDisconnect, asyncio.TimeoutError, TimeoutError):
        return None
    return document if isinstance(document, dict) and depth(document) <= DEEPEST else None


def depth(document: Any) -> int:
    """Number of objects and lists within one another at the deepest place of a JSON value; 0 for a plain one."""
    found, level = 0, [document]
    while level := [one for one in level if isinstance(one, dict | list)]:
        found += 1
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]
    return found
