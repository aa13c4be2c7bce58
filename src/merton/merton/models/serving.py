"""A server that puts any model class behind openpi's websocket, OpenVLA's /act, or OpenAI's chat.

Copy this one file into the environment of the model and run

    python serving.py MODULE:CLASS --protocol openpi|act|chat [--host 127.0.0.1] [--port 8000] [--name NAME ...]

or, where Merton is installed, `merton model serve MODULE:CLASS ...`. It imports nothing of Merton, and runs on Python
3.7 or later with numpy; openpi also needs websockets (11 or later) and msgpack, chat needs Pillow or OpenCV. The class
is built without arguments and called for one request at a time:

    openpi, act:  act(self, observation: dict, noise_seed=None) -> array (n, d), or {"actions": array, ...}
    chat:         answer(self, images: list, question: str, max_tokens: int, noise_seed=None) -> str

`noise_seed` is optional: a class that has it promises equal noise for equal seeds, and the metadata say so. A class
that keeps a state between two calls has `session(self)`, too, which gives a fresh object with the method `act`: behind
openpi each connection has one; the other protocols do not tell clients apart, and refuse the class.
Wire formats and errors: docs/use/serving.md.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import copy
import importlib
import inspect
import io
import ipaddress
import json
import os
import socket
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

MAX_BYTES = 64 * 1024 * 1024
"""The longest request that is read."""
LARGEST_IMAGE_PX = 2**27
"""Most pixels of all images of a request together; their sizes are read before they are decoded."""
os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(LARGEST_IMAGE_PX))  # OpenCV reads it once, as it loads
IDLE_S = 60.0
"""A connection that is silent for so long, or takes so long for one request, is closed [s]."""
LONGEST_HEAD = 16 * 1024
"""Of a request to the websocket [bytes]."""
MOST_WAITING = 64
"""Connections whose request has not arrived as a whole, each with a thread; beyond them the oldest is closed."""
METHODS = {"openpi": "act", "act": "act", "chat": "answer"}
"""The method that a class needs for each protocol."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
NUMBERS = "biuf"
"""Kinds of arrays that are sent: truth values, integers, floats. Nothing is ever unpickled."""

INFRASTRUCTURE_ERRORS = (ImportError, OSError, MemoryError)
"""Errors of a model's code that are no outcome of the model: a package, a file, a server or memory is missing."""
INFRASTRUCTURE_NAMES = frozenset(
    {"OutOfMemoryError", "TransportError", "APIConnectionError", "ConnectionClosed", "RpcError", "TimeoutError"}
    | {"InfrastructureError", "MissingDependencyError"}
)
"""Classes of the same meaning in libraries, as in merton.errors, and Merton's own, which a model may raise too."""
LONGEST_REASON = 1000
"""Characters of an error's text in a reply."""


class ServingError(ValueError):
    """The model cannot be served."""


class BadRequest(ValueError):
    """The request is not of the protocol's form."""


def is_infrastructure(error: BaseException) -> bool:
    """Whether an error is no outcome of the model that raised it, by its class or the name of one of its classes."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, INFRASTRUCTURE_ERRORS) or not names.isdisjoint(INFRASTRUCTURE_NAMES)


def describe(error: BaseException) -> str:
    """Type and text of an error on one line."""
    return "{}: {}".format(type(error).__name__, " ".join(str(error).split()))[:LONGEST_REASON]


def to_msgpack(value: Any) -> Any:
    """An array or a numpy scalar in openpi's form for msgpack: dtype as ".str", data as bytes in C order."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in NUMBERS:
        raise ValueError(f"arrays of dtype {value.dtype} do not travel, only numbers do")
    if isinstance(value, np.ndarray):
        return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
    if isinstance(value, np.generic):
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise TypeError(f"a {type(value).__name__} does not travel")


def from_msgpack(value: dict) -> Any:
    """The inverse of `to_msgpack`, for a dictionary; raises ValueError for an array of anything but numbers."""
    if b"__ndarray__" in value:
        return _array(value[b"data"], value[b"dtype"], value[b"shape"])
    if b"__npgeneric__" in value:
        return _number_type(value[b"dtype"]).type(value[b"data"])
    return value


def pack(value: Any) -> bytes:
    """Msgpack, with arrays in openpi's form."""
    import msgpack

    return bytes(msgpack.packb(value, default=to_msgpack))


