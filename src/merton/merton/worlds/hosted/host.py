"""The host of a world: it builds a class in this virtual environment and serves it over TCP, one client at a time.

    python host.py FILE:CLASS [--settings JSON] [--listen 127.0.0.1:0]

FILE is a path, or the name of a file in this folder; "module:CLASS" works too. It imports nothing of Merton, and runs
on Python 3.8 or later with numpy. On standard output it says "merton-world listens on HOST:PORT" once the world is
built, and nothing else; what the world prints goes to standard error. If the environment variable MERTON_WORLD_TOKEN is
set, a client must show that token first; any address but loopback needs one.

The methods of a class and the messages: docs/use/worlds.md.
"""

from __future__ import annotations

import argparse
import fcntl
import hmac
import importlib
import importlib.util
import ipaddress
import json
import os
import queue
import select
import signal
import socket
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:  # else it was started by its path
    from merton.worlds.hosted.world_requests import Hosted, HostError, described
    from merton.worlds.hosted.world_wire import LONGEST_GREETING, READY, TOKEN, VERSION, Closed, Wire, WireError
else:
    from world_requests import Hosted, HostError, described
    from world_wire import LONGEST_GREETING, READY, TOKEN, VERSION, Closed, Wire, WireError

GREETING_S = 10.0
"""A connection that has not said who it is by then is closed [s]."""
MOST_WAITING = 16
"""Connections that have not yet said who they are, each with a thread; others wait until one has."""
KEPT_S = 60
"""Of silence, after which the system asks whether the client's machine is still there [s]."""
FREE_S = 1.0
"""A client that comes while another is served is turned away after so long [s]: that one may just be leaving."""


def build(path: str, settings: dict) -> Any:
    """The world of "FILE:CLASS" or "module:CLASS"; raises HostError for one that cannot be built."""
    place, _, name = path.rpartition(":")
    if not (place and name):
        raise HostError(f"name the world as FILE:CLASS, got {path!r}")
    try:
        module = _file(place) if place.endswith(".py") else importlib.import_module(place)
    except HostError:
        raise
    except ModuleNotFoundError as error:
        raise HostError(f"cannot import {path}: there is no module {error.name!r} in this environment") from error
    except BaseException as error:  # a simulator may call sys.exit
        raise HostError(f"cannot import {path}: {described(error)}") from error
    kind = getattr(module, name, None)
    if not callable(kind):
        raise HostError(f"{place} has no class {name!r}")
    try:
        return kind(**settings)
    except BaseException as error:
        raise HostError(f"cannot build {path}: {described(error)}") from error


def _file(place: str) -> Any:
    """The module of a file, whose folder is the first where imports look."""
    here = os.path.dirname(os.path.abspath(__file__))
    found = next((file for file in (os.path.abspath(place), os.path.join(here, place)) if os.path.isfile(file)), None)
    if found is None:
        raise HostError(f"there is no file {place!r}")
    sys.path.insert(0, os.path.dirname(found))
    name = os.path.basename(found)[: -len(".py")]
    if name in sys.modules:  # a file that is named like a package which is there already
        name = f"merton_world_{name}"
    spec = importlib.util.spec_from_file_location(name, found)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[name] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


