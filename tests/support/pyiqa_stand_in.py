"""A stand-in for pyiqa, which is not installed here, behind Merton's own server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from merton.models import serving
from merton.perception.quality import pyiqa_server
from merton.world.observation import Image


class StandIn:
    """In place of `pyiqa_server.PyIqa`: its metrics are differences of means; black images fail."""

    version, device = "stand-in", "cpu"
    names = ("ckdn", "dists", "qalign", "topiq_fr")

    def __init__(self) -> None:
        self.requests: list[tuple[str, int, dict[str, Any], dict[str, Any]]] = []
        self.broken = False

    def load(self, metric: str, create: dict[str, Any]) -> SimpleNamespace:
        return SimpleNamespace(name=metric, create=create, lower_better=metric in ("dists", "ckdn"))

    def measure(self, loaded: Any, images: list[Image], references: Any, call: dict[str, Any]) -> list[float]:
        self.requests.append((loaded.name, len(images), loaded.create, call))
        if self.broken or not all(image.any() for image in images):
            raise RuntimeError("black")
        others = references or [np.zeros_like(image) for image in images]
        return [float(one.mean() - two.mean()) for one, two in zip(images, others, strict=True)]


@contextmanager
def served(metrics: StandIn) -> Iterator[str]:
    """The address of a server with it, on the loopback."""
    server = serving.Http(pyiqa_server.routes(metrics), "127.0.0.1", 0)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.close()
        thread.join()


def address_of_nothing() -> str:
    """An address on the loopback where no server is."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, and never listening
        return f"http://127.0.0.1:{held.getsockname()[1]}"
