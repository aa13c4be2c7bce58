"""What every server reads from a request: the token, and a JSON object."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request


def bearer(request: Request) -> str:
    """The token in the header Authorization; empty if there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


async def json_object(request: Request, longest: int, limit_s: float) -> dict[str, Any] | None:
    """A JSON object from the body; None if it is not one, too long, or does not arrive.

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
    return document if isinstance(document, dict) else None
