"""The pages of the site, and those that only a server has: the form, its answer, and the list of operations."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from fastapi import FastAPI
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from merton.leaderboard.serve.api import etag_matches, publisher_of
from merton.leaderboard.serve.uploads import Refused, Uploads
from merton.leaderboard.site import frame
from merton.leaderboard.submissions.archive import MAX_ARCHIVE_BYTES
from merton.leaderboard.submissions.receipts import Receipt
from merton.pages.environment import environment
from merton.web.access import problem

FORM, OPERATIONS = "/submit", "/api"
NOT_KEPT = {"Cache-Control": "no-store"}
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
    ".zip": "application/zip",
    ".jpg": "image/jpeg",
    ".png": "image/png",
}
"""Media types of the site's files; any other is sent as bytes."""

_TEMPLATES = environment("merton.leaderboard.serve")

_RECEIPT_LABELS = {
    "id": "receipt",
    "manufacturer": "manufacturer",
    "agent": "agent",
    "version": "version",
    "received_utc": "received (UTC)",
    "month": "month it uses up",
    "window": "on the board from",
    "due": "evaluated by",
    "archive_sha256": "SHA-256 of the archive",
}


def page(request: Request) -> Response:
    """A file of the site."""
    publisher = publisher_of(request)
    published = publisher.current
    name = request.path_params["name"] or "index.html"
    file = published.files.get(name)
    if file is None and name.startswith(f"{OPERATIONS[1:]}/"):
        return problem(404, f"there is no such operation; {OPERATIONS} lists them")
    if file is None:
        root = "../" * name.count("/")
        return HTMLResponse(render(request, "missing.html.j2", "There is no such page", root=root), 404)
    try:
        content = file.read_bytes()
    except OSError:  # the folder of temporary files was tidied up
        publisher.check_now(force=True)
        return problem(503, "this page is being written again; try again shortly", {"Retry-After": "10"})
    headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "Cache-Control": "no-cache"}
    if etag_matches(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(
        content, headers=headers, media_type=TYPES.get(PurePosixPath(name).suffix, "application/octet-stream")
    )


def form(request: Request) -> Response:
    """The form for submissions."""
    uploads: Uploads = request.app.state.uploads
    text = render(
        request,
        "submit.html.j2",
        "Submit",
        FORM,
        closed=uploads.closed,
        needs_token=uploads.tokens is not None,
        limit_mib=MAX_ARCHIVE_BYTES >> 20,
    )
    return HTMLResponse(text, headers=NOT_KEPT)


async def submit(request: Request) -> Response:
    """The verdict on a submission that was sent with the form."""
    uploads: Uploads = request.app.state.uploads
    try:
        receipt = await uploads.handle(request)
    except Refused as refused:
        text = render(request, "verdict.html.j2", "Refused", verdict=sentence(refused.reason), receipt=None)
        return HTMLResponse(text, refused.status, {**NOT_KEPT, **refused.headers})
    await run_in_threadpool(publisher_of(request).show_submissions)
    publisher_of(request).check_now()
    rows = [(label, getattr(receipt, name)) for name, label in _RECEIPT_LABELS.items()]
    text = render(request, "verdict.html.j2", "Accepted", verdict=_accepted(receipt), receipt=rows)
    return HTMLResponse(text, 200 if receipt.repeated else 201, NOT_KEPT)


def operations(request: Request) -> Response:
    """The operations of the JSON API, from its OpenAPI document."""
    items = []
    for path, methods in request.app.openapi()["paths"].items():
        for method, operation in methods.items():
            parameters = [(item["name"], item["description"]) for item in operation.get("parameters", [])]
            items.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "link": "" if "{" in path or method != "get" else path.lstrip("/"),
                    "description": operation["description"],
                    "parameters": parameters,
                }
            )
    return HTMLResponse(render(request, "operations.html.j2", "JSON API", OPERATIONS, operations=items))


def add_to(app: FastAPI, further: Sequence[Route] = ()) -> None:
    """Add the pages, after all other routes of the app: every other address is a file of the site."""
    app.router.routes += [
        *further,
        Route(FORM, form, methods=["GET"]),
        Route(FORM, submit, methods=["POST"]),
        Route(OPERATIONS, operations, methods=["GET"]),
        Route("/{name:path}", page, methods=["GET"]),
    ]


def _accepted(receipt: Receipt) -> str:
    if receipt.repeated:
        return "The same archive was accepted before; nothing has changed, and this is its receipt."
    return f"The submission is accepted, and pending: it is on the board from {receipt.window}, 00:00 UTC, on."


def sentence(text: str) -> str:
    """A reason as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def render(request: Request, template: str, title: str, current: str = "", root: str = "", **values: Any) -> str:
    """A page that only the server has, in the layout of the site."""
    publisher = publisher_of(request)
    body = Markup(_TEMPLATES.get_template(template).render(values, root=root))  # escaped by the template
    return frame(publisher.current.head, title, body, current.lstrip("/"), root=root, site_title=publisher.title)
