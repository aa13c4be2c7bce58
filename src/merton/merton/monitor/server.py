"""A port and a thread for the operator's screen."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from merton.errors import InputError, needing
from merton.hosts import is_loopback
from merton.monitor.hub import Hub
from merton.monitor.presses import PressLog

with needing("serve", "the monitor"):
    if importlib.util.find_spec("websockets") is None:  # uvicorn speaks WebSocket with it
        raise ModuleNotFoundError(name="websockets")
    from merton.monitor.app import STOP, create_app
    from merton.monitor.buttons import Controls
    from merton.web.acceptor import Acceptor, Head, affordable
    from merton.web.access import Tokens, listening
    from merton.web.hall import Hall

END_S = 2
"""Longest time that requests go on when the server ends [s]."""
CONNECTIONS = 128
"""Connections with a whole head at the same time; the page itself needs one a browser, and a few for its files."""
STOPS = 32
"""Presses of the stop button at the same time."""


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
    """Serves the operator's screen from threads of its own.

    STOP has an event loop and places of its own, so it waits neither for pictures on their way to browsers nor for
    other requests. Presses without a valid token, where one is needed, never come there.

    Args:
        hub: the content.
        controls: carry out presses.
        log: file that takes every press.
        host: name or address to listen on.
        port: 0 takes a free one.
        tokens: file of tokens, see `merton.web.access.TokenFile`; needed wherever clients beyond this machine can
            connect, for without one every client may view and press.
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
        bound = listening(host, port)
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{bound.getsockname()[1]}/"
        options: dict[str, Any] = {
            "ws": "websockets-sansio",
            "ws_max_size": 1024,  # messages of a browser are short
            "ws_per_message_deflate": False,  # JPEG files do not get smaller
            "timeout_graceful_shutdown": END_S,
        }
        page, stop = Hall(app, affordable(CONNECTIONS), **options), Hall(app, affordable(STOPS), **options)

        def choose(head: Head) -> tuple[Hall, bool]:
            has_token = known is not None and known.owner(head.token) is not None
            may_press = known is None or has_token
            return (stop if may_press and (head.method, head.path) == STOP else page), has_token

        self._halls = page, stop
        self._acceptor = Acceptor(bound, self._halls, choose)
        self._threads = [
            threading.Thread(target=hall.run, name=name, daemon=True)
            for hall, name in zip(self._halls, ("monitor", "monitor stop"), strict=True)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        self._acceptor.start()

    def stop(self) -> None:
        """End, also in the middle of a request."""
        self._acceptor.end()
        for hall in self._halls:
            hall.should_exit = True
        for thread in self._threads:
            if thread.is_alive():
                thread.join(END_S + 3)