class Server:
    """A listening socket; its clients are greeted in threads and served in the thread of `run`.

    Simulators keep a graphics context, which belongs to the thread that made it.

    Args:
        host, port: port 0 takes a free one, `port`.
        token: that a client must show; "" for none.

    Raises:
        HostError: the address cannot be used, or is reached by others and has no token.
    """

    def __init__(self, host: str, port: int, token: str) -> None:
        if not (host == "localhost" or _is_loopback(host)) and not token:
            raise HostError(f"{host} is reached by other machines: set {TOKEN}, which clients must then show")
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self._socket = socket.create_server((host, port), family=family)
        except (OSError, OverflowError) as error:
            raise HostError(f"cannot listen on {host} port {port}: {error}") from None
        self.host, self.port = host, self._socket.getsockname()[1]
        self._token = token
        self._free = threading.Semaphore(1)
        self._places = threading.Semaphore(MOST_WAITING)
        self._guests: queue.Queue = queue.Queue()

    def run(self, hosted: Hosted, once: bool) -> None:
        """Serve clients one after the other; `once`: the first alone."""
        threading.Thread(target=self._accept, daemon=True).start()
        while True:
            wire = self._guests.get()
            hosted.forget()
            try:
                wire.send({"ok": {"version": VERSION}})
                while True:
                    reply = hosted.answer(wire.receive())
                    try:
                        wire.send(reply)
                    except (TypeError, ValueError) as error:  # nothing was sent
                        wire.send({"error": described(error)})
            except Closed:
                pass
            except WireError as error:
                print(f"host: {error}", file=sys.stderr)
            finally:
                wire.close()
                self._free.release()
            if once:
                return

    def _accept(self) -> None:
        while True:
            self._places.acquire()
            try:
                connection, _ = self._socket.accept()
            except OSError as error:  # it has gone again, or files are short
                print(f"host: a connection failed: {error}", file=sys.stderr)
                self._places.release()
                time.sleep(0.1)
            else:
                threading.Thread(target=self._greet, args=(connection,), daemon=True).start()

    def _greet(self, connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEPT_S)
            wire = Wire(connection)
            why = self._refusal(wire.receive(GREETING_S, LONGEST_GREETING))
            if why or not self._free.acquire(timeout=FREE_S):
                wire.send({"error": why or "it serves another client"}, GREETING_S)
                connection.close()
            else:
                self._guests.put(wire)  # whose thread answers, so that no error can leave the world taken
        except (Closed, WireError, TimeoutError, OSError) as error:
            print(f"host: a connection was closed: {error or 'it was silent'}", file=sys.stderr)
            connection.close()
        finally:
            self._places.release()

    def _refusal(self, hello: Any) -> str:
        if not isinstance(hello, dict) or hello.get("version") != VERSION:
            return f"it speaks version {VERSION} of the protocol"
        shown, wanted = (str(one).encode("utf-8", "surrogatepass") for one in (hello.get("token", ""), self._token))
        if wanted and not hmac.compare_digest(shown, wanted):
            return "its token is another one"
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def end_with_parent() -> None:
    """Let the kernel end this process as soon as its parent has ended, whose pipe is standard input.

    By a signal, because a thread that waits would never come to it while a simulator keeps the interpreter's lock.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([0], [], [], 0)[0]:  # it had ended before
        os._exit(1)


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description="Serve a world.")
    parser.add_argument("world", help="FILE:CLASS")
    parser.add_argument("--settings", type=json.loads, default={}, help="JSON: arguments of the class")
    parser.add_argument("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="port 0 takes a free one")
    parser.add_argument("--with-parent", action="store_true", help="serve one client, and end as standard input does")
    chosen = parser.parse_args()
    if chosen.with_parent:
        end_with_parent()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # for what the world's libraries print, too
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.environ.setdefault("MUJOCO_GL", "egl")
    if os.environ["MUJOCO_GL"] in ("egl", "osmesa"):
        os.environ.setdefault("PYOPENGL_PLATFORM", os.environ["MUJOCO_GL"])
    host, _, port = chosen.listen.rpartition(":")
    host = host.strip("[]")
    try:
        if not port.isdigit() or not isinstance(chosen.settings, dict):
            raise HostError("--listen is HOST:PORT and --settings a JSON object")
        server = Server(host, int(port), os.environ.pop(TOKEN, ""))
        hosted = Hosted(build(chosen.world, chosen.settings))
        print(f"{READY}{f'[{host}]' if ':' in host else host}:{server.port}", file=out, flush=True)
        if not (host == "localhost" or _is_loopback(host)):
            print("host: the connection is not encrypted, and its token can be read on the way", file=sys.stderr)
        server.run(hosted, once=chosen.with_parent)
        hosted.close()
    except HostError as error:
        if error.__cause__ is not None:
            traceback.print_exception(type(error.__cause__), error.__cause__, error.__cause__.__traceback__)
        print(f"host: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
