"""A port and a thread for the operator's screen."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from merton.errors import InputError, missing
from merton.hosts import is_loopback
from merton.monitor.hub import Hub
from merton.monitor.presses import PressLog

try:
    import uvicorn

    if importlib.util.find_spec("websockets") is None:  # uvicorn speaks WebSocket with it
        raise ModuleNotFoundError(name="websockets")
    from merton.monitor.app import create_app
    from merton.monitor.buttons import Controls
    from merton.web import Tokens, listening
except ModuleNotFoundError as _error:
    if _error.name not in ("fastapi", "starlette", "uvicorn", "websockets"):
        raise
    raise missing(_error.name, "serve", "the monitor") from None

END_S = 2
"""How long requests may go on when the server ends [s]."""
BACKLOG = 64


def known_tokens(host: str, tokens: Path | None, names: Sequence[str]) -> Tokens | None:
    """Tokens that may view and press buttons. None on loopback, where every local user may.

    Raises InputError if a token is needed and there is none, or the file of tokens is not usable.
    """
    if tokens is not None:
        return Tokens(tokens)
    if names or not is_loopback(host):
        where = f"on {host}" if not is_loopback(host) else f"as {names[0]}"
        raise InputError(
            f"the monitor can stop and release an arm: to serve it {where} it needs --tokens FILE; "
            "without one it is for this machine alone, on 127.0.0.1"
        )
    return None


class MonitorServer:
    """Serves the operator's screen from a thread of its own.

    Args:
        hub: the content.
        controls: carry out presses.
        log: file that takes every press.
        host: name or address to listen on.
        port: 0 takes a free one.
        tokens: file of tokens, see `merton.web.TokenFile`; needed wherever clients beyond this machine can connect, for
            without one every client may view and press.
        names: further host names of this server.

    Raises:
        InputError: a token is needed and there is none, the file of tokens or the log is not usable, or the address
            cannot be listened on.
    """

    def __init__(
        self,
        hub: Hub,
        controls: Controls,
        log: Path,
        host: str = "127.0.0.1",
        port: int = 8090,
        tokens: Path | None = None,
        names: Iterable[str] = (),
    ) -> None:
        names = tuple(names)
        known = known_tokens(host, tokens, names)
        app = create_app(hub, controls, PressLog(log), tokens=known, names=(*names, host))
        self._socket = listening(host, port)
        self._socket.listen(BACKLOG)
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self._socket.getsockname()[1]}/"
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            ws="websockets-sansio",
            ws_max_size=1024,  # messages of a browser are short
            ws_per_message_deflate=False,  # JPEG files do not get smaller
            proxy_headers=False,  # the address of a request is that of its connection
            server_header=False,
            timeout_graceful_shutdown=END_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="monitor", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End, also in the middle of a request."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(END_S + 3)
        self._socket.close()