def unpack(data: bytes) -> Any:
    """The inverse of `pack`; raises ValueError for anything else."""
    import msgpack

    try:
        return msgpack.unpackb(data, object_hook=from_msgpack)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise ValueError(f"not msgpack with arrays of numbers: {error}") from None


def to_json(value: Any) -> Any:
    """A value for JSON: arrays in the form of json-numpy, at any depth; numpy numbers as Python's."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in NUMBERS:
            raise ValueError(f"arrays of dtype {value.dtype} do not travel, only numbers do")
        data = base64.b64encode(value.tobytes()).decode()
        return {"__numpy__": data, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def from_json(value: Any) -> Any:
    """The inverse of `to_json`; raises ValueError for an array of anything but numbers."""
    if isinstance(value, dict):
        if "__numpy__" in value:
            return _array(base64.b64decode(value["__numpy__"], validate=True), value.get("dtype"), value.get("shape"))
        return {key: from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_json(item) for item in value]
    return value


def _array(data: Any, dtype: Any, shape: Any) -> np.ndarray:
    if not isinstance(data, bytes) or not isinstance(shape, (list, tuple)):
        raise ValueError("an array has data and a shape")
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"the shape of an array is made of whole numbers, got {shape!r}")
    kind = _number_type(dtype)
    count = 1
    for length in shape:
        count *= length
    if count * kind.itemsize != len(data):
        raise ValueError(f"{len(data)} bytes are no array of shape {tuple(shape)} and dtype {kind}")
    return np.ndarray(tuple(shape), kind, data).copy()


def _number_type(dtype: Any) -> np.dtype:
    try:
        kind = np.dtype(dtype) if isinstance(dtype, str) else None
    except TypeError:
        kind = None
    if kind is None or kind.kind not in NUMBERS:
        raise ValueError(f"arrays of dtype {dtype!r} do not travel, only numbers do")
    return kind


def refusal(headers: Any, names: frozenset) -> tuple:
    """(status, why) of a request that a web page of another site may have had a browser send; (0, "") of any other.

    The rules of Merton's other servers (merton.web.access), written out here because this file is copied alone. A page
    can let its own host name resolve to this machine (DNS rebinding), but the browser still sends that name; and it
    says in Sec-Fetch-Site or Origin on whose behalf it sends. A client that sends no Host is no browser.

    Args:
        headers: with a method `get`.
        names: host names that this server goes by, beside addresses.
    """
    host = (headers.get("Host") or "").strip().lower()
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name and name not in names and not _is_address(name):
        return 421, f"this server does not go by the host name {name[:80]!r}: use its address, or start it with --name"
    site, origin = headers.get("Sec-Fetch-Site"), headers.get("Origin")
    foreign = origin is not None and origin.lower().partition("://")[2] != host
    if foreign if site is None else site not in ("same-origin", "none"):
        return 403, "this was sent by a web page of another site"
    return 0, ""


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def _names(host: str, further: Any) -> frozenset:
    """The host names of a server that listens on `host`: of this machine, unless that is loopback; and further ones."""
    known = {"localhost", host.lower()} | {name.lower() for name in further}
    if host not in LOOPBACK:
        known |= {name.lower() for name in (socket.gethostname(), socket.getfqdn())}
    return frozenset(known)


class Waiting:
    """The connections whose request has not arrived: `MOST_WAITING` at most, each for `IDLE_S` at most."""

    def __init__(self) -> None:
        self._since: dict = {}  # in the order in which they began to wait
        self._lock = threading.Lock()

    def begin(self, connection: Any) -> None:
        """A connection waits for its next request."""
        with self._lock:
            self._since.pop(connection, None)
            self._since[connection] = time.monotonic()
            excess = list(self._since)[: max(0, len(self._since) - MOST_WAITING)]
            self._close(excess)

    def __contains__(self, connection: Any) -> bool:
        return connection in self._since

    def end(self, connection: Any) -> None:
        """Its request has arrived, or it has ended."""
        with self._lock:
            self._since.pop(connection, None)

    def close_late(self) -> None:
        """Close those that have waited for too long."""
        with self._lock:
            now = time.monotonic()
            self._close([one for one, since in self._since.items() if now - since > IDLE_S])

    def _close(self, connections: list) -> None:
        for one in connections:
            del self._since[one]
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # ends the read of its thread, which closes it


class Model:
    """An instance of the class "module:class" with the method of a protocol, called by one thread at a time."""

    _method: Any

    def __init__(self, path: str, protocol: str) -> None:
        if protocol not in METHODS:
            raise ServingError("unknown protocol {!r}; choose one of: {}".format(protocol, ", ".join(METHODS)))
        self._whole = _build(path)
        self.name = path.split(":")[1]
        self._path, self._protocol = path, protocol
        self._lock = threading.Lock()
        self.has_sessions = callable(getattr(self._whole, "session", None))
        if self.has_sessions and protocol != "openpi":
            raise ServingError(
                f"{path} has a session() for each client, and the protocol {protocol} does not tell clients apart: "
                "serve it by openpi"
            )
        self._use(self._whole.session() if self.has_sessions else self._whole)

    def _use(self, instance: Any) -> None:
        """Call this object from now on."""
        method = METHODS[self._protocol]
        self.instance, self._method = instance, getattr(instance, method, None)
        if not callable(self._method):
            raise ServingError(f"{self._path} has no method {method}(), which the protocol {self._protocol} calls")
        self.takes_seed = "noise_seed" in inspect.signature(self._method).parameters

    def for_connection(self) -> Any:
        """The model for a new connection: this one, or one with a session of its own; still one call at a time."""
        if not self.has_sessions:
            return self
        own = copy.copy(self)
        with self._lock:
            own._use(self._whole.session())
        return own

    def __call__(self, *arguments: Any, noise_seed: Any = None) -> Any:
        """The result of the model's method; the seed is passed on if the method takes one."""
        with self._lock:
            if self.takes_seed:
                return self._method(*arguments, noise_seed=noise_seed)
            return self._method(*arguments)

    def metadata(self) -> dict:
        """The metadata for clients: the class's own `metadata`, whether it honours a noise seed and has sessions."""
        own = getattr(self._whole, "metadata", None) or {}
        return dict(own, noise_seed=self.takes_seed, sessions=self.has_sessions)

    def actions(self, observation: dict) -> dict:
        """The model's reply to an observation, which may have "noise_seed", as {"actions": array, ...}."""
        seed = observation.pop("noise_seed", None)
        reply = self(observation, noise_seed=seed)
        reply = dict(reply) if isinstance(reply, dict) else {"actions": reply}
        if "actions" not in reply:
            raise ValueError("the model's reply has no key 'actions', only: {}".format(", ".join(map(str, reply))))
        reply["actions"] = np.asarray(reply["actions"])
        return reply


