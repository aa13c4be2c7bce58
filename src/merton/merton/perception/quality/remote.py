"""Metrics behind a server: pairs of PNGs go out, numbers come back. The server is `pyiqa_server.py`."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from merton.config import Model, validated
from merton.errors import InfrastructureError, InputError
from merton.models.base import Finding
from merton.models.remote import HttpServer, Patience
from merton.perception.images import encode_image
from merton.results.text import one_line
from merton.world.observation import Image

if TYPE_CHECKING:
    from merton.perception.quality.catalogue import MetricEntry

VARIABLE = "MERTON_IQA_SERVER"
"""The address of the server, in place of that of the entries."""
START = "start it where pyiqa is with `python -m merton.perception.quality.pyiqa_server` (docs/studies/quality.md)"
BATCH_PX = 2**24
"""Most pixels of the images of one request."""


class PyIqaSettings(Model):
    """The settings of an entry.

    Attributes:
        metric: its name in pyiqa.
        create: arguments of `pyiqa.create_metric`, such as pretrained_model_path of weights that were trained further.
        call: arguments of every measurement, such as task_ of Q-Align.
        url: address of the server, unless MERTON_IQA_SERVER is set.
        patience: limits; the first request loads the weights.
    """

    metric: str
    create: dict[str, Any] = Field(default_factory=dict)
    call: dict[str, Any] = Field(default_factory=dict)
    url: str = "http://127.0.0.1:8763"
    patience: Patience = Patience(deadline_s=600.0, attempts=2)


class PyIqaMetric:
    """A metric of pyiqa behind its server; called as every `Measure` of the registry.

    Attributes:
        name: of the entry.
        identity: the settings that decide values, as JSON: kept values of others are measured again.

    Raises MissingDependencyError without the extra `remote`, InputError for an address that is none.
    """

    def __init__(self, name: str, chosen: PyIqaSettings, needs_reference: bool, better: str) -> None:
        self.name = name
        self._chosen, self._needs_reference, self._better = chosen, needs_reference, better
        self._server = HttpServer(os.environ.get(VARIABLE) or chosen.url, chosen.patience)
        self.identity = chosen.model_dump_json(include={"metric", "create", "call"})

    @classmethod
    def from_entry(cls, entry: MetricEntry) -> PyIqaMetric:
        """The metric of a catalogue entry; raises InputError for settings that are none of `PyIqaSettings`."""
        chosen = validated(PyIqaSettings, dict(entry.settings), f"the settings of {entry.name}")
        return cls(entry.name, chosen, entry.needs_reference, entry.better)

    def __call__(self, image: Image, reference: Image) -> float:
        """The value of an image; raises InputError if the metric fails on it, and as `values` does."""
        (value,) = self.values([image], [reference])
        if isinstance(value, str):
            raise InputError(f"{self.name} failed on this image: {value}")
        return value

    def values(self, images: Sequence[Image], references: Sequence[Image]) -> list[float | str]:
        """Values of many images in as few requests as `BATCH_PX` allows; a failure on one is its reason in its place.

        Raises:
            InfrastructureError: no server, or a reply that is no reply of it; the text says how to start it.
        """
        found: list[float | str] = []
        while len(found) < len(images):
            begin = end = len(found)
            pixels = 0
            while end < len(images) and (end == begin or pixels + images[end].size // 3 <= BATCH_PX):
                pixels += images[end].size // 3
                end += 1
            found += self._request(images[begin:end], references[begin:end])
        return found

    def check(self) -> list[Finding]:
        """Whether the server answers, and knows the metric; it loads no weights."""
        return list(self._findings())

    def _findings(self) -> Iterator[Finding]:
        try:
            reply = self._ask("GET", "/metrics")
        except InfrastructureError as error:
            yield Finding("server", False, str(error))
            return
        yield Finding("server", True, f"{self._server.url}, pyiqa {reply.get('version')} on {reply.get('device')}")
        known = self._chosen.metric in reply.get("metrics", ())
        yield Finding("metric", known, f"{self._chosen.metric} is {'' if known else 'not '}a metric of this pyiqa")

    def _request(self, images: Sequence[Image], references: Sequence[Image]) -> list[float | str]:
        body = {
            "metric": self._chosen.metric,
            "create": self._chosen.create,
            "call": self._chosen.call,
            "images": [_address(image) for image in images],
            "references": [_address(image) for image in references] if self._needs_reference else None,
        }
        reply = self._ask("POST", "/measure", body)
        values, reasons = reply.get("values"), reply.get("reasons")
        if not (isinstance(values, list) and isinstance(reasons, list) and len(values) == len(reasons) == len(images)):
            raise InfrastructureError(f"{self._server.url} does not reply with a value for every image")
        if reply.get("lower_better") is not (self._better == "lower"):
            raise InputError(f"{self.name}: the entry says that {self._better} is better, and pyiqa says the opposite")
        return [_value(value, reason) for value, reason in zip(values, reasons, strict=True)]

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        async def attempt() -> Any:
            return (await self._server.request(method, path, body)).json()

        try:
            reply = self._server.call(attempt)
        except InfrastructureError as error:
            raise InfrastructureError(f"{self.name} is measured by a server of pyiqa: {error}; {START}") from None
        if not isinstance(reply, dict):
            raise InfrastructureError(f"{self._server.url} is no server of pyiqa; {START}")
        return reply


def _value(value: object, reason: object) -> float | str:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value):
        return float(value)
    return one_line(reason or "the value is not a finite number", 300)


def _address(image: Image) -> str:
    return "data:image/png;base64," + base64.b64encode(encode_image(image)).decode()
