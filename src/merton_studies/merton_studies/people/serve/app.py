"""The whole application: `create_app` for another ASGI server, `run` for `merton people serve`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.requests import Request
from starlette.responses import FileResponse, Response

import merton
from merton.errors import InputError
from merton.hosts import is_loopback
from merton.pages.environment import environment
from merton.web.access import AccessMiddleware, Tokens, listening
from merton.web.serving import add_refusals, address_of, serve
from merton_studies.people.serve.api import LONGEST_BODY, Api
from merton_studies.people.serve.operator import Operator
from merton_studies.people.serve.people import People
from merton_studies.people.study import Study

PAGE = Path(__file__).with_name("page")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self' blob:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of every answer: files of this server alone, and media that the page has loaded itself."""
_FRESH = {"Cache-Control": "no-cache"}


def create_app(study: Study, tokens: Tokens | None = None, names: Iterable[str] = ()) -> FastAPI:
    """The pages of a study as an ASGI application.

    Args:
        study: the caller closes it.
        tokens: of raters, of "register" and of "operator"; None if every client may register and see the statistics.
        names: host names of this server, besides "localhost" and addresses.

    Raises:
        InputError: a token belongs to a name that the project does not have.
    """
    app = FastAPI(title="Merton study", version=merton.__version__, openapi_url=None)
    people = People(study, tokens)
    app.state.people = people
    styles = environment("merton_studies.people.serve").get_template("app.css.j2").render()

    @app.get("/")
    async def page() -> Response:
        return FileResponse(PAGE / "index.html", headers=_FRESH)

    @app.get("/page/app.css")
    async def style(_: Request) -> Response:
        return Response(styles, headers=_FRESH, media_type="text/css")

    Api(study, people).add_to(app)
    Operator(study, people).add_to(app)
    app.mount("/page", StaticFiles(directory=PAGE))
    add_refusals(app)
    app.add_middleware(AccessMiddleware, policy=POLICY, names=tuple(names), longest_body=LONGEST_BODY)
    return app


def run(
    study: Study,
    host: str = "127.0.0.1",
    port: int = 8100,
    *,
    tokens: Path | None = None,
    names: Iterable[str] = (),
    say: Callable[[str], None] = print,
) -> None:
    """Serve a study until Ctrl-C.

    Args:
        study: the caller closes it.
        host: name or address to listen on.
        port: 0 takes a free one.
        tokens: file of tokens; needed wherever clients beyond this machine can connect.
        names: further host names of this server.
        say: called with the address.

    Raises:
        InputError: tokens are needed and there are none, the file of tokens is not usable, or the address cannot be
            listened on.
    """
    names = tuple(names)
    if tokens is None and (names or not is_loopback(host)):
        where = f"on {host}" if not is_loopback(host) else f"as {names[0]}"
        raise InputError(
            f"to serve a study {where} it needs --tokens FILE, which `merton people invite` makes; "
            "without one it is for this machine alone, on 127.0.0.1"
        )
    known = None if tokens is None else Tokens(tokens)
    with listening(host, port) as bound:
        app = create_app(study, known, (*names, host))
        address = address_of(bound, host)
        say(f"the study {study.project.name} is at {address}")
        say(f"its statistics while it runs, for the operator: {address.rstrip('/')}/operator")
        serve(app, bound, app.state.people.known)
