"""Asks the process that runs this program: the only way out of the sandbox. Lies beside the program, as `asking.py`."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

_LOCK = threading.Lock()
_requests: Any = None
_replies: Any = None


def ask(request: Any) -> Any:
    """The reply to a request; both are values of JSON. Raises EOFError when nothing answers any more."""
    global _requests, _replies
    line = json.dumps(request).encode() + b"\n"
    with _LOCK:
        if _requests is None:
            _requests, _replies = os.fdopen(3, "wb", 0), os.fdopen(4, "rb")
        while line:
            line = line[_requests.write(line) :]
        reply = _replies.readline()
    if not reply.endswith(b"\n"):
        raise EOFError("nothing answers")
    return json.loads(reply)
