"""Applications over HTTP: by the form of a page, or as JSON; the guards are those of submissions."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Query
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from merton.errors import MertonError
from merton.leaderboard.serve import pages
from merton.leaderboard.serve.api import MAX_PAGE, NOT_MODIFIED, REFUSALS, Logged, page_of, publisher_of
from merton.leaderboard.serve.models import Page, Refusal
from merton.leaderboard.serve.uploads import STATUS, Refused, Uploads
from merton.leaderboard.submissions.application import MAX_BYTES
from merton.leaderboard.submissions.applications import ApplicationReceipt
from merton.leaderboard.submissions.entrance import RefusedError
from merton.web.access import problem
from merton.web.requests import bearer

FORM = "/apply"
LIMIT_S = 10.0
"""Limit of the time until an application has arrived [s]."""
NAME = "the application"
RECEIPT = TypeAdapter(ApplicationReceipt)

_log = logging.getLogger("merton.leaderboard")

_LISTS = ("metrics", "dimensions")
_LABELS = {
    "id": "receipt",
    "kind": "kind",
    "name": "name",
    "type": "type",
    "received_utc": "received (UTC)",
    "due": "evaluated by",
    "status": "status",
    "note": "because",
}

Apply = Callable[[bytes, "str | None"], ApplicationReceipt]
"""(application as JSON, manufacturer or None) -> receipt; raises as `applications.apply` does."""

router = APIRouter(prefix="/api", responses=NOT_MODIFIED)


@router.get("/applications", summary="Applications")
def applications(
    request: Request,
    published: Logged,
    offset: Annotated[int, Query(ge=0, le=2**53, description="How many items to skip.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="How many items to give at most.")] = 100,
) -> Page[ApplicationReceipt]:
    """Every application that was ever accepted, in the order of arrival, with its last step."""
    return page_of(request, published.applications, offset, limit)


@router.post(
    "/applications",
    summary="Apply",
    status_code=201,
    response_model=ApplicationReceipt,
    responses={
        200: {"model": ApplicationReceipt, "description": "The same application was received before."},
        **{status: {"model": Refusal, "description": text} for status, text in REFUSALS.items()},
    },
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}},
)
async def post(request: Request) -> Response:
    """Apply as a model to be evaluated, or as a benchmark that joins: the keys of docs/use/submissions.md, as JSON."""
    try:
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise Refused(415, "an application is sent as application/json")
        receipt = await _received(request, await _body(request), bearer(request))
    except Refused as refused:
        return problem(refused.status, refused.reason, refused.headers)
    return Response(RECEIPT.dump_json(receipt), 200 if receipt.repeated else 201, media_type="application/json")


def form(request: Request) -> Response:
    """The forms for a model and for a benchmark."""
    uploads: Uploads = request.app.state.uploads
    needs_token = uploads.tokens is not None
    text = pages.render(request, "apply.html.j2", "Apply", FORM, closed=uploads.closed, needs_token=needs_token)
    return HTMLResponse(text, headers=pages.NOT_KEPT)


async def post_form(request: Request) -> Response:
    """The verdict on an application that was sent with a form."""
    try:
        if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            raise Refused(415, "this address takes the form of its page; programs use /api/applications")
        fields = _fields(await _body(request))
        token = fields.pop("token", "")
        receipt = await _received(request, json.dumps(_values(fields), ensure_ascii=False).encode(), token)
    except Refused as refused:
        said = pages.sentence(refused.reason)
        text = pages.render(request, "applied.html.j2", "Refused", verdict=said, receipt=None)
        return HTMLResponse(text, refused.status, {**pages.NOT_KEPT, **refused.headers})
    rows = [(label, getattr(receipt, name)) for name, label in _LABELS.items() if getattr(receipt, name)]
    said = (
        "The same application was received before; nothing has changed."
        if receipt.repeated
        else (f"The application is received. The host decides on it until the end of {receipt.due}, UTC.")
    )
    text = pages.render(request, "applied.html.j2", "Received", verdict=said, receipt=rows)
    return HTMLResponse(text, 200 if receipt.repeated else 201, pages.NOT_KEPT)


ROUTES = (Route(FORM, form, methods=["GET"]), Route(FORM, post_form, methods=["POST"]))


async def _body(request: Request) -> bytes:
    data = b""

    async def read() -> None:
        nonlocal data
        async for chunk in request.stream():
            data += chunk
            if len(data) > MAX_BYTES:
                raise Refused(413, f"an application has at most {MAX_BYTES} bytes")

    try:
        await asyncio.wait_for(read(), LIMIT_S)
    except (asyncio.TimeoutError, TimeoutError):
        raise Refused(408, f"the application did not arrive within {LIMIT_S:.0f} s") from None
    except ClientDisconnect:
        raise Refused(400, "the connection broke before the application had arrived") from None
    return data


def _fields(body: bytes) -> dict[str, str]:
    """The fields of a form that are filled in."""
    try:
        found = parse_qs(
            body.decode("utf-8"), strict_parsing=True, encoding="utf-8", errors="strict", max_num_fields=40
        )
    except ValueError:
        raise Refused(400, "the form is broken") from None
    return {name: values[-1].strip() for name, values in found.items() if values[-1].strip()}


def _values(fields: Mapping[str, str]) -> dict[str, Any]:
    """The keys of an application; a number that is none stays text, which is refused by its name."""
    values: dict[str, Any] = dict(fields)
    for name in _LISTS:
        if name in values:
            values[name] = [part.strip() for part in values[name].split(",") if part.strip()]
    if "api_needs_key" in values:
        values["api_needs_key"] = values["api_needs_key"] == "yes"
    if "cost_per_1000" in values:
        with contextlib.suppress(ValueError):
            values["cost_per_1000"] = float(values["cost_per_1000"])
    return values


async def _received(request: Request, data: bytes, token: str) -> ApplicationReceipt:
    uploads: Uploads = request.app.state.uploads
    apply: Apply = request.app.state.apply
    if uploads.closed:
        raise Refused(403, uploads.closed)
    manufacturer = uploads.manufacturer(token)
    try:
        receipt = await run_in_threadpool(apply, data, manufacturer)
    except RefusedError as error:
        raise Refused(STATUS[error.kind], str(error)) from None
    except MertonError as error:  # a fault of the record: its text is for the log, not for the sender
        _log.error("an application could not be stored: %s", error)
        raise Refused(
            503, "the application could not be stored, so it does not count; try again later", {"Retry-After": "60"}
        ) from None
    await run_in_threadpool(publisher_of(request).show_submissions)
    publisher_of(request).check_now()
    return receipt
