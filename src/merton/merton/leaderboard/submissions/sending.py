"""Sending a submission or an application to the server of a leaderboard that runs elsewhere."""

from __future__ import annotations

import json
import secrets
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from merton.errors import InfrastructureError, InputError
from merton.hosts import is_loopback_url
from merton.leaderboard.submissions import archive
from merton.leaderboard.submissions.application import application_json, parse_application
from merton.leaderboard.submissions.applications import ApplicationReceipt
from merton.leaderboard.submissions.manifest import read_submission
from merton.leaderboard.submissions.receipts import Receipt
from merton.results.tables import file_bytes
from merton.results.text import one_line

Answer = TypeVar("Answer")

TIMEOUT_S = 120.0
"""Limit of the time between two parts of the server's answer [s]."""
MAX_REPLY_BYTES = 2**20
TOKEN_VARIABLE = "MERTON_TOKEN"
"""Environment variable with the manufacturer's token; on a command line every user of the machine could read it."""

_SERVER_FAULTS = (408, 429)
"""Statuses below 500 that are not the submission's fault."""


def is_server(where: str) -> bool:
    """Whether a user named the address of a server."""
    return where.startswith(("http://", "https://"))


def send(address: str, source: Path, token: str | None = None) -> Receipt:
    """Check a submission, send it, and return the server's receipt.

    Args:
        address: of the board, such as "http://127.0.0.1:8080".
        source: a .zip or a folder.
        token: the manufacturer's, if the server needs one.

    Raises:
        InputError: the submission is invalid (nothing was sent then), or the server refuses it.
        InfrastructureError: the server cannot be reached, is busy or fails. If its answer was lost, sending the same
            archive again gives the receipt of the first time.
    """
    data = archive.fetch(source)
    read_submission(archive.unpack(data))
    boundary = secrets.token_hex(16)
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="archive"; filename="submission"\r\n\r\n'
    body = b"".join((head.encode(), data, f"\r\n--{boundary}--\r\n".encode()))
    kind = f"multipart/form-data; boundary={boundary}"
    return _posted(address, "submissions", body, kind, token, Receipt, "submission")


def send_application(address: str, source: Path, token: str | None = None) -> ApplicationReceipt:
    """Check an application, send it, and return the server's receipt; arguments and errors as of `send`."""
    content = parse_application(file_bytes(source), source.name)
    body = application_json(content).encode()
    return _posted(address, "applications", body, "application/json", token, ApplicationReceipt, "application")


def _posted(
    address: str, operation: str, body: bytes, kind: str, token: str | None, answer: type[Answer], noun: str
) -> Answer:
    """The answer of an operation of the server, a receipt of the type `answer`; `kind`: media type of the body."""
    headers = {"Content-Type": kind, "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        request = urllib.request.Request(f"{address.rstrip('/')}/api/{operation}", data=body, headers=headers)
        with _opener(address).open(request, timeout=TIMEOUT_S) as reply:
            return TypeAdapter(answer).validate_json(reply.read(MAX_REPLY_BYTES))
    except urllib.error.HTTPError as error:
        reason = _reason(error, token)
        if error.code >= 500 or error.code < 400 or error.code in _SERVER_FAULTS:
            raise InfrastructureError(f"{address} could not take the {noun}: {reason}") from None
        raise InputError(f"{address} refuses the {noun}: {reason}") from None
    except ValidationError:
        raise InfrastructureError(f"{address} did not answer with a receipt; is it a Merton board?") from None
    except (OSError, ValueError) as error:
        reason = one_line(getattr(error, "reason", error), 200)
        raise InfrastructureError(f"cannot reach {address}: {reason}") from None


def _opener(address: str) -> urllib.request.OpenerDirector:
    """Uses the proxy of the environment, except for a server on this machine."""
    proxies = [urllib.request.ProxyHandler({})] if is_loopback_url(address) else []
    return urllib.request.build_opener(_NoRedirects, *proxies)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Keeps the token from other servers."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _reason(error: urllib.error.HTTPError, token: str | None) -> str:
    """The reason that the server gives, without the token, or its status."""
    try:
        detail = json.loads(error.read(MAX_REPLY_BYTES))["detail"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        detail = f"HTTP {error.code}"
    return one_line(str(detail).replace(token, "<the token>") if token else detail, 400)
