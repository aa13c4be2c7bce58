"""The content of an application: a model that the host is asked to evaluate, or a benchmark that wants to join.

Embodied Arena: a model brings a link to weights (Hugging Face or ModelScope) or the address of an API; a benchmark
brings a link and the relevant information. The keys are ours.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from merton.config import Model, loads
from merton.leaderboard.submissions.entrance import BENCHMARK, MODEL
from merton.leaderboard.submissions.manifest import Contact, Name, Version, parse_document

MAX_BYTES = 16_384
"""Of an application's file."""
TYPES = ("general", "embodied")
"""Embodied Arena's two types of models: general large models and embodied AI models."""
HUBS = {"huggingface.co": "", "modelscope.cn": "models/", "www.modelscope.cn": "models/"}
"""Host of a link to weights to the part of its path before owner/name."""

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


def _line(least: int, most: int) -> AfterValidator:
    def check(text: str) -> str:
        if not least <= len(text) <= most or not text.isprintable() or text != text.strip():
            raise ValueError(f"must be a line of {least} to {most} printable characters")
        return text

    return AfterValidator(check)


def _link(text: str) -> str:
    """An address that can be shown and followed: no names, passwords or blanks in it."""
    parts = urlsplit(text)
    if (
        len(text) > 300
        or not text.isascii()
        or not text.isprintable()
        or set(text) & set(" <>\"'`\\")
        or parts.scheme not in ("http", "https")
        or not parts.hostname
    ):
        raise ValueError("must be an address that begins with http:// or https://, of at most 300 characters")
    if "@" in parts.netloc:
        raise ValueError("must hold no user name or password: the host has the key in its own environment")
    try:
        parts.port  # noqa: B018
    except ValueError:
        raise ValueError("must have a port of 0 to 65535, or none") from None
    return text


def _api(text: str) -> str:
    parts = urlsplit(_link(text))
    if parts.query or parts.fragment:
        raise ValueError("must end before ? and #: it is the common prefix of the API's addresses, usually with /v1")
    return text


def _weights(text: str) -> str:
    if not _REPOSITORY.fullmatch(repository_of(text)):
        raise ValueError(
            "must be a link such as https://huggingface.co/OWNER/NAME or https://modelscope.cn/models/OWNER/NAME"
        )
    return text


def repository_of(weights: str) -> str:
    """The "owner/name" of a link to weights; "" for any other text."""
    parts = urlsplit(weights)
    before = HUBS.get(parts.hostname or "")
    path = parts.path.strip("/")
    if parts.scheme != "https" or before is None or not path.startswith(before) or parts.query or "@" in parts.netloc:
        return ""
    return path.removeprefix(before)


Link = Annotated[str, AfterValidator(_link)]
Licence = Annotated[str, _line(2, 100)]


class Application(Model):
    """The keys that both kinds have.

    Attributes:
        kind: "model" or "benchmark".
        manufacturer: who applies; compared as `manifest.canonical` says.
        name: of the model or benchmark.
        licence: under which the host may use it.
        contact: where the manufacturer can be reached; not shown on any page.
    """

    kind: str
    manufacturer: Name
    name: Name
    licence: Licence
    contact: Contact


class ModelApplication(Application):
    """A model that the host evaluates.

    Attributes:
        version: of the model.
        type: "general" or "embodied".
        weights: link to a repository of a hub; "" for an API.
        api_url: common prefix of the addresses of an API that speaks OpenAI's chat protocol; "" for weights.
        api_model: the API's name of the model.
        api_needs_key: whether the API needs a key. The key itself never stands in an application, and neither does the
            name of a variable of the host's, which a stranger must not choose: the host names it when it evaluates.
        cost_per_1000: price of a thousand calls of the API in any currency, which the host's limit of money counts by.
    """

    kind: Literal["model"]
    version: Version
    type: Literal["general", "embodied"]
    weights: Annotated[str, AfterValidator(_weights)] | None = None
    api_url: Annotated[str, AfterValidator(_api)] | None = None
    api_model: Annotated[str, _line(1, 200)] | None = None
    api_needs_key: bool = False
    cost_per_1000: Annotated[float, Field(ge=0, le=1e6)] = 0.0

    @model_validator(mode="after")
    def _can_be_reached(self) -> ModelApplication:
        if (self.weights is None) == (self.api_url is None):
            raise ValueError("name either weights, a link to a hub, or api_url, the address of an API")
        if (self.api_url is None) != (self.api_model is None):
            raise ValueError("api_url and api_model belong together")
        if self.weights is not None and (self.api_needs_key or self.cost_per_1000):
            raise ValueError("api_needs_key and cost_per_1000 are of an API; weights have neither")
        return self

    @property
    def agent_id(self) -> str:
        """The agent's id on the boards, in the form of `Receipt.agent_id`."""
        return f"{self.name} {self.version} ({self.manufacturer})"


class BenchmarkApplication(Application):
    """A benchmark that wants to join.

    Attributes:
        link: its page.
        task: the core task that it belongs to.
        description: one line.
        metrics, dimensions: of the taxonomy, by name; the fine dimensions that its questions need.
        questions: where the table of questions is.
    """

    kind: Literal["benchmark"]
    link: Link
    task: Annotated[str, _line(2, 100)]
    description: Annotated[str, _line(2, 400)]
    metrics: Annotated[tuple[Annotated[str, _line(1, 100)], ...], Field(min_length=1, max_length=20)]
    dimensions: Annotated[tuple[Annotated[str, _line(1, 100)], ...], Field(min_length=1, max_length=60)]
    questions: Link


KINDS: dict[str, type[ModelApplication] | type[BenchmarkApplication]] = {
    MODEL: ModelApplication,
    BENCHMARK: BenchmarkApplication,
}


class _Kind(BaseModel):
    """The one key that says which others there are."""

    model_config = ConfigDict(extra="ignore", strict=True)
    kind: Literal["model", "benchmark"]


def parse_application(data: bytes, name: str) -> ModelApplication | BenchmarkApplication:
    """An application's text, YAML or (if `name` says so) JSON.

    Raises:
        InputError: longer than `MAX_BYTES`, not UTF-8, hidden characters, anchors or tags, a duplicate or unknown key,
            a missing one, or a value that is not as the class of its kind says; the sentence names the line.
    """

    def read(text: str) -> ModelApplication | BenchmarkApplication:
        return loads(text, KINDS[loads(text, _Kind, name).kind], name)

    return parse_document(data, name, MAX_BYTES, read)


def application_json(application: Application) -> str:
    """The application as canonical JSON, as the record keeps it."""
    plain: dict[str, Any] = application.model_dump(mode="json", exclude_none=True)
    return json.dumps(plain, sort_keys=True, ensure_ascii=False)


def application_of(content: str) -> ModelApplication | BenchmarkApplication:
    """The application in the record's JSON, unchecked: one that was accepted under older rules must still be shown."""
    values = json.loads(content)
    for name in ("metrics", "dimensions"):
        if name in values:
            values[name] = tuple(values[name])
    if values["kind"] == MODEL:
        return ModelApplication.model_construct(**values)
    return BenchmarkApplication.model_construct(**values)
