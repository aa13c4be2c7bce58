"""Clients of models behind servers: one deadline for a whole call, few retries, and a rest for a dead server.

Calls run on one event loop in a separate thread, because only there does a deadline always hold: a server that sends
one byte a second would outlast every timeout of a blocking client.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import json
import os
import re
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import Field

from merton.config import Model
from merton.errors import (
    InfrastructureError,
    InputError,
    InvalidActionError,
    InvalidAnswerError,
    LateAnswerError,
    LoadingError,
    require,
)
from merton.hosts import is_loopback_url
from merton.models.base import Finding
from merton.models.content_coding import decoded
from merton.models.redaction import without_key
from merton.results.text import one_line

Result = TypeVar("Result")

MAX_REPLY_BYTES = 64 * 1024 * 1024
"""The longest reply that is read."""
LOADING_PAUSE_S = 5.0
"""The longest pause between two questions to a server that loads its model [s], unless it asks for a longer one."""
_LOADING = re.compile(r"\bloading\b|estimated_time", re.IGNORECASE)
"""Words in a reply with status 503 of a server that loads its model: llama.cpp's, and those of Hugging Face."""
_SEARCHED_BYTES = 2**20
"""The beginning of a reply in which a key is looked for, for an excerpt of some 600 bytes."""
_NO_SERVER = (
    "start it there (docs/use/serving.md), or write its address as `url` into a copy of the entry (`merton model show`)"
)
_TIMEOUTS = (TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError)  # one class from Python 3.11 on


class Patience(Model):
    """The time limits of calls to a server.

    Attributes:
        deadline_s: longest duration of a whole call, with its retries and the pauses between them.
        attempts: most attempts of one call.
        pause_s: pause before the second attempt; each further one is twice as long, or as the server asks.
        failures: number of failed calls in a row after which calls fail at once.
        rest_s: time for which they do so, until one is attempted again.
    """

    deadline_s: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    attempts: Annotated[int, Field(ge=1, le=100)] = 3
    pause_s: Annotated[float, Field(ge=0)] = 0.5
    failures: Annotated[int, Field(ge=1)] = 3
    rest_s: Annotated[float, Field(ge=0)] = 30.0


class TransientError(Exception):
    """An attempt failed, and the next one may succeed.

    Attributes:
        wait_s: the wait that the server asks for, or None.
        is_loading: the server is alive and loads its model: it is asked again until the deadline, however often.
    """

    def __init__(self, reason: str, wait_s: float | None = None, is_loading: bool = False) -> None:
        super().__init__(reason)
        self.wait_s, self.is_loading = wait_s, is_loading


class RestingError(InfrastructureError):
    """The server has failed too often in a row and is left alone; after `left_s` a call is attempted again."""

    def __init__(self, text: str, left_s: float = 0.0) -> None:
        super().__init__(text)
        self.left_s = left_s


