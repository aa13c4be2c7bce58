"""A stand-in for an LLM: a server of the chat protocol that answers by a script."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from merton.cognition.models.base import ModelEntry
from wire import LIMIT_S, HttpStep, Wire, http_server, replying


def said(text: Any, finish_reason: str = "stop") -> HttpStep:
    """A reply with an answer."""
    message = {"role": "assistant", "content": text}
    return replying(200, {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]})


def replying_to(answer: Callable[[str], str]) -> HttpStep:
    """A reply with an answer that is made of the prompt."""

    def step(connection: socket.socket, wire: Wire) -> None:
        said(answer(prompt_of(wire.requests[-1].body)))(connection, wire)

    step.__qualname__ = "replying_to"  # keeps the connection
    return step


def prompt_of(body: Any) -> str:
    """The text of a request."""
    return str(body["messages"][0]["content"][-1]["text"])


@contextmanager
def scripted_llm(*script: str | HttpStep) -> Iterator[Wire]:
    """The server; of the script's lines the last one repeats. A text is an answer."""
    with http_server(*(said(line) if isinstance(line, str) else line for line in script)) as wire:
        yield wire


def prompts(wire: Wire) -> list[str]:
    """Every prompt that the server has seen, in order."""
    return [prompt_of(request.body) for request in wire.requests]


def llm_entry(wire: Wire, name: str = "scripted", **changes: Any) -> ModelEntry:
    """The catalogue's entry of the stand-in, which is asked one question at a time."""
    patience = {"deadline_s": LIMIT_S, "pause_s": 0.01}
    settings = {"url": wire.http + "/v1", "model": "scripted", "parallel": 1, "patience": patience}
    values = {"name": name, "description": "a stand-in", "adapter": "openai_chat", "settings": settings}
    return ModelEntry(**{**values, **changes})


def catalogue_file(folder: Path, *entries: ModelEntry) -> Path:
    """A catalogue with these entries, for MERTON_CATALOGUE; JSON is YAML."""
    file = folder / "catalogue.yaml"
    file.write_text(json.dumps({"vlm": [entry.model_dump(mode="json") for entry in entries]}), encoding="utf-8")
    return file
