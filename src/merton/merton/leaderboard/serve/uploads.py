"""Submissions over HTTP: the sender and the limits are checked, the answer is a receipt or a refusal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from merton.errors import MertonError
from merton.leaderboard.serve.tokens import Tokens
from merton.leaderboard.submissions.archive import MAX_ARCHIVE_BYTES
from merton.leaderboard.submissions.entrance import Refusal, RefusedError
from merton.leaderboard.submissions.receipts import Receipt
from merton.results.text import one_line
from merton.web.access import announced_bytes
from merton.web.hall import keep_place
from merton.web.places import Places
from merton.web.requests import bearer

MAX_UPLOAD_BYTES = MAX_ARCHIVE_BYTES + 64 * 1024
"""The longest body of a submission: the archive and the parts of the form around it."""
AT_ONCE = 4
"""Submissions that are checked at the same time; each may hold some 50 MB of memory."""
ARRIVING = 16
"""Submissions that arrive at the same time; each may hold a temporary file of `MAX_UPLOAD_BYTES`."""
UPLOAD_DEADLINE_S = 120.0
"""Limit of the time until a submission has arrived [s]; 16 MiB at 1.2 Mbit/s."""
BEFORE_TOKEN_BYTES = 64 * 1024
"""Size of the part of a form with which a needed token has to arrive [bytes]; else the form is not read on."""

RETRY_SHORTLY = {"Retry-After": "10"}
STATUS: dict[Refusal, int] = {"too large": 413, "invalid": 422, "not yours": 403, "limit": 409}
"""Kind of refusal of `rules.submit` to status of HTTP."""

_log = logging.getLogger("merton.leaderboard")


class Refused(Exception):
    """A submission that was not accepted: HTTP status, reason in one sentence, and headers for the answer."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers or {}


@dataclass(frozen=True)
class Sent:
    """A submission as it arrived: the archive, open at its beginning, and the token of the form (may be empty)."""

    archive: BinaryIO
    token: str