def _build(path: str) -> Any:
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise ServingError(f"name the model as MODULE:CLASS, got {path!r}")
    sys.path.insert(0, os.getcwd())  # as for `python file.py`
    try:
        factory = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise ServingError(f"cannot import {path}: there is no module {error.name!r} here") from error
    except AttributeError:
        raise ServingError(f"module {module!r} has no {name!r}") from None
    except Exception as error:
        raise ServingError(f"cannot import {path}: {type(error).__name__}: {error}") from error
    try:
        return factory()
    except Exception as error:
        raise ServingError(f"cannot build {path}: {type(error).__name__}: {error}") from error


class OpenPi:
    """A server of openpi's protocol and, for observations with "endpoint", of RoboArena's variant."""

    scheme = "ws"

    def __init__(self, model: Model, host: str, port: int, names: Any = ()) -> None:
        try:
            import msgpack  # noqa: F401
            from websockets.sync.server import serve
        except ImportError as error:
            raise ServingError(f"the protocol openpi needs {error.name}: pip install websockets msgpack") from None
        self._model = model
        self._host_names, self._waiting = _names(host, names), Waiting()
        self._server = serve(
            self._answer, host, port, compression=None, max_size=MAX_BYTES, process_request=self._on_request
        )
        self._open = self._server.handler
        self._server.handler = self._on_connection
        self.port = self._server.socket.getsockname()[1]
        self.run = self._server.serve_forever
        self.close = self._server.shutdown

    def _on_connection(self, connection: Any, *rest: Any) -> None:
        """In the thread of a new connection, which websockets gets once the head of its request is there."""
        self._waiting.begin(connection)
        try:
            arrived = _has_head(connection, self._waiting)
        finally:
            self._waiting.end(connection)
        if arrived:
            self._open(connection, *rest)
        else:
            connection.close()
            with contextlib.suppress(AttributeError):  # a list of newer versions, from which they take what they served
                self._server.handler_threads.discard(threading.current_thread())

    def _on_request(self, connection: Any, request: Any) -> Any:
        """A reply in place of the protocol: to a check of health, or a refusal."""
        status, why = refusal(request.headers, self._host_names)
        if status:
            return connection.respond(403, why + "\n")  # 421 is no status of older websockets
        return connection.respond(200, "OK\n") if request.path == "/healthz" else None

    def _answer(self, connection: Any) -> None:
        """Send the metadata, then a reply to each observation; a failure ends the connection.

        A failure of the model is sent as text before.
        """
        from websockets.exceptions import ConnectionClosed

        try:
            model = self._model.for_connection()
            connection.send(pack(model.metadata()))
            for message in connection:
                try:
                    reply = self._reply(model, message)
                except Exception as error:
                    traceback.print_exc()
                    if is_infrastructure(error):  # a client takes a traceback for the model's own failure
                        connection.close(1011, "infrastructure_error " + ascii(type(error).__name__)[1:60])
                        return
                    connection.send(traceback.format_exc())
                    connection.close(1011, "the traceback is in the frame before")
                    return
                connection.send(reply)
        except ConnectionClosed:
            pass

    def _reply(self, model: Any, message: Any) -> Any:
        if isinstance(message, str):
            raise BadRequest("an observation is binary, not text")
        observation = unpack(message)
        if not isinstance(observation, dict):
            raise BadRequest("an observation is a dictionary")
        endpoint = observation.pop("endpoint", "infer")
        if endpoint == "reset":
            getattr(model.instance, "reset", lambda _: None)(observation)
            return "reset successful"
        started = time.monotonic()
        reply = model.actions(observation)
        reply["server_timing"] = {"infer_ms": 1000 * (time.monotonic() - started)}
        return pack(reply)