class Remote:
    """Calls to one server, whose `url` is used in error texts."""

    def __init__(self, url: str, patience: Patience) -> None:
        self.url, self.patience = url, patience
        self._lock = threading.Lock()
        self._failures = 0
        self._resting_until = 0.0
        self._last = ""

    def call(self, attempt: Callable[[], Awaitable[Result]]) -> Result:
        """The result of `attempt`, repeated on TransientError within the limits of `patience`.

        Any other exception ends the call; one that is no InfrastructureError (a model's own failure) shows that the
        server is alive.

        Raises:
            LoadingError: the server still loads its model at the deadline.
            LateAnswerError: no result within the deadline.
            RestingError: the server has failed too often.
            InfrastructureError: no result within the attempts; the text lists them.
        """
        self._refuse_while_resting()
        faults: list[TransientError] = []
        try:
            result = run(self._attempts(attempt, faults), self.patience.deadline_s)
        except _TIMEOUTS:
            was_loading = bool(faults) and faults[-1].is_loading
            faults.append(TransientError(f"no answer within the deadline of {self.patience.deadline_s:g} s"))
            if was_loading:
                raise self._loads(faults) from None
            raise LateAnswerError(str(self._failed(faults))) from None
        except TransientError as error:
            raise (self._loads(faults) if error.is_loading else self._failed(faults)) from error
        except InfrastructureError as error:
            self._count(str(error))
            raise
        except Exception:
            self._failures = 0
            raise
        self._failures = 0
        return result

    async def _attempts(self, attempt: Callable[[], Awaitable[Result]], faults: list[TransientError]) -> Result:
        ends = time.monotonic() + self.patience.deadline_s
        failed = loading = 0
        while True:
            try:
                return await attempt()
            except TransientError as error:
                faults.append(error)
                failed, loading = failed + (not error.is_loading), loading + error.is_loading
                if failed == self.patience.attempts:
                    raise
                pause_s = max(self.patience.pause_s * 2 ** max(failed - 1, 0), error.wait_s or 0.0)
                if error.is_loading:
                    pause_s = max(min(self.patience.pause_s * 2 ** min(loading - 1, 20), LOADING_PAUSE_S), pause_s)
                if time.monotonic() + pause_s > ends:
                    faults.append(TransientError(f"the next one would be in {pause_s:g} s, after the deadline"))
                    raise
            await asyncio.sleep(pause_s)

    def _refuse_while_resting(self) -> None:
        with self._lock:
            if self._failures < self.patience.failures:
                return
            left_s = self._resting_until - time.monotonic()
            if left_s <= 0:  # this call is attempted; until it ends, others still fail at once
                self._resting_until = time.monotonic() + self.patience.rest_s
                return
        raise RestingError(
            f"{self.url} is left alone for another {left_s:.1f} s after {self._failures} failed calls in a row; "
            f"the last: {self._last}",
            left_s,
        )

    def _loads(self, faults: Sequence[TransientError]) -> LoadingError:
        """A server that loads its model is alive: no failure is counted."""
        self._failures = 0
        return LoadingError(f"{self.url} loads its model: {_listed(faults)}")

    def _failed(self, faults: Sequence[TransientError]) -> InfrastructureError:
        text = f"{self.url} gave no answer ({_listed(faults)})"
        self._count(text)
        return InfrastructureError(text)

    def _count(self, text: str) -> None:
        with self._lock:
            self._failures += 1
            self._last = text
            self._resting_until = time.monotonic() + self.patience.rest_s


def _listed(faults: Sequence[TransientError]) -> str:
    """The attempts in order, equal ones in a row counted."""
    runs = [(text, len(list(same))) for text, same in itertools.groupby(map(str, faults))]
    return "; then ".join(f"{count} times {text}" if count > 1 else text for text, count in runs)


@dataclass(frozen=True)
class Reply:
    """The reply of a server over HTTP; names of headers are in lower case, `key` is the one that the request had."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    key: str = field(default="", repr=False)

    def json(self) -> Any:
        """The value in the body of a reply with status 200 that is no error.

        Raises:
            TransientError: busy (429), a fault of the server (408, 5xx), or no JSON.
            InfrastructureError: any other status, which a repetition would not change.
        """
        self.refuse(self.status, f"HTTP {self.status}")
        value = self.value()
        if value is None:
            raise TransientError(f"the reply is not JSON: {self.excerpt()}")
        if isinstance(value, dict) and value.get("error"):  # as gateways reply, whose status is their own
            status = code_of(value["error"])
            self.refuse(status or 400, f"an error with status 200{f' and code {status}' if status else ''}")
        return value

    def refuse(self, status: int, what: str) -> None:
        """Raise as `json` does, unless a status is 200; `what` names it."""
        if status in (408, 429) or status >= 500:
            body = self.excerpt()
            is_loading = status == 503 and not self._is_infrastructure() and bool(_LOADING.search(body))
            raise TransientError(f"{what}: {body}", wait_of(self.headers.get("retry-after", "")), is_loading)
        if status != 200:
            raise InfrastructureError(f"{self.url} refuses with {what}: {self.excerpt()}")

    def _is_infrastructure(self) -> bool:
        """Whether `merton model serve` says that the infrastructure failed, in any words: it never loads."""
        value = self.value()
        error = value.get("error") if isinstance(value, dict) else None
        return isinstance(error, dict) and error.get("type") == "infrastructure_error"

    def value(self) -> Any:
        """The JSON value in the body, for any status, or None."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def excerpt(self) -> str:
        """The beginning of the body, on one line and without the key: what is cut might end in the middle of it."""
        body = without_key(self.body[:_SEARCHED_BYTES], self.key)
        return one_line(body[:600].decode("utf-8", "replace"), 300) or "(empty)"


