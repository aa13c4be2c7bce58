"""A planted dataset whose scores follow SSIM, and not the levels of its types."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from merton.errors import UnknownNameError
from merton_studies.opinions import quality_levels
from merton_studies.opinions.quality_levels import at_quality_levels


def planted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two types, five levels, four references: SSIM of the weak type .99 - .01 level, else .9 - .1 level."""
    rows = [
        {
            "reference_id": f"r{reference}",
            "distortion": name,
            "level": level,
            "ssim": (0.99 - 0.01 * level if name == "weak" else 0.9 - 0.1 * level) - 0.001 * reference,
            "psnr": 30.0 - level,
        }
        for reference in range(4)
        for name in ("weak", "strong")
        for level in range(1, 6)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "manifest.parquet")
    columns = {name: np.array([row[name] for row in rows]) for name in ("reference_id", "distortion", "level", "ssim")}
    found = SimpleNamespace(**columns, distortion_id=columns["distortion"], about={}, value=lambda _: columns["ssim"])
    monkeypatch.setattr(quality_levels, "replace", lambda one, **changed: SimpleNamespace(**{**vars(one), **changed}))
    return found


def test_levels_are_fifths_by_ssim_and_put_the_weak_type_before_the_strong_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opinions = planted(tmp_path, monkeypatch)
    found = at_quality_levels(opinions, tmp_path, "ssim")
    assert np.bincount(found.level).tolist() == [0, 8, 8, 8, 8, 8]
    assert found.level[opinions.distortion == "weak"].max() <= 3
    assert found.level[opinions.distortion == "strong"].min() == 3
    for level in range(1, 5):
        assert opinions.ssim[found.level == level].min() >= opinions.ssim[found.level == level + 1].max()
    low, high = found.about["quality_levels"]["lowest and highest value"]["5"]
    assert (low, high) == pytest.approx((0.397, 0.5))


def test_equal_values_share_a_level_and_another_metric_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opinions = planted(tmp_path, monkeypatch)
    assert (at_quality_levels(opinions, tmp_path, "psnr").level == opinions.level).all()
    with pytest.raises(UnknownNameError, match="ssim"):
        at_quality_levels(opinions, tmp_path, "lpips")
