"""The operator's page: the statistics of the study while it runs."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import anyio
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from merton.errors import InfrastructureError
from merton.web.requests import bearer
from merton_studies.people.ledger import Answer
from merton_studies.people.serve.people import People
from merton_studies.people.statistics import Summary, summary
from merton_studies.people.statistics_page import page, style_sheet
from merton_studies.people.study import Study

PAGE = Path(__file__).with_name("page") / "operator.html"
STYLE = "/page/statistics.css"
FRESH_S = 5.0
"""Time for which the same statistics are shown again [s]: they take a second of a processor for 10,000 answers."""
_NOT_KEPT = {"Cache-Control": "no-store"}


class Operator:
    """The handlers of the operator's page.

    Args:
        study: that is served.
        people: says whose tokens open it.
    """

    def __init__(self, study: Study, people: People) -> None:
        self._study, self._people = study, people
        self._lock = threading.Lock()
        self._answers: tuple[Answer, ...] | None = None
        self._found: Summary | None = None
        self._found_s = -FRESH_S
        self._style = style_sheet()

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        app.get("/operator")(self.shell)
        app.get("/api/statistics")(self.as_json)
        app.get("/api/statistics.html")(self.as_page)
        app.get(STYLE)(self.style)

    async def shell(self) -> Response:
        """The page without numbers, which asks for them with the token in its address."""
        return FileResponse(PAGE, headers={"Cache-Control": "no-cache"})

    async def style(self) -> Response:
        """The style of the statistics."""
        return Response(self._style, headers={"Cache-Control": "no-cache"}, media_type="text/css")

    async def as_json(self, request: Request) -> Response:
        """All statistics as JSON."""
        found = await self._summary(request)
        return Response(found.as_json().encode("utf-8", "replace"), headers=_NOT_KEPT, media_type="application/json")

    async def as_page(self, request: Request) -> Response:
        """The statistics as a page."""
        found = await self._summary(request)
        return Response(page(found, STYLE).encode("utf-8", "replace"), headers=_NOT_KEPT, media_type="text/html")

    async def _summary(self, request: Request) -> Summary:
        if not self._people.is_operator(bearer(request)):
            header = {"WWW-Authenticate": "Bearer", **_NOT_KEPT}
            raise HTTPException(401, "open this page by the operator's link", header)
        try:
            return await anyio.to_thread.run_sync(self._computed)
        except InfrastructureError:
            raise HTTPException(503, "the record cannot be read at the moment") from None

    def _computed(self) -> Summary:
        study = self._study
        with self._lock:
            if self._found is None or time.monotonic() - self._found_s >= FRESH_S:
                answers = study.ledger.answers()
                if self._found is None or answers != self._answers:
                    self._found = summary(study.project, study.items, study.protocol, answers, study.sha256)
                    self._answers = answers
                self._found_s = time.monotonic()
            return self._found
