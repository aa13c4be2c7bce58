"""Metrics behind the server of pyiqa: against a stand-in for pyiqa, which is not installed here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from miniature_dataset import write_miniature
from pyiqa_stand_in import StandIn

from merton.errors import InfrastructureError
from merton.perception.quality.catalogue import CATALOGUE
from merton_studies.iqa.values import PARTS, metric_values


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
