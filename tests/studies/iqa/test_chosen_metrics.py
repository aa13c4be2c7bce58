"""The metrics that a benchmark and a gate use by themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from merton.errors import InputError, MissingDependencyError
from merton.perception.quality import METRICS
from merton.perception.quality.metric import Measure
from merton_studies.iqa.benchmark import chosen_metrics
from merton_studies.iqa.gate_run import usable_metrics


def test_only_what_an_installation_mends_makes_a_metric_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(error: Exception) -> Measure:
        raise error

    whole = METRICS["psnr"]
    assert whole.missing() is None
    absent = replace(whole, build=lambda: build(MissingDependencyError("psnr needs a package")))
    assert absent.missing() == "psnr needs a package"
    with pytest.raises(InputError, match="broken weights"):
        replace(whole, build=lambda: build(InputError("broken weights"))).missing()
    for name in ("psnr", "ssim"):
        monkeypatch.setitem(METRICS._entries, name, absent)
    assert "blur_effect" in chosen_metrics(None)[0]
    assert "blur_effect" in usable_metrics()
    assert not {"psnr", "ssim"} & {*chosen_metrics(None)[0], *usable_metrics()}
