"""The whole application: `create_app` for another ASGI server, `run` for `merton leaderboard serve`."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import Response

import merton
from merton.hosts import is_loopback
from merton.leaderboard.published.tables import Tables
from merton.leaderboard.serve import api, applications, pages
from merton.leaderboard.serve.models import describe_attributes
from merton.leaderboard.serve.publisher import Publisher
from merton.leaderboard.serve.tokens import Tokens
from merton.leaderboard.serve.uploads import Uploads
from merton.leaderboard.submissions import rules
from merton.leaderboard.submissions.applications import ApplicationReceipt
from merton.leaderboard.submissions.applications import apply as received
from merton.leaderboard.submissions.receipts import Receipt
from merton.results.metrics import DEFAULT_METRIC
from merton.results.store import open_record
from merton.web.access import AccessMiddleware, listening, problem
from merton.web.serving import add_refusals, address_of, serve

LONGEST_BODY = 64 * 1024
"""Of a request that is not a submission [bytes]; its body is not read."""
POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Content-Security-Policy of every answer: files of this server alone, no inline scripts or styles."""


def create_app(
    record: str | Path,
    *,
    tokens: Path | None = None,
    names: Iterable[str] = (),
    closed: str | None = None,
    now: Callable[[], datetime] | None = None,
    title: str | None = None,
    metric: str = DEFAULT_METRIC,
    tables: Tables | None = None,
) -> FastAPI:
    """The server of a record's board, as an ASGI application. The first snapshot is taken before it is returned.

    Args:
        record: run directory, SQLite file or PostgreSQL URL.
        tokens: file of the manufacturers' tokens (see `merton.web.access.TokenFile`); without one, every client may
            submit.
        names: host names of this server, besides "localhost" and addresses.
        closed: why no submissions are taken, one sentence; None if they are.
        now: the clock of submissions (UTC); that of the machine if None.
        title: of the pages; None: the names of the matrices and experiments.
        metric: of `merton.results.metrics`, by which trials are rated.
        tables: of boards under published rules, shown beside those of the record.

    Raises:
        InputError: there is no such record or metric, or the file of tokens or a table is invalid.
        InfrastructureError: the record cannot be read, or the pages cannot be written.
    """
    where = str(record)

    def submit(archive: BinaryIO, manufacturer: str | None) -> Receipt:
        with open_record(where) as store:
            return rules.submit(store.database, archive, manufacturer, now() if now else None)

    def apply(data: bytes, manufacturer: str | None) -> ApplicationReceipt:
        with open_record(where) as store:
            return received(store.database, data, applications.NAME, manufacturer, now() if now else None).receipt

    uploads = Uploads(submit, None if tokens is None else Tokens(tokens), closed)
    publisher = Publisher(where, title, metric, tables)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        publisher.start()
        try:
            yield
        finally:
            publisher.stop()

    app = FastAPI(
        title="Merton leaderboard",
        version=merton.__version__,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own pages load scripts from elsewhere
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.publisher, app.state.uploads, app.state.apply = publisher, uploads, apply
    _add_operations(app, names)
    return app


def _add_operations(app: FastAPI, names: Iterable[str]) -> None:
    """Add the form of refusals, the API, the pages, and the middleware that guards them."""
    add_refusals(app)
    app.add_exception_handler(RequestValidationError, _wrong_parameter)
    app.include_router(api.router)
    app.include_router(applications.router)
    app.include_router(api.health_router)
    pages.add_to(app, applications.ROUTES)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    app.add_middleware(
        AccessMiddleware,
        policy=POLICY,
        names=tuple(names),
        longest_body=LONGEST_BODY,
        uploads=(pages.FORM, "/api/submissions"),
    )


def run(
    record: str | Path,
    host: str = "127.0.0.1",
    port: int = 8080,
    *,
    tokens: Path | None = None,
    names: Iterable[str] = (),
    title: str | None = None,
    metric: str = DEFAULT_METRIC,
    tables: Tables | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Serve a record's board until Ctrl-C.

    On loopback, under no other name, every client may submit. Anywhere else submissions need `tokens`; without those
    the board is only shown.

    Args:
        record, tokens, names, title, metric, tables: as in `create_app`.
        host: name or address to listen on.
        port: 0 takes a free one.
        say: called with each step, and with the address.

    Raises:
        InputError, InfrastructureError: as `create_app`; also if the address cannot be listened on.
    """
    names = tuple(names)
    closed = None
    if tokens is None and (names or not is_loopback(host)):
        closed = "this server takes no submissions: it can be reached from elsewhere and was started without --tokens"
    with listening(host, port) as bound:
        say("a snapshot of the record is taken, and its pages are written")
        app = create_app(
            record, tokens=tokens, names=(*names, host), closed=closed, title=title, metric=metric, tables=tables
        )
        known = app.state.uploads.tokens
        logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # `uploads` logs broken forms itself
        say(f"the board is at {address_of(bound, host)}" + (f"; {closed}" if closed else ""))
        serve(app, bound, lambda token: known is not None and known.owner(token) is not None)


async def _wrong_parameter(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return problem(422, f"{first['loc'][-1]}: {first['msg']}")


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes, description=api.__doc__)
        describe_attributes(schema)
        # FastAPI's own schema of wrong parameters is not the answer of `_wrong_parameter`
        text = json.dumps(schema).replace("/HTTPValidationError", "/Refusal")
        app.openapi_schema = json.loads(text)
        for name in ("HTTPValidationError", "ValidationError"):
            app.openapi_schema["components"]["schemas"].pop(name, None)
    return app.openapi_schema
