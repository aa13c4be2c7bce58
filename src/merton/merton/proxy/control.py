"""Control calls on the proxy's own port: where an episode begins, and how it ended, for protocols that do not say it.

POST /merton/episode {"task", "scene", "condition": {"distortion", "level"}, "agent", "session"}, each may be left out
POST /merton/episode/end {"success": true or false, "why", "session"}
GET /merton
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from merton.errors import InputError, MertonError
from merton.proxy.heads import Head, answer
from merton.proxy.sessions import Sessions
from merton.proxy.stream import Keeper

LONGEST_BODY = 65536
"""Of a call [bytes]."""
PREFIX = "/merton"
"""All paths below it are the proxy's own."""
BEGIN, END = f"{PREFIX}/episode", f"{PREFIX}/episode/end"
KEYS = {BEGIN: ("task", "scene", "condition", "agent", "session"), END: ("success", "why", "session")}
CONFLICT, INVALID = 409, 422


def is_control(target: str) -> bool:
    """Whether a request is for the proxy itself."""
    path = target.partition("?")[0]
    return path == PREFIX or path.startswith(f"{PREFIX}/")


async def respond(head: Head, body: bytes, keeper: Keeper, sessions: Sessions) -> bytes:
    """The response to a control call, sent when it is written down; refusals are {"detail": one sentence}."""
    method, path = head.first[0], head.first[1].partition("?")[0]
    if (method, path) == ("GET", PREFIX):
        return _json(200, "OK", {"protocol": keeper.protocol.name, "run": keeper.run.path.name, **keeper.counts})
    if method != "POST" or path not in KEYS:
        calls = f"GET {PREFIX}, POST {BEGIN}, POST {END}"
        return refusal(404, "Not Found", f"no {method} {path} here, only: {calls}")
    kind = (head.get("content-type") or "").partition(";")[0].strip().lower()
    if not kind.endswith(("/json", "+json")):  # a page may have a browser send other types without asking first
        return refusal(415, "Unsupported Media Type", f"the Content-Type is {kind!r}, not application/json")
    try:
        said = _object(body, KEYS[path])
        return _json(200, "OK", _begin(said, sessions) if path == BEGIN else await _end(said, sessions))
    except _NothingGoesOn as error:
        return refusal(CONFLICT, "Conflict", str(error))
    except MertonError as error:
        return refusal(INVALID, "Unprocessable Content", str(error))


class _NothingGoesOn(InputError):
    """There is no episode to end."""


def _object(body: bytes, keys: tuple[str, ...]) -> dict[str, Any]:
    try:
        said = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON") from None
    if not isinstance(said, dict):
        raise InputError("the body is no object")
    for key in said:
        if key not in keys:
            raise InputError(f"unknown key {key!r}; the keys are: {', '.join(keys)}")
    if not isinstance(said.get("session", ""), str):
        raise InputError(f"session must be text, got {said['session']!r}")
    return said


def _begin(said: Mapping[str, Any], sessions: Sessions) -> dict[str, Any]:
    condition = said.get("condition") or {}
    if not isinstance(condition, dict) or not set(condition) <= {"distortion", "level"}:
        raise InputError(f"a condition has a distortion and a level, got {condition!r}")
    stream = sessions.named(said.get("session", ""))
    given = stream.given.taking({**{key: value for key, value in said.items() if key != "condition"}, **condition})
    stream.say(given, called=True)
    return {"agent": given.agent, "task": given.task, "scene": given.scene}


async def _end(said: Mapping[str, Any], sessions: Sessions) -> dict[str, Any]:
    success, why = said.get("success"), said.get("why", "")
    if not isinstance(success, bool) or not isinstance(why, str):
        raise InputError("success must be true or false, and why a text")
    ending = sessions.named(said.get("session", "")).end(success, why)
    if ending is None:
        raise _NothingGoesOn("no episode goes on: it begins with the first observation")
    await ending
    return {"ended": True, "success": success}


def refusal(status: int, phrase: str, detail: str) -> bytes:
    """A refusal of the proxy itself."""
    return _json(status, phrase, {"detail": detail})


def _json(status: int, phrase: str, value: Mapping[str, Any]) -> bytes:
    return answer(status, phrase, json.dumps(value).encode())
