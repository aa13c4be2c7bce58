"""Values of metrics on a dataset: complete, resumed, and never lost because of one image."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from miniature_dataset import picture, write_miniature

from merton.errors import InputError, UnknownNameError
from merton.perception.dataset.tables import read_table
from merton.perception.images import encode_image, read_image
from merton.perception.quality import METRICS, measure
from merton_studies.iqa import values
from merton_studies.iqa.values import PARTS, TABLE, metric_values


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scenes, three cameras, two types at two levels: 24 images."""
    return write_miniature(tmp_path_factory.mktemp("iqa") / "data", scenes=2, levels=(1, 4))


def test_every_image_has_the_value_that_measure_gives(dataset: Path, tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    found = metric_values(dataset, ["psnr", "blur_effect"], tmp_path, 1, lambda *place: progress.append(place))
    assert progress == [(4 * n, 24) for n in range(1, 7)]
    rows = read_table(dataset / "manifest.parquet")
    assert found.keys == tuple((row["reference_id"], row["distortion"], row["level"]) for row in rows)
    np.testing.assert_array_equal(found.values["psnr"], [row["psnr"] for row in rows])
    row = rows[9]
    assert found.values["blur_effect"][9] == measure("blur_effect", read_image(dataset / row["file"]))
    table = read_table(tmp_path / TABLE)
    assert [tuple(row.values()) for row in table[18:20]] == [
        (*found.keys[9], "psnr", row["psnr"], None),
        (*found.keys[9], "blur_effect", found.values["blur_effect"][9], None),
    ]
    assert found.failures == ()


def test_two_processes_and_a_killed_one_give_the_same_bytes(dataset: Path, tmp_path: Path) -> None:
    """The first process is killed when the first part is there; the second measures what is missing."""
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    metric_values(dataset, ["psnr", "ssim"], whole, workers=2)
    code = f"""
import os, signal
from pathlib import Path
from merton_studies.iqa.values import metric_values
metric_values(Path({str(dataset)!r}), ["psnr", "ssim"], Path({str(resumed)!r}), 1,
              lambda done, _: done < 8 or os.kill(os.getpid(), signal.SIGKILL))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    parts = sorted((resumed / PARTS).glob("*.json"))
    assert len(parts) == 2
    before = [part.stat().st_mtime_ns for part in parts]
    progress: list[tuple[int, int]] = []
    metric_values(dataset, ["psnr", "ssim"], resumed, 1, lambda *place: progress.append(place))
    assert progress[0] == (8, 24), "what was there before is told at once"
    assert (resumed / TABLE).read_bytes() == (whole / TABLE).read_bytes()
    assert [part.stat().st_mtime_ns for part in parts] == before


def test_a_further_metric_leaves_the_values_there_are(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric_values(dataset, ["psnr"], tmp_path, 1)
    asked: list[str] = []
    monkeypatch.setattr(values, "measure", lambda name, *images: asked.append(name) or measure(name, *images))
    found = metric_values(dataset, ["psnr", "noise_sigma"], tmp_path, 1)
    assert set(asked) == {"noise_sigma"}
    assert list(found.values) == ["psnr", "noise_sigma"]
    assert len(asked) == 24


def test_changed_code_of_a_metric_is_measured_again(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric_values(dataset, ["psnr"], tmp_path, 1)
    monkeypatch.setattr(values, "code_sha256", lambda name: "edited")
    monkeypatch.setattr(values, "measure", lambda *_: 1.0)
    assert set(metric_values(dataset, ["psnr"], tmp_path, 1).values["psnr"]) == {1.0}


def test_one_image_that_fails_costs_its_own_value_alone(tmp_path: Path) -> None:
    dataset = write_miniature(tmp_path / "data", scenes=1, levels=(1, 4))
    rows = read_table(dataset / "manifest.parquet")
    (dataset / rows[1]["file"]).write_bytes(encode_image(picture(48, 99)))
    (dataset / rows[2]["file"]).unlink()
    found = metric_values(dataset, ["psnr", "ms_ssim"], tmp_path / "out", 1)
    assert np.flatnonzero(np.isnan(found.values["psnr"])).tolist() == [1, 2]
    assert np.isnan(found.values["ms_ssim"]).all()
    assert found.failures[0] == f"ms_ssim of {rows[0]['file']}: ms_ssim needs at least 176 x 176 pixels, got 48 x 48"
    assert found.failures[1] == (
        f"psnr of {rows[1]['file']}: {rows[1]['file']} has changed since the dataset was built: see `merton dataset "
        "verify`"
    )
    assert found.failures[3].endswith("cannot be read: No such file or directory")
    assert len(found.failures) == 2 + 12
    assert sum(row["value"] is None for row in read_table(tmp_path / "out" / TABLE)) == 14


def test_values_are_given_for_the_images_that_are_asked_for_and_rise_with_quality(
    dataset: Path, tmp_path: Path
) -> None:
    found = metric_values(dataset, ["psnr", "noise_sigma"], tmp_path, 1)
    keys = [found.keys[7], found.keys[2]]
    psnr, noise = (found.of(name, *zip(*keys, strict=True)) for name in ("psnr", "noise_sigma"))
    assert METRICS["noise_sigma"].better == "lower"
    assert psnr.tolist() == found.values["psnr"][[7, 2]].tolist()
    assert noise.tolist() == (-found.values["noise_sigma"][[7, 2]]).tolist()
    with pytest.raises(InputError, match=r"^the opinions are of another dataset: fog at level 3 of 'x' is not in this"):
        found.of("psnr", ["x"], ["fog"], [3])


def test_mistakes_are_one_sentence(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown quality metric 'pnsr'; did you mean 'psnr'"):
        metric_values(dataset, ["pnsr"], tmp_path)
    with pytest.raises(InputError, match=r"^name at least one metric of: psnr,"):
        metric_values(dataset, [], tmp_path)
    with pytest.raises(InputError, match="holds no finished dataset"):
        metric_values(tmp_path, ["psnr"], tmp_path)
