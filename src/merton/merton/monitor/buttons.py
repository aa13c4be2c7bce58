"""The buttons: permission, effect and log of a press."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any, Protocol, TypeAlias

from merton.errors import InfrastructureError, MertonError, needing
from merton.monitor.hub import Hub
from merton.monitor.presses import Press, PressLog
from merton.web.access import Tokens, problem
from merton.web.requests import bearer, json_object

with needing("serve", "the monitor"):
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response

ANSWER_LIMIT_S = 2.0
"""Longest time until a node answers a press [s]. Its request is sent at once."""
BODY_LIMIT_S = 1.0
"""Longest time until the body of a press has arrived [s]; a stop does not wait for it."""
LONGEST_BODY = 4096
SHOWN_PRESSES = 8
UNNAMED = "unnamed"
VERDICTS = ("success", "failure", "unclear")

_log = logging.getLogger("merton.monitor")


@dataclass(frozen=True)
class PressReply:
    """A node's answer to a press."""

    accepted: bool
    message: str


Reply: TypeAlias = Callable[[str, str, str], "Future[PressReply]"]
"""(trial_id, verdict, who) to the node's answer."""


class Controls(Protocol):
    """The effects of the buttons. Each call sends its request at once, in the caller's thread, and never blocks.

    The futures end with a `PressReply`, or raise InfrastructureError if no node offers the service.
    """

    def stop(self) -> Future[PressReply]:
        """Stop the arm."""

    def reset(self) -> Future[PressReply]:
        """Release the stop."""

    def confirm(self, trial_id: str, verdict: str, who: str) -> Future[PressReply]:
        """Judge the trial that waits; the verdict is one of `VERDICTS`."""

    def arranged(self, trial_id: str, verdict: str, who: str) -> Future[PressReply]:
        """Answer a request of the cell: done ("success"), or it cannot be done ("failure")."""

    def record(self, wanted: bool) -> Future[PressReply]:
        """Begin or end a recording of the graph."""


class Buttons:
    """The handlers of presses.

    Args:
        controls: carry them out.
        log: keeps them on disk.
        hub: gets the newest presses as section "presses".
        tokens: of the users who may view and press; None if every client of this server may.
    """

    def __init__(self, controls: Controls, log: PressLog, hub: Hub, tokens: Tokens | None) -> None:
        self._controls, self._press_log, self._hub, self._tokens = controls, log, hub, tokens
        self._newest: deque[Press] = deque(maxlen=SHOWN_PRESSES)

    @property
    def needs_token(self) -> bool:
        return self._tokens is not None

    def owner(self, token: str) -> str | None:
        """The owner of a token; None if it is unknown, empty where no token is needed."""
        return self._tokens.owner(token) if self._tokens is not None else ""

    def may_view(self, token: str) -> bool:
        """Whether the holder of this token may see the page's content."""
        return self.owner(token) is not None

    async def stop(self, request: Request) -> Response:
        """Stop first, then read the name: a malformed body must not keep the arm moving."""
        owner = self.owner(bearer(request))
        if owner is None:
            return _no_token()
        start_s, pending = time.monotonic(), self._controls.stop()
        body = await json_object(request, LONGEST_BODY, BODY_LIMIT_S) or {}
        return await self._conclude(request, "stop", owner or _name(body) or UNNAMED, "", pending, start_s)

    async def reset(self, request: Request) -> Response:
        """Release the stop; the presser has a name."""
        owner = self.owner(bearer(request))
        if owner is None:
            return _no_token()
        body = await json_object(request, LONGEST_BODY, BODY_LIMIT_S)
        who = owner or _name(body or {})
        if not who:
            return _no_name()
        return await self._conclude(request, "reset", who, "", self._controls.reset(), time.monotonic())

    async def confirm(self, request: Request) -> Response:
        """Judge the trial that waits; the presser has a name."""
        return await self._reply(request, "confirm", self._controls.confirm, VERDICTS)

    async def arranged(self, request: Request) -> Response:
        """Answer a request of the cell before a trial; the presser has a name."""
        return await self._reply(request, "arranged", self._controls.arranged, VERDICTS[:2])

    async def record(self, request: Request) -> Response:
        """Begin or end a recording; the presser has a name."""
        owner = self.owner(bearer(request))
        if owner is None:
            return _no_token()
        body = await json_object(request, LONGEST_BODY, BODY_LIMIT_S) or {}
        who, wanted = owner or _name(body), body.get("wanted")
        if not isinstance(wanted, bool):
            return problem(422, "a press of the recording button says whether a recording is wanted: true or false")
        if not who:
            return _no_name()
        pending, start_s = self._controls.record(wanted), time.monotonic()
        return await self._conclude(request, "record", who, "begin" if wanted else "end", pending, start_s)

    async def _reply(self, request: Request, press: str, send: Reply, verdicts: tuple[str, ...]) -> Response:
        owner = self.owner(bearer(request))
        if owner is None:
            return _no_token()
        body = await json_object(request, LONGEST_BODY, BODY_LIMIT_S) or {}
        who, trial_id, verdict = owner or _name(body), body.get("trial_id"), body.get("verdict")
        if not isinstance(trial_id, str) or not 0 < len(trial_id) <= 500 or verdict not in verdicts:
            return problem(422, f"an answer has a trial_id and a verdict, one of: {', '.join(verdicts)}")
        if not who:
            return _no_name()
        pending, start_s = send(trial_id, verdict, who), time.monotonic()
        return await self._conclude(request, press, who, f"{trial_id}: {verdict}", pending, start_s)

    async def _conclude(
        self, request: Request, press: str, who: str, detail: str, pending: Future[PressReply], start_s: float
    ) -> Response:
        """Wait for the node's answer, log the press, and answer the browser."""
        try:
            answer = await asyncio.wait_for(asyncio.wrap_future(pending), ANSWER_LIMIT_S)
            status = 200 if answer.accepted else 409
        except (asyncio.TimeoutError, TimeoutError):
            status, answer = 504, PressReply(False, f"no answer within {ANSWER_LIMIT_S:g} s")
        except MertonError as error:
            status, answer = 503, PressReply(False, str(error))
        entry = Press(
            at_utc=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            press=press,
            who=who,
            address=request.client.host if request.client else "",
            detail=detail,
            accepted=answer.accepted,
            answer=answer.message,
            took_ms=round(1e3 * (time.monotonic() - start_s), 1),
        )
        logged = True
        try:
            await run_in_threadpool(self._press_log.add, entry)
        except InfrastructureError as error:
            logged = False
            _log.error("%s", error)
        self._newest.append(entry)
        self._hub.put("presses", [asdict(one) for one in reversed(self._newest)])
        body = {"accepted": answer.accepted, "answer": answer.message, "who": who, "logged": logged}
        return JSONResponse(body, status)


def _name(body: dict[str, Any]) -> str:
    """The name in a body: one line of at most 60 printable characters."""
    who = body.get("who")
    return "".join(c for c in who if c.isprintable()).strip()[:60] if isinstance(who, str) else ""


def _no_token() -> Response:
    return problem(
        401, "a token is needed: ask the person who runs this monitor for one", {"WWW-Authenticate": "Bearer"}
    )


def _no_name() -> Response:
    return problem(422, "enter your name first: every press is logged with a name")
