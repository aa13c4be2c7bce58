"""The JSON API: the parts of the snapshot, read only, and one way to submit."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter

from merton.leaderboard.serve.models import BoardAnswer, BoardEntry, GroupBoard, Health, MatchAnswer, Page, Refusal
from merton.leaderboard.serve.publisher import Published, Publisher
from merton.leaderboard.serve.uploads import Refused, Uploads
from merton.leaderboard.snapshot.contents import AgentRow, CaseRow
from merton.leaderboard.snapshot.store import StoredSnapshot
from merton.leaderboard.submissions.receipts import Attempt, Receipt
from merton.web.access import problem

MAX_PAGE = 1000

Item = TypeVar("Item")
Offset = Annotated[int, Query(ge=0, le=2**53, description="How many items to skip.")]
Id = Annotated[str, PathParameter(description="As it stands on the board.")]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="How many items to give at most.")]
FORM: dict[str, Any] = {
    "type": "object",
    "required": ["archive"],
    "properties": {
        "archive": {"type": "string", "format": "binary", "description": "A .zip."},
        "token": {"type": "string", "description": "As in Authorization, for forms."},
    },
}
REFUSALS = {
    400: "The form is broken.",
    401: "The request has no token, or the token is unknown.",
    403: "Another manufacturer's token, another site's form, or this server takes no submissions.",
    408: "It did not arrive in time.",
    409: "The manufacturer's month is used up.",
    413: "Too large, packed or unpacked.",
    415: "No form.",
    422: "The archive, the manifest or the scores are not as they should be.",
    429: "Too many at this moment; see Retry-After.",
    503: "It could not be stored and does not count; see Retry-After.",
}
NO_AGENT = "there is no agent of that id; /api/board lists them"
NO_BOARD = "there is no board of that name; /api/boards lists them"
NO_CASE = "there is no test case of that id; /api/cases lists them"
RECEIPT = TypeAdapter(Receipt)
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": Refusal, "description": "There is no such thing."}}
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "The ETag in If-None-Match is still right."}}


def etag_matches(request: Request, etag: str) -> bool:
    """Whether the client has this already (RFC 9110, 13.1.2)."""
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    return etag in known or "*" in known


def publisher_of(request: Request) -> Publisher:
    """The publisher of the server that a request came to."""
    publisher: Publisher = request.app.state.publisher
    return publisher


def current(request: Request, response: Response) -> Published:
    """The published edition; ends the request with 304 if the client has it already."""
    published = publisher_of(request).current
    _revalidated(request, response, published.sha256)
    return published


def logged(request: Request, response: Response) -> Published:
    """As `current`, for the parts beside the snapshot: submissions, applications, attempts, stored
    snapshots."""
    published = publisher_of(request).current
    digest = hashlib.sha256(
        repr((published.submissions, published.attempts, published.stored, published.applications)).encode()
    ).hexdigest()
    _revalidated(request, response, digest)
    return published


def arranged(request: Request, response: Response) -> Published:
    """As `current`, for all boards on the pages, those under published rules among them."""
    published = publisher_of(request).current
    _revalidated(request, response, published.boards_sha256)
    return published


def _revalidated(request: Request, response: Response, digest: str) -> None:
    headers = {"ETag": f'"{digest}"', "Cache-Control": "no-cache"}
    if etag_matches(request, headers["ETag"]):
        raise HTTPException(304, headers=headers)
    response.headers.update(headers)


Current = Annotated[Published, Depends(current)]
Logged = Annotated[Published, Depends(logged)]
Arranged = Annotated[Published, Depends(arranged)]
router = APIRouter(prefix="/api", responses=NOT_MODIFIED)
health_router = APIRouter()


@router.get("/board", summary="The board")
def board(published: Current) -> BoardAnswer:
    """Every agent with its ratings, scores and intervals; boards of groups of cases; warnings and diagnostics."""
    return BoardAnswer.of(published.snapshot, published.sha256)


@router.get("/boards", summary="All boards")
def boards(published: Arranged) -> list[BoardEntry]:
    """The boards of groups of cases and those under published rules, such as an Arena's, in the order of the pages."""
    return [BoardEntry.of(board, page) for board, page in published.boards]


@router.get("/boards/{name}", summary="One of all boards", responses=NOT_FOUND)
def group_board(
    name: Annotated[str, PathParameter(description="As /api/boards gives it.")], published: Arranged
) -> GroupBoard:
    """The board with every cell: agents against benchmarks, dimensions, capabilities, tasks or others."""
    for board, page in published.boards:
        if board.name == name:
            return GroupBoard.of(board, page, published.snapshot)
    raise HTTPException(404, NO_BOARD)


