"""The contract of a model adapter: the part common to VLMs and policies."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Request = TypeVar("Request")
Response = TypeVar("Response")


@dataclass(frozen=True)
class Finding:
    """One result of a check of a model, with a remedy if there is one."""

    subject: str
    ok: bool
    detail: str
    remedy: str = ""


class ModelAdapter(ABC, Generic[Request, Response]):
    """A model behind an adapter. Building one loads nothing heavy; the first request, or `warm_up`, does.

    Attributes:
        name: its name in the catalogue.
        adapter_version: part of the key of stored responses, to be raised with every change that may change a response;
            "": every change to the adapter's sources counts as one (`merton_studies.annotate.identity`).
    """

    name: str
    adapter_version: str = ""

    @abstractmethod
    def respond(self, requests: Sequence[Request]) -> Sequence[Response | Exception]:
        """One response to each request, in their order; an exception in the list is the outcome of that request alone.

        An exception that is raised is the outcome of the whole batch.
        """

    @abstractmethod
    def make_example(self) -> Request:
        """A made-up request that the model accepts, for `warm_up` and `check`."""

    @staticmethod
    @abstractmethod
    def summary(response: Response) -> str:
        """A response in a few words, for `check`."""

    def warm_up(self) -> None:
        """Load the model, and respond to the example."""
        self._respond_to_example()

    def check(self) -> Iterator[Finding]:
        """Check the model's parts without the network; the last finding is the response to the example."""
        started = time.perf_counter()
        response = self._respond_to_example()
        milliseconds = 1000 * (time.perf_counter() - started)
        yield Finding("example", True, f"{self.summary(response)} in {milliseconds:.0f} ms")

    def _respond_to_example(self) -> Response:
        response = self.respond([self.make_example()])[0]
        if isinstance(response, Exception):
            raise response
        return response