def _has_head(connection: Any, waiting: Waiting) -> bool:
    """Wait for the head of a request, and leave it there; False if the client has left or takes too long."""
    ends, seen = time.monotonic() + IDLE_S, 0
    connection.settimeout(IDLE_S)
    with contextlib.suppress(OSError):
        while time.monotonic() < ends and connection in waiting:
            waits = _wakes_after(connection, seen)
            head = connection.recv(LONGEST_HEAD, socket.MSG_PEEK)
            if b"\r\n\r\n" in head:
                _wakes_after(connection, 0)
                connection.settimeout(None)
                return True
            if not head or len(head) == LONGEST_HEAD or (waits and len(head) <= seen):
                return False
            seen = len(head)
    return False


def _wakes_after(connection: Any, seen: int) -> bool:
    """Have the next look wait for more than so many bytes; where the system cannot, it waits a moment."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, seen + 1)
    except OSError:
        time.sleep(0.02)
        return False
    return True


class Http:
    """An HTTP server; `routes` maps (method, path) to a function of the body that gives (status, JSON value)."""

    scheme = "http"

    def __init__(self, routes: dict, host: str, port: int, names: Any = ()) -> None:
        known = {"routes": routes, "names": _names(host, names)}
        self._server = _Server((host, port), type("Handler", (_Handler,), known))
        self.port = self._server.server_address[1]
        self.run = lambda: self._server.serve_forever(0.05)
        self.close = self._server.shutdown


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: Any, handler: Any) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.waiting = Waiting()
        super().__init__(address, handler)

    def process_request(self, request: Any, address: Any) -> None:
        """Begin a connection in a thread of its own."""
        self.waiting.begin(request)
        super().process_request(request, address)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self.waiting.end(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called twenty times a second."""
        self.waiting.close_late()

    def handle_error(self, request: Any, address: Any) -> None:
        """Print the error, unless it is a closed connection; the server continues."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body in one packet
    routes: dict = {}  # noqa: RUF012
    names: frozenset = frozenset()

    def handle_one_request(self) -> None:
        """Wait for a request, and serve it."""
        self.server.waiting.begin(self.connection)  # type: ignore[attr-defined]
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Read the head of a request; False if it is refused, or is no head of one."""
        if not super().parse_request():
            return False
        status, why = refusal(self.headers, self.names)
        if status:
            self.close_connection = True
            self._send(status, _error(why, "invalid_request_error"))
        return not status

    def do_GET(self) -> None:
        self._serve("GET", None)

    def do_POST(self) -> None:
        kind = self.headers.get_content_type() if "Content-Type" in self.headers else "application/json"
        if not kind.endswith(("/json", "+json")):  # a page may have a browser send other types without asking first
            self.close_connection = True
            return self._send(415, _error(f"the Content-Type is {kind}, not application/json", "invalid_request_error"))
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BYTES:
            self.close_connection = True  # the next bytes are the body, not a request
            known = length.isdigit()
            reason = f"at most {MAX_BYTES >> 20} MiB" if known else "a Content-Length is needed"
            return self._send(413 if known else 411, _error(reason, "invalid_request_error"))
        data = self.rfile.read(int(length))
        if len(data) < int(length):
            self.close_connection = True
            return None
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            return self._send(400, _error("the body is not JSON", "invalid_request_error"))
        self._serve("POST", body)

    def _serve(self, method: str, body: Any) -> None:
        self.server.waiting.end(self.connection)  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        route = self.routes.get((method, path))
        if route is None:
            known = ", ".join("{} {}".format(*pair) for pair in self.routes)
            return self._send(404, _error(f"no {method} {path} here, only: {known}", "invalid_request_error"))
        try:
            self._send(*route(body))
        except ValueError as error:  # BadRequest, or from a decoder
            self._send(400, _error(str(error), "invalid_request_error"))
        except RecursionError:
            self._send(400, _error("the body is nested too deep", "invalid_request_error"))

    def _send(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == 500:
            self.send_header("x-should-retry", "false")  # a retry would fail, too
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing: a million requests would give a million lines."""


def _error(text: str, kind: str) -> dict:
    return {"error": {"message": text, "type": kind, "param": None, "code": None}}


def _infrastructure(error: Exception) -> tuple:
    """The reply for an error that is no outcome of the model; a client may ask again."""
    return 503, _error(describe(error), "infrastructure_error")


def _health(_: Any) -> tuple:
    return 200, "OK"


def act_routes(model: Model) -> dict:
    """OpenVLA's REST protocol: a failure of the model is the string "error" with status 200; one of the
    infrastructure, which the protocol does not know, has status 503."""

    def act(body: Any) -> tuple:
        if not isinstance(body, dict):
            raise BadRequest("an observation is an object with image and instruction")
        try:
            observation = from_json(json.loads(body["encoded"]) if set(body) == {"encoded"} else body)
        except RecursionError:
            raise BadRequest("the observation cannot be read: it is nested too deep") from None
        except (ValueError, TypeError) as error:
            raise BadRequest(f"the observation cannot be read: {error}") from None
        try:
            return 200, to_json(model.actions(observation)["actions"])
        except Exception as error:
            traceback.print_exc()
            return _infrastructure(error) if is_infrastructure(error) else (200, "error")

    return {("GET", "/healthz"): _health, ("POST", "/act"): act}


def chat_routes(model: Model) -> dict:
    """The part of OpenAI's chat protocol that questions about images need."""

    def completions(body: Any) -> tuple:
        images, question = _question(body)
        wanted = body.get("max_tokens") or body.get("max_completion_tokens") or 32
        if type(wanted) is not int or wanted < 1:
            raise BadRequest(f"max_tokens must be a whole number above 0, got {wanted!r}")
        try:
            answer = model(images, question, wanted, noise_seed=body.get("seed"))
        except Exception as error:
            traceback.print_exc()
            return _infrastructure(error) if is_infrastructure(error) else (500, _error(describe(error), "model_error"))
        text = getattr(answer, "text", answer)
        if not isinstance(text, str):
            return 500, _error(f"its answer is no text but of type {type(text).__name__}", "model_error")
        message = {"role": "assistant", "content": text}
        finish = "length" if getattr(answer, "truncated", False) else "stop"
        return 200, {
            "id": "chatcmpl-0",
            "object": "chat.completion",
            "created": 0,
            "model": model.name,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        }

    def models(_: Any) -> tuple:
        return 200, {"object": "list", "data": [{"id": model.name, "object": "model", "created": 0, "owned_by": ""}]}

    return {
        ("GET", "/healthz"): _health,
        ("GET", "/health"): _health,
        ("GET", "/v1/models"): models,
        ("POST", "/v1/chat/completions"): completions,
    }


def _question(body: Any) -> tuple:
    """Images and text of all messages, in their order."""
    images: list = []
    texts: list = []
    messages = body.get("messages") if isinstance(body, dict) else None
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, dict) else None
        parts: list = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for part in parts:
            part = part if isinstance(part, dict) else {}
            kind, image = part.get("type"), part.get("image_url")
            if kind == "text" and isinstance(part.get("text"), str):
                texts.append(part["text"])
            elif kind == "image_url" and isinstance(image, dict):
                taken_px = sum(one.shape[0] * one.shape[1] for one in images)
                images.append(image_at(image.get("url"), LARGEST_IMAGE_PX - taken_px))
            else:
                raise BadRequest(f"a part of a message is of type text or image_url, got {kind!r}")
    if not texts:
        raise BadRequest("there is no message with text")
    return images, "\n".join(texts)