@router.get("/agents/{id:path}", summary="An agent", responses=NOT_FOUND)
def agent(id: Id, published: Current) -> AgentRow:
    """The agent's line on the board."""
    return published.snapshot.agents[_index(published.agents, id, NO_AGENT)]


@router.get("/cases", summary="Test cases")
def cases(request: Request, published: Current, offset: Offset = 0, limit: Limit = 100) -> Page[CaseRow]:
    """All test cases, by id."""
    return page_of(request, published.snapshot.cases, offset, limit)


@router.get("/cases/{id:path}", summary="A test case", responses=NOT_FOUND)
def case(id: Id, published: Current) -> CaseRow:
    """The case and its difficulty."""
    return published.snapshot.cases[_index(published.cases, id, NO_CASE)]


@router.get("/matches", summary="Matches", responses=NOT_FOUND)
def matches(
    request: Request,
    published: Current,
    offset: Offset = 0,
    limit: Limit = 100,
    agent: Annotated[str | None, Query(description="Id: only this agent's.")] = None,
    case: Annotated[str | None, Query(description="Id: only those on this test case.")] = None,
) -> Page[MatchAnswer]:
    """All matches of agents and test cases, from which the ratings are made, by agent and case."""
    found: Sequence[tuple[int, int, float]] = published.snapshot.matches
    if agent is not None:
        index = _index(published.agents, agent, NO_AGENT)
        found = found[bisect_left(found, (index,)) : bisect_left(found, (index + 1,))]
    if case is not None:
        index = _index(published.cases, case, NO_CASE)
        found = [match for match in found if match[1] == index]
    agents, all_cases = published.snapshot.agents, published.snapshot.cases
    page = page_of(request, found, offset, limit)
    items = [MatchAnswer(agent=agents[i].id, case=all_cases[j].id, score=score) for i, j, score in page.items]
    return Page[MatchAnswer](total=page.total, offset=page.offset, items=items, next=page.next)


@router.get("/snapshots", summary="Stored snapshots")
def snapshots(request: Request, published: Logged, offset: Offset = 0, limit: Limit = 100) -> Page[StoredSnapshot]:
    """The snapshots that the record holds, oldest first: the history of the board."""
    return page_of(request, published.stored, offset, limit)


@router.get("/submissions", summary="Submissions")
def submissions(request: Request, published: Logged, offset: Offset = 0, limit: Limit = 100) -> Page[Receipt]:
    """Every submission that was ever accepted, withdrawn ones too, in the order of arrival."""
    return page_of(request, published.submissions, offset, limit)


@router.get("/attempts", summary="Attempts to submit")
def attempts(request: Request, published: Logged, offset: Offset = 0, limit: Limit = 100) -> Page[Attempt]:
    """Every attempt to submit, in order; refused ones with the reason."""
    return page_of(request, published.attempts, offset, limit)


@router.post(
    "/submissions",
    summary="Submit",
    status_code=201,
    response_model=Receipt,
    responses={
        200: {"model": Receipt, "description": "The same archive was accepted before; this is its receipt."},
        **{status: {"model": Refusal, "description": text} for status, text in REFUSALS.items()},
    },
    openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": FORM}}}},
)
async def submit(request: Request) -> Response:
    """Send an archive. Where tokens are needed, the manufacturer's goes into the header Authorization: Bearer TOKEN."""
    uploads: Uploads = request.app.state.uploads
    try:
        receipt = await uploads.handle(request)
    except Refused as refused:
        return problem(refused.status, refused.reason, refused.headers)
    await run_in_threadpool(publisher_of(request).show_submissions)
    publisher_of(request).check_now()
    return Response(RECEIPT.dump_json(receipt), 200 if receipt.repeated else 201, media_type="application/json")


@health_router.get("/health", summary="Is the board up to date?")
def health(request: Request) -> Health:
    """ "ok", or why an older board is served. The HTTP status is 200 in both cases: the server itself works."""
    publisher = publisher_of(request)
    published, trouble = publisher.current, publisher.problem
    return Health(
        status="stale" if trouble else "ok",
        problem=trouble,
        snapshot_sha256=published.sha256,
        since_utc=published.since_utc,
    )


def _index(known: Mapping[str, int], id: str, reason: str) -> int:
    if id not in known:
        raise HTTPException(404, reason)
    return known[id]


def page_of(request: Request, items: Sequence[Item], offset: int, limit: int) -> Page[Item]:
    """A part of a list, with the address of the following one."""
    end = offset + limit
    address = None
    if end < len(items):
        query = {**request.query_params, "offset": end, "limit": limit}
        address = f"{request.url.path}?{urlencode(query)}"
    return Page.model_construct(total=len(items), offset=offset, items=list(items[offset:end]), next=address)