class Uploads:
    """Takes submissions, a few at a time.

    A submission that arrives slowly, or not at all, holds nothing that another one needs: it takes its place once its
    token is known, and gives it to a newcomer when all are taken; those without a token, on a server that needs none,
    as well.

    Args:
        submit: (archive, manufacturer or None) -> receipt; blocks; raises as `rules.submit` does.
        tokens: of the manufacturers that may submit; None if every client may.
        closed: why no submissions are taken, one sentence; None if they are.
    """

    def __init__(
        self, submit: Callable[[BinaryIO, str | None], Receipt], tokens: Tokens | None, closed: str | None
    ) -> None:
        self._submit, self.tokens, self.closed = submit, tokens, closed
        self._arriving: Places[asyncio.Future[FormData]] = Places(ARRIVING)
        self._busy = 0

    async def handle(self, request: Request) -> Receipt:
        """The receipt of the submission in a multipart form with the file `archive`, and perhaps a `token` before it.

        Raises:
            Refused: it was not accepted.
        """
        try:
            self._admit(request)
            async with self._received(request) as sent:
                manufacturer = self.manufacturer(bearer(request) or sent.token)
                self._refuse_if_busy()
                self._busy += 1
                try:
                    return await run_in_threadpool(self._checked_submit, sent.archive, manufacturer)
                finally:
                    self._busy -= 1
        except Refused as refused:
            _log.warning("submission refused with %d: %s", refused.status, one_line(refused.reason, 400))
            raise

    def _admit(self, request: Request) -> None:
        """Refuse all that can be refused before the body is read."""
        if self.closed:
            raise Refused(403, self.closed)
        if token := bearer(request):
            self.manufacturer(token)
        if announced_bytes(request.headers) > MAX_UPLOAD_BYTES:
            raise _too_long()
        if not request.headers.get("content-type", "").startswith("multipart/form-data"):
            raise Refused(415, "a submission is sent as multipart/form-data, with the file in the field 'archive'")
        self._refuse_if_busy()

    def _refuse_if_busy(self) -> None:
        if self._busy >= AT_ONCE:
            raise Refused(429, "too many submissions are checked at this moment; try again shortly", RETRY_SHORTLY)

    def manufacturer(self, token: str) -> str | None:
        """The owner of a token; None if no token is needed. Raises Refused for a token that is missing or unknown."""
        if self.tokens is None:
            return None
        if not token:
            raise Refused(
                401, "the request has no token; ask the operator of this server for one", {"WWW-Authenticate": "Bearer"}
            )
        name = self.tokens.owner(token)
        if name is None:
            raise Refused(401, "unknown token", {"WWW-Authenticate": "Bearer"})
        return name

    @contextlib.asynccontextmanager
    async def _received(self, request: Request) -> AsyncIterator[Sent]:
        """The form, read into a temporary file that is removed afterwards."""
        parsing = asyncio.ensure_future(self._parsed(request))
        try:
            await asyncio.wait({parsing}, timeout=UPLOAD_DEADLINE_S)
            if not parsing.done():
                raise Refused(408, f"the submission did not arrive within {UPLOAD_DEADLINE_S:.0f} s")
            if parsing.cancelled():
                raise Refused(429, "other submissions took the place of this one; try again shortly", RETRY_SHORTLY)
            form = parsing.result()
            try:
                archive, token = form.get("archive"), form.get("token")
                if not isinstance(archive, UploadFile):
                    raise Refused(422, "there is no file in the field 'archive'")
                yield Sent(archive.file, token.strip() if isinstance(token, str) else "")
            finally:
                await form.close()
        finally:
            self._arriving.leave(parsing)
            parsing.cancel()

    async def _parsed(self, request: Request) -> FormData:
        """The form as it arrives. It takes a place once its token is known, and counts its bytes."""

        async def counted() -> AsyncGenerator[bytes, None]:
            total, has_place = 0, self.tokens is None or bool(bearer(request))
            if has_place:
                self._take_place(request, ())
            async for chunk in request.stream():
                if not has_place and total + len(chunk) > BEFORE_TOKEN_BYTES:
                    rest = BEFORE_TOKEN_BYTES - total
                    yield chunk[:rest]  # after this the parser has the fields that stand before the archive
                    self._take_place(request, parser.items)
                    total, chunk, has_place = total + rest, chunk[rest:], True
                total += len(chunk)
                if total > MAX_UPLOAD_BYTES:
                    raise _too_long()
                yield chunk

        parser = MultiPartParser(request.headers, counted(), max_files=1, max_fields=4, max_part_size=1024)
        try:
            return await parser.parse()
        except MultiPartException as error:
            raise Refused(400, f"the form is broken: {error.message}") from None
        except ClientDisconnect:
            raise Refused(400, "the connection broke before the submission had arrived") from None

    def _take_place(self, request: Request, fields: Sequence[tuple[str, object]]) -> None:
        """Called in the task that reads the form; `fields` are those that have arrived."""
        token = bearer(request) or next((str(value) for name, value in fields if name == "token"), "").strip()
        if self.tokens is not None and not token:
            raise Refused(
                401,
                "no token stands before the archive: send it in the header Authorization, or as the form's first field",
                {"WWW-Authenticate": "Bearer"},
            )
        owner = self.manufacturer(token)
        reading = asyncio.current_task()
        assert reading is not None
        address = request.client.host if request.client else ""
        gives_way = self._arriving.enter(reading, owner or address, owner is not None)
        if gives_way is not None:
            gives_way.cancel()
        if owner is not None:
            keep_place(request.scope)

    def _checked_submit(self, archive: BinaryIO, manufacturer: str | None) -> Receipt:
        try:
            return self._submit(archive, manufacturer)
        except RefusedError as error:
            raise Refused(STATUS[error.kind], str(error)) from None
        except MertonError as error:  # a fault of the record: its text is for the log, not for the sender
            _log.error("a submission could not be stored: %s", error)
            raise Refused(
                503, "the submission could not be stored, so it does not count; try again later", {"Retry-After": "60"}
            ) from None


def _too_long() -> Refused:
    return Refused(413, f"a submission has at most {MAX_ARCHIVE_BYTES >> 20} MiB")
