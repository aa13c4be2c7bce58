"""Any catalogue file and any reply of a server is read, or refused in one sentence: no error but Merton's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from merton.cognition.models.base import Answer, ModelEntry
from merton.cognition.models.openai_chat import ChatSettings, OpenAIChat
from merton.config import load
from merton.decision.models.base import PolicyEntry
from merton.decision.models.openvla_rest import OpenVlaRest
from merton.errors import MertonError
from merton.models.catalogue import Catalogue
from merton.models.remote import Reply, TransientError
from merton.models.serving import unpack

pytest.importorskip("httpx2", reason="the extra `remote` is not installed")

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
DEEP = "[" * 3000 + "]" * 3000
FUZZED = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def is_read_or_refused(read: Callable[[], object]) -> bool:
    """Whether it ends, or with an error of Merton that says something short; any other error passes through."""
    try:
        read()
    except (MertonError, TransientError) as error:
        return 0 < len(str(error)) < 2000
    return True


@FUZZED
@given(
    st.binary(max_size=400)
    | st.lists(st.dictionaries(st.sampled_from([*ModelEntry.model_fields, "x"]), ANY, max_size=6), max_size=3)
    | ANY
)
@example(b"\xff\xfe")
@example(f"vlm: {DEEP}".encode())
@example([{"name": "a" * 100_000, "adapter": "x:y"}])
def test_any_catalogue_is_read_or_refused(tmp_path: Path, content: Any) -> None:
    file = tmp_path / "catalogue.yaml"
    if not isinstance(content, bytes):
        content = json.dumps({"vlm": content, "vla": content}).encode()
    file.write_bytes(content)
    for catalogue in (Catalogue("vlm", ModelEntry), Catalogue("vla", PolicyEntry)):
        assert is_read_or_refused(partial(load, file, catalogue.file_model))


def chat_reply(content: Any, finish: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": finish}]}


REPLIES = st.binary(max_size=300) | st.builds(
    lambda value: json.dumps(value).encode(),
    ANY
    | st.builds(chat_reply, ANY, ANY)
    | st.builds(lambda choices: {"choices": choices}, ANY)
    | st.builds(lambda key, value: {key: value}, st.sampled_from(["error", "action", "actions", "encoded"]), ANY),
)
STATUSES = st.sampled_from([200, 200, 200, 400, 404, 429, 500, 503, 0, 999])


@FUZZED
@given(REPLIES, STATUSES, st.text(max_size=20))
@example(DEEP.encode(), 200, "")
@example(json.dumps({"error": {"code": 10**400}}).encode(), 200, "9" * 400)
@example(json.dumps(json.dumps([[1.0] * 7])).encode(), 200, "nan")
@example(json.dumps(DEEP).encode(), 200, "")
@example(json.dumps({"__numpy__": "====", "dtype": "object", "shape": [-1]}).encode(), 200, "")
def test_any_reply_is_an_answer_or_one_sentence(body: bytes, status: int, retry_after: str) -> None:
    reply = Reply("http://model/v1", status, {"retry-after": retry_after}, body, key="secret")
    chat = OpenAIChat("eyes", ChatSettings(url="http://127.0.0.1:9/v1", model="eyes"))
    assert is_read_or_refused(lambda: Answer(chat._read(reply)[0]).text.encode())
    values = {"name": "arm", "description": "", "adapter": "openvla_rest", "cameras": ("top",), "convention": "bridge"}
    policy = OpenVlaRest.from_entry(PolicyEntry(**values, settings={"url": "http://127.0.0.1:9"}))

    def act() -> None:
        chunk = policy._convention.chunk(policy._array(reply.json()), model="arm", latency_s=0.1)
        assert np.isfinite(chunk.deltas).all()

    assert is_read_or_refused(act)


@FUZZED
@given(st.binary(max_size=300))
def test_any_message_of_a_websocket_is_a_value_or_a_value_error(content: bytes) -> None:
    with suppress(ValueError):
        unpack(content)
