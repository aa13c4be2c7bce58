"""`merton iqa train` on a miniature dataset."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from miniature_dataset import write_miniature
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import MissingDependencyError
from merton.perception.dataset.tables import read_table
from merton.perception.quality.learned import TRAINABLE
from merton.perception.quality.pairs import ImagePair
from merton_studies.iqa.benchmark import chosen_metrics
from merton_studies.opinions.opinion import SubjectSums, write_subjects


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two scenes, three cameras, 60 images, and two subjects whose decisions get worse with the level."""
    pytest.importorskip("torch")
    data = write_miniature(tmp_path_factory.mktemp("train") / "data", scenes=2)
    rows = read_table(data / "manifest.parquet")
    sums = np.array([[5 - 0.5 * row["level"] - 0.1 * subject for row in rows] for subject in range(2)])
    blank = {name: np.full(sums.shape, np.nan) for name in ("cognition", "bleu", "rouge_l", "cider")}
    values = {**dict.fromkeys(("decision", "position", "rotation", "state"), sums), **blank}
    names = [row["reference_id"] for row in rows]
    found = SubjectSums(
        np.array(["one", "two"]),
        np.array([name.rpartition("_")[0] for name in names]),
        np.array(names),
        np.array([row["distortion"] for row in rows]),
        np.array([row["level"] for row in rows]),
        values,
        5,
        {},
    )
    subjects = data.parent / "subjects.parquet"
    write_subjects(found, subjects)
    return data, subjects


def test_the_command_writes_weights_that_predict(study: tuple[Path, Path], tmp_path: Path) -> None:
    data, subjects = study
    given = ["iqa", "train", str(data), str(subjects), "--metric=merton-fr", f"--out={tmp_path}", "--epochs=3"]
    result = CliRunner().invoke(app, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "merton-fr learned decision from 60 images" in result.output
    before = (tmp_path / "weights.npz").read_bytes()
    assert CliRunner().invoke(app, given, catch_exceptions=False).exit_code == 0
    assert (tmp_path / "weights.npz").read_bytes() == before
    row = read_table(data / "manifest.parquet")[0]
    pair = ImagePair(data / row["file"], data / "references" / f"{row['reference_id']}.png")
    assert 0 < TRAINABLE["merton-fr"].predict(tmp_path / "weights.npz", [pair])[0] < 6


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--metric=merton-nx", "unknown trainable metric 'merton-nx'"),
        ("--label=taste", "unknown label 'taste'"),
        ("--label=cognition", "has no opinions of cognition"),
    ],
)
def test_mistakes_are_one_sentence(option: str, said: str, study: tuple[Path, Path], tmp_path: Path) -> None:
    data, subjects = study
    given = ["iqa", "train", str(data), str(subjects), "--metric=merton-nr", f"--out={tmp_path}", option]
    result = CliRunner().invoke(app, given)
    assert isinstance(result.exception, Exception)
    assert said in f"{result.exception} {result.output}"


def test_a_metric_that_cannot_be_trained_here_is_not_offered_and_refused_before_any_work(
    study: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    assert chosen_metrics(None)[1] == ["cnniqa", "merton-nr", "merton-fr"]
    data, subjects = map(str, study)
    for given in (
        ["benchmark", data, subjects, "--metrics=psnr,lite-dists", "--splits=reference"],
        ["train", data, subjects, "--metric=lite-dists"],
        ["cross", "lite-dists", "--on=decision", f"--dataset={data}", f"--opinions={subjects}"],
    ):
        result = CliRunner().invoke(app, ["iqa", *given, f"--out={tmp_path / 'out'}"])
        assert isinstance(result.exception, MissingDependencyError), result.output
        assert re.search("needs efficientnet[-_]lite[-_]pytorch: install it with", str(result.exception))
        assert not (tmp_path / "out").exists()
