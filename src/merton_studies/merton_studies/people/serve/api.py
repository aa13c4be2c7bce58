"""The API of a study's pages: session, registration, work, answers, undo, media. Nothing in it names an item's source.

All of it is JSON, but for the media. A refusal is {"detail": one sentence}.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import anyio
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton.web.requests import DEEPEST, bearer, json_object
from merton_studies.people.desk import Work
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer, Rater, Slot
from merton_studies.people.serve.people import People, RegistrationError
from merton_studies.people.study import Study

LONGEST_BODY = 64 * 1024
"""Greatest length of the body of a request [bytes]."""
BODY_LIMIT_S = 10.0
"""Time limit for the body of a request to arrive [s]."""
LONGEST_S = 86_400.0
"""The most time that an answer may say it took [s]."""
AHEAD = 3
"""Slots after the one to be answered now, whose media the page loads before they are needed."""
AT_ONCE = 64
"""Answers that are saved at the same time, and media that are read."""
TYPES = {"image": "image/png", "reel": "application/octet-stream"}
_NOT_KEPT = {"Cache-Control": "no-store"}

_log = logging.getLogger("merton_studies.people")

Result = TypeVar("Result")


class Api:
    """The handlers of the API.

    Args:
        study: that is served.
        people: whom tokens stand for.
    """

    def __init__(self, study: Study, people: People) -> None:
        self._study, self._people = study, people
        self._saving: anyio.CapacityLimiter | None = None  # of this event loop, made in it
        self._reading: anyio.CapacityLimiter | None = None

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        app.get("/api/session")(self.session)
        app.post("/api/register")(self.register)
        app.get("/api/work")(self.work)
        app.post("/api/answers")(self.answer)
        app.post("/api/undo")(self.undo)
        app.get("/media/{number:int}/{role}")(self.medium)

    async def session(self, request: Request) -> Response:
        """The client's access: "rate", "register", "operator", or "token": it needs one, and learns nothing else."""
        token = bearer(request)
        rater = await self._in_thread(self._people.rater, token, True)
        if rater is None and not self._people.open and self._people.is_operator(token):
            return JSONResponse({"access": "operator"}, headers=_NOT_KEPT)
        if rater is None and not self._people.may_register(token):
            return JSONResponse({"access": "token"}, headers=_NOT_KEPT)
        project, protocol = self._study.project, self._study.protocol
        told = {
            "access": "register" if rater is None else "rate",
            "study": project.name,
            "title": project.title,
            "protocol": protocol.name,
            "protocol_title": protocol.title,
            "instructions": project.instructions,
            "contact": project.contact,
            "rater": None if rater is None else {"id": rater.id, "role": rater.role, "key": self._key(rater)},
        }
        return JSONResponse(told, headers=_NOT_KEPT)

    async def register(self, request: Request) -> Response:
        """{name} to {token, rater}: the token is shown once, and opens this person's work from then on."""
        if not self._people.may_register(bearer(request)):
            raise HTTPException(403, "this study is closed to registration; ask for a link of your own")
        name = (await self._body(request)).get("name")
        if not isinstance(name, str):
            raise HTTPException(422, "a registration has a name, a text")
        try:
            rater, token = await self._in_thread(self._people.register, cleaned(name))
        except RegistrationError as error:
            raise HTTPException(409, str(error)) from None
        return JSONResponse({"token": token, "rater": rater.id}, 201, _NOT_KEPT)

    async def work(self, request: Request) -> Response:
        """The slot to be answered now, those after it, and progress."""
        rater = self._rater(request)
        return JSONResponse(await self._in_thread(self._shown_work, rater.id), headers=_NOT_KEPT)

    async def answer(self, request: Request) -> Response:
        """{id, number, answer, seconds} to {saved}: on the disk. False if this very answer was saved before."""
        rater, body = self._rater(request), await self._body(request)
        number, seconds, answer = body.get("number"), body.get("seconds"), body.get("answer")
        if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**31:
            raise HTTPException(422, "an answer has a number, that of its slot")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_S:
            raise HTTPException(422, f"an answer has seconds, 0 to {LONGEST_S:.0f}")
        if not isinstance(answer, dict):
            raise HTTPException(422, "an answer has an answer, an object")
        saved = await self._in_thread(
            self._study.desk.answer, rater.id, number, _id(body), cleaned(answer), float(seconds)
        )
        return JSONResponse({"saved": saved}, headers=_NOT_KEPT)

    async def undo(self, request: Request) -> Response:
        """{id} to {undone}: the last answer that stands is taken back. False: there is none, or it was done before."""
        rater, body = self._rater(request), await self._body(request)
        return JSONResponse({"undone": await self._in_thread(self._study.desk.undo, rater.id, _id(body))})

    async def medium(self, request: Request, number: int, role: str) -> Response:
        """A picture or reel of a slot of this rater. Its headers are those of every other one of its kind."""
        rater = self._rater(request)
        item = await self._in_thread(self._study.desk.item_of, rater.id, number)
        medium = item.media.get(role)
        if medium is None:
            raise HTTPException(404, "this item has no such picture")
        if self._reading is None:
            self._reading = anyio.CapacityLimiter(AT_ONCE)
        try:
            data = await anyio.to_thread.run_sync(medium.file.read_bytes, limiter=self._reading)
        except OSError:
            raise HTTPException(503, "this picture cannot be read at the moment") from None
        return Response(data, headers=_NOT_KEPT, media_type=TYPES[medium.kind])

    def _shown_work(self, rater: str) -> dict[str, Any]:
        work: Work = self._study.desk.work(rater, AHEAD)
        pairs = zip(work.slots, work.said, strict=True)
        return {
            "state": work.state,
            "reason": work.reason,
            "progress": {"done": work.done, "total": work.total, "seconds_left": work.seconds_left},
            "slots": [self._shown_slot(slot, said) for slot, said in pairs],
            "last": None if work.last is None else {"number": work.last.number},
        }

    def _shown_slot(self, slot: Slot, said: tuple[Answer, ...]) -> dict[str, Any]:
        item, protocol = self._study.desk.shown(slot), self._study.protocol
        view = protocol.review_view if slot.kind == "review" else protocol.view
        media = _shown_media(item, slot.number)
        return {"number": slot.number, "media": media, "view": view(item, said, self._study.project.blind)}

    def _rater(self, request: Request) -> Rater:
        rater = self._people.rater(bearer(request))
        if rater is None:
            raise HTTPException(
                401, "open this page by the link that you were given", {"WWW-Authenticate": "Bearer", **_NOT_KEPT}
            )
        return rater

    def _key(self, rater: Rater) -> str:
        """The key under which a browser keeps the answers of this very registration until they are sent."""
        text = f"{self._study.project.name}\n{rater.id}\n{rater.registered_utc}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    async def _body(self, request: Request) -> dict[str, Any]:
        body = await json_object(request, LONGEST_BODY, BODY_LIMIT_S)
        if body is None:
            raise HTTPException(
                422, f"this takes a JSON object of at most {LONGEST_BODY} bytes, nested at most {DEEPEST} deep"
            )
        return body

    async def _in_thread(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run a function in a thread, `AT_ONCE` at most; its refusals become answers."""
        if self._saving is None:
            self._saving = anyio.CapacityLimiter(AT_ONCE)
        try:
            return await anyio.to_thread.run_sync(function, *arguments, limiter=self._saving)
        except RegistrationError:
            raise
        except UnknownNameError:
            raise HTTPException(401, "you are not in this study any more; open the page again") from None
        except InputError as error:
            raise HTTPException(422, str(error)) from None
        except InfrastructureError as error:
            _log.error("%s", error)
            raise HTTPException(503, "this could not be saved; it will be sent again", {"Retry-After": "2"}) from None


def cleaned(value: Any) -> Any:
    """A JSON value whose texts can be written in UTF-8: half a surrogate pair becomes the replacement character."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {cleaned(key): cleaned(one) for key, one in value.items()}
    if isinstance(value, list):
        return [cleaned(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise HTTPException(422, "a number in this answer is not finite")
    return value


def _shown_media(item: Item, number: int) -> list[dict[str, Any]]:
    """The media in alphabetical order of their roles, which are the same for all items of a protocol."""
    return [
        {
            "role": role,
            "kind": medium.kind,
            "url": f"/media/{number}/{role}",
            "width": medium.width_px,
            "height": medium.height_px,
            "frames": medium.frames,
            "rate_hz": medium.rate_hz,
        }
        for role, medium in sorted(item.media.items())
    ]


def _id(body: Mapping[str, Any]) -> str:
    found = body.get("id")
    if not isinstance(found, str) or not 16 <= len(found) <= 64 or not (found.isascii() and found.isalnum()):
        raise HTTPException(422, "an answer and an undo have an id of 16 to 64 letters and digits")
    return found
