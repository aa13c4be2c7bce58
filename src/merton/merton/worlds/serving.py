"""A world of this machine, served to one client at a time, which may be another machine's."""

from __future__ import annotations

import os
from typing import NoReturn

from merton.errors import InfrastructureError, InputError
from merton.hosts import is_loopback
from merton.worlds.entry import WorldEntry
from merton.worlds.hosted.world_wire import TOKEN


def serve(entry: WorldEntry, host: str, port: int) -> NoReturn:
    """Become the host of a world, so that the world ends with this process, even if it is killed.

    The host says its address on standard output once it is ready, and all else on standard error.

    Args:
        entry: of a hosted world that was added.
        host, port: to listen on; port 0 takes a free one.

    Raises:
        InputError: the world is in this process, is elsewhere or was not added; or the address is reached by others and
            no token is set.
        InfrastructureError: its interpreter cannot be started.
    """
    if entry.address or not entry.is_hosted:
        raise InputError(f"the world {entry.name!r} has no process of its own on this machine that could be served")
    program = entry.program(entry.added().environment)
    if not is_loopback(host) and not os.environ.get(TOKEN):
        raise InputError(
            f"{host} is reached by other machines: set {TOKEN} to a secret, here and where the world is used"
        )
    listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    command = [*program.command(), "--listen", listen]
    try:
        os.execve(command[0], command, program.variables(os.environ.get(TOKEN, "")))
    except OSError as error:
        raise InfrastructureError(f"the world {entry.name!r} cannot be started: {error}") from None