class HttpServer(Remote):
    """Calls to one server over HTTP; connections are reused.

    Args:
        url: common prefix of all addresses, such as "http://127.0.0.1:8000/v1".
        patience: see `Remote`.

    Raises:
        MissingDependencyError: the HTTP client is not installed.
        InputError: not an http:// or https:// address.
    """

    def __init__(self, url: str, patience: Patience) -> None:
        check_url(url, ("http", "https"))
        super().__init__(url.rstrip("/"), patience)
        self._httpx = optional("httpx2")
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def request(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """One attempt: send `body` as JSON and read the whole reply.

        Raises:
            TransientError: the connection fails.
            InfrastructureError: a reply beyond `MAX_REPLY_BYTES`, packed or unpacked, or one that cannot be unpacked.
        """
        httpx, url = self._httpx, self.url + path
        content = None if body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json", "accept-encoding": "identity", **(headers or {})}
        try:
            async with self._connections().stream(method, url, content=content, headers=sent) as response:
                data = bytearray()
                async for chunk in response.aiter_raw():
                    data += chunk
                    if len(data) > MAX_REPLY_BYTES:
                        raise InfrastructureError(f"{url} replies with more than {MAX_REPLY_BYTES >> 20} MiB")
                coding = response.headers.get("content-encoding", "")
                try:
                    whole = decoded(bytes(data), coding, MAX_REPLY_BYTES)
                except InfrastructureError as error:
                    raise InfrastructureError(f"{url}: {error}") from None
                key = sent.get("authorization", "").rpartition(" ")[2]
                return Reply(url, response.status_code, dict(response.headers), whole, key)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise TransientError(f"{type(error).__name__} {error}".strip()) from None

    def _connections(self) -> Any:
        """The client of this process; after a fork the old one's connections belong to the parent."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # the deadline of the call is the only timeout; a proxy is not for loopback
            self._client = self._httpx.AsyncClient(timeout=None, trust_env=not is_loopback_url(self.url))
            self._loop = loop
        return self._client


def code_of(error: object) -> int:
    """The status in the `code` or `status` of an error in a reply; 0 without one."""
    given = [str(error.get("code")), str(error.get("status"))] if isinstance(error, dict) else []
    return next((int(text) for text in given if re.fullmatch("[45][0-9][0-9]", text)), 0)


_loops: dict[int, asyncio.AbstractEventLoop] = {}
_loops_lock = threading.Lock()


def run(work: Coroutine[Any, Any, Result], deadline_s: float) -> Result:
    """The result of `work` on the event loop of this process; after `deadline_s` cancels it and raises TimeoutError."""
    future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, deadline_s), _event_loop())
    try:
        return future.result(deadline_s + 2.0)  # in case the cancelled work does not end
    finally:
        future.cancel()


def _event_loop() -> asyncio.AbstractEventLoop:
    """The loop of this process, in a daemon thread; a fork gets another one."""
    with _loops_lock:
        if os.getpid() not in _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="merton-remote", daemon=True).start()
            _loops[os.getpid()] = loop
        return _loops[os.getpid()]


def optional(module: str) -> ModuleType:
    """A module of the extra `remote`; raises MissingDependencyError that names it."""
    return require(module, "remote", "a model behind a server")


def check_url(url: str, schemes: tuple[str, ...]) -> None:
    """Raise InputError if `url` is no address with one of the schemes."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in schemes and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        known = " or ".join(f"{scheme}://" for scheme in schemes)
        raise InputError(f"the address of a server must begin with {known}, got {url!r}")


def wait_of(retry_after: str) -> float | None:
    """Seconds in a Retry-After header, a number or a date (RFC 9110, 10.2.3); None for neither."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(retry_after)
    except (TypeError, ValueError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=timezone.utc)
    return max(0.0, (when - datetime.now(timezone.utc)).total_seconds())


def check_server(findings: Iterator[Finding]) -> Iterator[Finding]:
    """The findings of a model behind a server; a failure of the model or the server becomes the last one."""
    try:
        yield from findings
    except (InvalidAnswerError, InvalidActionError) as error:
        yield Finding("example", False, str(error))
    except InfrastructureError as error:
        yield Finding("server", False, str(error), _NO_SERVER)
