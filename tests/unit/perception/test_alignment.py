"""Levels of equal quality: SSIM agrees across types, on other pictures too."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from merton.errors import InputError, UnknownNameError
from merton.perception.dataset import build, layout, verify
from merton.perception.dataset.alignment import Alignment, align, tolerances
from merton.perception.dataset.tables import read_table
from merton.perception.distortion import DISTORTIONS
from merton.world.observation import Image

FEW = ("gaussian_blur", "jpeg", "white_noise", "multiplicative_noise")


def scene(seed: int) -> Image:
    """Smooth clouds of colour with edges, 160 x 120."""
    rng = np.random.default_rng(seed)
    clouds = cv2.resize(rng.uniform(40, 215, (12, 16, 3)), (160, 120), interpolation=cv2.INTER_CUBIC)
    for _ in range(12):
        x, y = rng.integers(0, 140), rng.integers(0, 100)
        cv2.rectangle(clouds, (int(x), int(y)), (int(x) + 18, int(y) + 14), rng.uniform(0, 255, 3).tolist(), -1)
    return np.clip(clouds, 0, 255).astype(np.uint8)


def pictures(folder: Path, seeds: range) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        cv2.imwrite(str(folder / f"{seed:02d}.png"), scene(seed))
    return sorted(folder.iterdir())


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {name: DISTORTIONS[name] for name in FEW}
    for module in ("alignment", "reference"):
        monkeypatch.setattr(f"merton.perception.dataset.{module}.DISTORTIONS", entries)


@pytest.mark.usefixtures("_few")
def test_types_agree_in_ssim_on_pictures_that_were_not_measured(tmp_path: Path) -> None:
    files, held_out = pictures(tmp_path / "a", range(2)), tmp_path / "b"
    pictures(held_out, range(10, 12))
    table = align(files, workers=1)
    for level, target, most in zip("12345", table.targets, tolerances(table.targets), strict=True):
        values = [found[level].value for found in table.types.values() if level in found]
        assert len(values) >= 2
        assert np.abs(np.array(values) - target).max() <= most
    there = {name: len(found) for name, found in table.types.items()}
    assert all(there[name] + len(table.left_out.get(name, ())) == 5 for name in FEW), "no level is lost in silence"
    spread = {}
    for levels in ("all", "aligned"):
        build(held_out, tmp_path / levels, levels=levels, workers=1)
        rows = read_table(tmp_path / levels / layout.MANIFEST)
        assert {row["distortion"] for row in rows} <= set(FEW)
        means = {
            (row["distortion"], row["level"]): np.mean(
                [r["ssim"] for r in rows if (r["distortion"], r["level"]) == (row["distortion"], row["level"])]
            )
            for row in rows
        }
        spread[levels] = np.mean(
            [np.ptp([value for (_, at), value in means.items() if at == level]) for level in range(1, 6)]
        )
    assert spread["aligned"] < 0.06, spread
    assert spread["aligned"] < spread["all"] / 4, spread


@pytest.mark.usefixtures("_few")
def test_an_aligned_dataset_has_its_table_and_the_same_bytes_again(tmp_path: Path) -> None:
    folder = tmp_path / "references"
    pictures(folder, range(2))
    result = build(folder, tmp_path / "1", levels="aligned:psnr", workers=1)
    build(folder, tmp_path / "2", levels="aligned:psnr", workers=1)
    table = Alignment.model_validate_json((tmp_path / "1" / layout.ALIGNMENT).read_text())
    assert table.metric == "psnr"
    assert result.distorted == 2 * sum(len(found) for found in table.types.values())
    for name in (layout.ALIGNMENT, layout.MANIFEST, layout.SUMS):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    assert build(folder, tmp_path / "1", levels="aligned:psnr", workers=1).reused == result.distorted
    assert verify(tmp_path / "1") == []
    (tmp_path / "1" / layout.ALIGNMENT).write_text("{}")
    assert verify(tmp_path / "1") == [f"{layout.ALIGNMENT} has changed"]


def test_wrong_words_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "references"
    pictures(folder, range(1))
    for levels in ("equal", "all:ssim", "aligned:sims"):
        with pytest.raises(UnknownNameError):
            build(folder, tmp_path / "out", levels=levels)
    with pytest.raises(InputError, match="at least one reference picture"):
        align([])