def image_at(url: Any, most_px: int) -> np.ndarray:
    """The image (height, width, 3) uint8 RGB of a data: address, `most_px` pixels at most; others are not fetched."""
    head, comma, data = url.partition(",") if isinstance(url, str) else ("", "", "")
    if not (head.startswith("data:image/") and head.endswith(";base64") and comma):
        raise BadRequest("an image is a data:image/...;base64, address; others are not fetched")
    raw = base64.b64decode(data, validate=True)
    try:
        return _decode(raw, most_px)
    except ImportError:
        raise BadRequest("this server cannot read images: install Pillow or OpenCV in its environment") from None
    except Exception as error:
        raise BadRequest(f"an image cannot be read: {error}") from None


def _decode(raw: bytes, most_px: int) -> np.ndarray:
    try:
        from PIL import Image
    except ImportError:
        import cv2

        bgr = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR)  # one image of the largest size at most
        if bgr is None:
            raise ValueError("no known format") from None
        _check_size(bgr.shape[1], bgr.shape[0], most_px)
        whole = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_UNCHANGED)  # has the transparency, if any
        if whole is not None and whole.ndim == 3 and whole.shape[2] == 4:
            whole = (whole // (1 if whole.dtype == np.uint8 else 256)).astype(np.uint16)
            opacity = whole[:, :, 3:]
            bgr = ((whole[:, :, :3] * opacity + 255 * (255 - opacity) + 127) // 255).astype(np.uint8)
        return np.ascontiguousarray(bgr[:, :, ::-1])
    opened = Image.open(io.BytesIO(raw), formats=("PNG", "JPEG", "WEBP", "GIF", "BMP"))  # reads only the header
    _check_size(opened.width, opened.height, most_px)
    if "A" not in opened.getbands() and "transparency" not in opened.info:
        return np.asarray(opened.convert("RGB"))
    ground = Image.new("RGBA", opened.size, (255, 255, 255, 255))  # white, as in Merton and other servers
    return np.asarray(Image.alpha_composite(ground, opened.convert("RGBA")).convert("RGB"))


def _check_size(width: int, height: int, most_px: int) -> None:
    if width * height > most_px:
        most = LARGEST_IMAGE_PX // 10**6
        raise ValueError(f"too large: {width} x {height} pixels, the images of a request hold at most {most} million")


def server(path: str, protocol: str, host: str = "127.0.0.1", port: int = 8000, names: Any = ()) -> Any:
    """A listening server with `port`, `run()`, and `close()` for another thread.

    Args:
        names: host names under which clients reach it, beside "localhost", addresses, `host` and, unless that is
            loopback, the machine's own.

    Raises:
        ServingError: no such class, method, protocol; a package is missing; the port is taken.
    """
    model = Model(path, protocol)
    try:
        if protocol == "openpi":
            return OpenPi(model, host, port, names)
        return Http((act_routes if protocol == "act" else chat_routes)(model), host, port, names)
    except (OSError, OverflowError) as error:
        raise ServingError(f"cannot listen on {host} port {port}: {error}") from None


def serve(path: str, protocol: str, host: str = "127.0.0.1", port: int = 8000, names: Any = ()) -> None:
    """Serve until the process is ended; arguments and errors are those of `server`."""
    running = server(path, protocol, host, port, names)
    shown = f"[{host}]" if ":" in host else host
    print(f"{path} serves {protocol} at {running.scheme}://{shown}:{running.port}", flush=True)
    if host not in LOOPBACK:
        print(
            "every program that reaches that port may use the model: there is no password", file=sys.stderr, flush=True
        )
    # A daemon, as are the threads of its connections: a model that hangs does not keep the process alive.
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(1.0)


def main(arguments: Any = None) -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description="Put a model class behind a protocol.")
    parser.add_argument("model", help="MODULE:CLASS")
    parser.add_argument("--protocol", required=True, choices=sorted(METHODS))
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one and says which")
    parser.add_argument("--name", action="append", default=[], help="a further host name of the server")
    chosen = parser.parse_args(arguments)
    try:
        serve(chosen.model, chosen.protocol, chosen.host, chosen.port, chosen.name)
    except ServingError as error:
        print(f"serving: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
