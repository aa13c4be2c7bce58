"""Metrics behind the server of pyiqa: against a stand-in for pyiqa, which is not installed here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from miniature_dataset import write_miniature

from merton.errors import InfrastructureError
from merton.models import serving
from merton.perception.quality import pyiqa_server
from merton.perception.quality.catalogue import CATALOGUE
from merton.world.observation import Image
from merton_studies.iqa.values import PARTS, metric_values


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


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A running server with it."""
    metrics = StandIn()
    server = serving.Http(pyiqa_server.routes(metrics), "127.0.0.1", 0)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    monkeypatch.setenv("MERTON_IQA_SERVER", f"http://127.0.0.1:{server.port}")
    yield metrics
    server.close()
    thread.join()


def test_a_dataset_is_measured_in_batches_and_a_server_that_ends_loses_nothing(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = write_miniature(tmp_path / "data", scenes=1, levels=(1, 4))
    found = metric_values(dataset, ["topiq_fr", "psnr"], tmp_path / "out", 1)
    assert np.isfinite(found.values["topiq_fr"]).all()
    assert {count for _, count, _, _ in stand_in.requests} == {4}
    monkeypatch.setenv("MERTON_IQA_SERVER", "http://127.0.0.1:1")
    with pytest.raises(InfrastructureError, match="topiq_nr is measured by a server"):
        metric_values(dataset, ["topiq_fr", "topiq_nr"], tmp_path / "out", 1)
    assert "topiq_nr" not in next((tmp_path / "out" / PARTS).glob("*.json")).read_text()
    again = metric_values(dataset, ["topiq_fr", "psnr"], tmp_path / "out", 1)
    np.testing.assert_array_equal(again.values["topiq_fr"], found.values["topiq_fr"])


def test_kept_values_of_other_weights_are_measured_again(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = write_miniature(tmp_path / "data", scenes=1, levels=(1,))
    metric_values(dataset, ["topiq_fr"], tmp_path / "out", 1)
    metric_values(dataset, ["topiq_fr"], tmp_path / "out", 1)
    first = len(stand_in.requests)
    trained = {"metric": "topiq_fr", "create": {"pretrained_model_path": "ours.pth"}}
    entry = CATALOGUE["topiq_fr"].model_copy(update={"settings": trained})
    monkeypatch.setitem(CATALOGUE._entries, "topiq_fr", entry)
    metric_values(dataset, ["topiq_fr"], tmp_path / "out", 1)
    assert [create for _, _, create, _ in stand_in.requests[first:]] == [trained["create"]] * first
