"""Opinions that were collected elsewhere: mapped to 0 .. 5, with or without raters, and read by every later command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from miniature_dataset import write_miniature
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton.perception.dataset.tables import read_table
from merton.results.csv_writer import write_csv
from merton.results.parquet import metadata, read_schema
from merton_studies.annotate.foreign_opinions import import_opinions
from merton_studies.iqa.folds import folds
from merton_studies.iqa.judged import read_judged
from merton_studies.opinions.opinion import read_opinions, read_subjects
from merton_studies.opinions.whose import whose

pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pictures of each of six scenes, two types at all levels."""
    return write_miniature(tmp_path_factory.mktemp("opinions") / "data", scenes=6, side_px=32)


def files_of(dataset: Path) -> list[tuple[str, int]]:
    """File and level of every distorted picture."""
    return [(row["file"], row["level"]) for row in read_table(dataset / "manifest.parquet")]


def rated(dataset: Path, folder: Path, raters: int = 6) -> Path:
    """Each picture judged from 1 to 5 by half of the raters, one more at lower levels: rows of picture and rater."""
    rng = np.random.default_rng(0)
    rows = []
    for place, (file, level) in enumerate(files_of(dataset)):
        for rater in range(place % 2, raters, 2):
            score = float(np.clip(6 - level + rng.normal(0, 0.5), 1, 5).round(2))
            rows.append((file, f"rater {rater}", score))
    return write_csv(folder / "raw.csv", ("image", "rater", "score"), rows)


def test_means_are_mapped_by_the_scale_and_its_direction(dataset: Path, tmp_path: Path) -> None:
    """By hand: a DMOS of 30 on 0 .. 100 is 5 (1 - .3) = 3.5, its deviation of 8 is .4, and 70 as a MOS the same 3.5."""
    names = ("Name", "dmos", "sd", "n")
    table = write_csv(tmp_path / "dmos.csv", names, [(file, 10 * level, 8, 20) for file, level in files_of(dataset)])
    columns = {"image": "Name", "score": "dmos"}
    found, _ = import_opinions(table, dataset, tmp_path / "one", (0, 100), "lower", "decision", columns)
    assert found.stages == ["decision"]
    three = found.level == 3
    assert found.decision[three] == pytest.approx(3.5)
    assert found.sos["decision"][three] == pytest.approx(0.4)
    assert set(found.n["decision"].tolist()) == {20}
    assert not (tmp_path / "one" / "subjects.parquet").exists()
    kept = read_opinions(tmp_path / "one" / "opinions.parquet")
    assert kept.decision.tolist() == found.decision.tolist()
    assert whose(kept.about, "decision") == "raters of dmos.csv, which names none"
    turned = write_csv(
        tmp_path / "mos.csv", names, [(file, 100 - 10 * level, 8, 20) for file, level in files_of(dataset)]
    )
    other, _ = import_opinions(turned, dataset, tmp_path / "two", (0, 100), "higher", "decision", columns)
    assert other.decision == pytest.approx(found.decision, abs=1e-12)
    assert other.jnd_decision.tolist() == found.jnd_decision.tolist()


def test_raters_are_subjects_and_judge_what_they_judge(dataset: Path, tmp_path: Path) -> None:
    table = rated(dataset, tmp_path)
    found, _ = import_opinions(table, dataset, tmp_path / "out", (1, 5), "higher", "cognition")
    assert not np.isnan(found.cognition).any(), "the mean of those who judged an image"
    assert set(found.n["cognition"].tolist()) == {3}
    sums = read_subjects(tmp_path / "out" / "subjects.parquet")
    assert len(sums.models) == 6
    assert np.isnan(sums.values["cognition"]).mean() == 0.5
    assert metadata(read_schema(tmp_path / "out" / "subjects.parquet", ()))["imported"]["range"] == [1, 5]
    judged = read_judged(dataset, tmp_path / "out" / "subjects.parquet", "cognition")
    assert judged.labels == pytest.approx(found.cognition, abs=1e-6), "subjects.parquet has float32"
    assert judged.remarks == ("cognition stands for opinions of 6 raters, imported from raw.csv.",)
    for fold in (*folds(judged, "reference", 2), *folds(judged, "subject", 1)):
        assert not np.isnan(fold.labels[fold.train]).any()
        assert fold.subjects is not None
        assert np.isfinite(fold.subjects[0]["cognition"][fold.test]).any()
    rows = table.read_text().splitlines()
    table.write_text("\n".join([rows[0], *rows[:0:-1]]) + "\n")
    import_opinions(table, dataset, tmp_path / "turned", (1, 5), "higher", "cognition")
    again = read_opinions(tmp_path / "turned" / "opinions.parquet")
    assert again.cognition.tolist() == found.cognition.tolist(), "the order of rows plays no part"


def test_the_stages_and_dimensions_of_a_published_table(dataset: Path, tmp_path: Path) -> None:
    """A table may hold the values themselves, as a data set of models' opinions does."""
    rows = [
        {**{name: row[name] for name in ("distortion", "level")}, "reference_id": row["reference_id"],
         "cognition": 5 - row["level"], "decision": 4.5 - row["level"] / 2, "state": 4.0}
        for row in read_table(dataset / "manifest.parquet")
    ]  # fmt: skip
    table = tmp_path / "scores.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found, remarks = import_opinions(table, dataset, tmp_path / "out", (0, 5), "higher")
    assert remarks == ()
    assert found.stages == ["cognition", "decision"]
    assert found.cognition.tolist() == (5.0 - found.level).tolist()
    assert set(found.state.tolist()) == {4.0}
    assert np.isnan(found.rotation).all()


@pytest.mark.parametrize("form", ["raters", "means"])
def test_every_later_command_takes_them_and_says_whose(dataset: Path, tmp_path: Path, form: str) -> None:
    table, score = rated(dataset, tmp_path), "score"
    if form == "means":
        rng = np.random.default_rng(1)
        rows = [(file, round(5.5 - level + rng.uniform(-0.4, 0.4), 3)) for file, level in files_of(dataset)]
        table, score = write_csv(tmp_path / "raw.csv", ("image", "mos"), rows), "mos"

    def merton(*words: object) -> Any:
        result = CliRunner().invoke(app, [*map(str, words)])
        assert result.exit_code == 0, (result.output, result.exception)
        return result

    scale = ("--range", 0, 6, "--better", "higher", "--label", "decision")
    said = merton("study", "import", table, dataset, *scale, "--column", f"score={score}", "-o", tmp_path / "o").stdout
    who = "6 raters, imported from raw.csv" if form == "raters" else "raters of raw.csv, which names none"
    assert f"decision: 180 of 180 images have an opinion of {who}" in said
    merton("study", "dataset", tmp_path / "o", dataset, "--out", tmp_path / "study.html")
    page = (tmp_path / "study.html").read_text()
    assert f"Decision: opinions of {who}" in page
    assert "the mean of 6 VLA" not in page
    file = tmp_path / "o" / ("subjects.parquet" if form == "raters" else "opinions.parquet")
    judging = merton(
        *("iqa", "benchmark", dataset, file, "--metrics", "psnr,ssim", "--splits", "reference", "--repeats", 2),
        *("--workers", 1, "--out", tmp_path / "b"),
    )
    assert f"decision stands for opinions of {who}" in judging.stderr
    assert f"opinions of {who}" in (tmp_path / "b" / "decision.html").read_text()


@pytest.mark.parametrize(
    ("cells", "options", "words"),
    [
        (("distorted/nothing.png", 3), {}, "line 2: image 'distorted/nothing.png' is not in"),
        ((None, 6), {}, "line 2: score is '6'; it must be a number from 1 to 5"),
        ((None, "good"), {}, "line 2: score is 'good'"),
        ((None, 3), {"label": None}, "--label is missing"),
        ((None, 3), {"label": "taste"}, "unknown label 'taste'"),
        ((None, 3), {"scale": (5, 1)}, "--range 5 1: the lowest score must be below the highest"),
        ((None, 3), {"better": "more"}, "unknown direction 'more'"),
        ((None, 3), {"columns": {"score": "MOS"}}, "there is no column 'MOS' for score"),
    ],
    ids=["image", "off-scale", "text", "no-label", "label", "range", "better", "column"],
)
def test_a_wrong_table_or_scale_is_one_sentence(
    dataset: Path, tmp_path: Path, cells: tuple[Any, Any], options: dict[str, Any], words: str
) -> None:
    file = cells[0] or files_of(dataset)[0][0]
    table = write_csv(tmp_path / "wrong.csv", ("image", "score"), [(file, cells[1])])
    wanted: dict[str, Any] = {"scale": (1, 5), "better": "higher", "label": "decision", **options}
    with pytest.raises(InputError) as error:
        import_opinions(table, dataset, tmp_path / "out", **wanted)
    assert words in str(error.value)


def test_a_picture_that_stands_twice_is_refused(dataset: Path, tmp_path: Path) -> None:
    file = files_of(dataset)[0][0]
    table = write_csv(tmp_path / "twice.csv", ("image", "score"), [(file, 3), (Path(file).name, 4), (file, 4)])
    with pytest.raises(InputError, match="line 3: image"):
        import_opinions(table, dataset, tmp_path / "out", (1, 5), "higher", "decision")
    table = write_csv(tmp_path / "twice.csv", ("image", "score"), [(file, 3), (file, 4)])
    with pytest.raises(InputError, match=r"line 3: has a picture that stands in .*line 2 already"):
        import_opinions(table, dataset, tmp_path / "out", (1, 5), "higher", "decision")


def test_a_reference_beside_the_image_is_no_other_picture(dataset: Path, tmp_path: Path) -> None:
    """Tables of databases name both: the score is of the copy, not of the undistorted picture."""
    row = read_table(dataset / "manifest.parquet")[0]
    table = write_csv(tmp_path / "both.csv", ("image", "reference", "score"), [(row["file"], row["reference_id"], 3)])
    found, _ = import_opinions(table, dataset, tmp_path / "out", (1, 5), "higher", "decision")
    assert len(found.level) - len(found.unused("decision")) == 1


@pytest.mark.parametrize("score", [3, "nan"], ids=["reference", "no-score"])
def test_a_table_without_an_opinion_of_a_copy_is_refused(dataset: Path, tmp_path: Path, score: Any) -> None:
    reference = read_table(dataset / "references.parquet")[0]["id"]
    file = files_of(dataset)[0][0]
    rows = [("", reference, score)] if score == 3 else [(file, "", score)]
    table = write_csv(tmp_path / "none.csv", ("image", "reference", "score"), rows)
    with pytest.raises(InputError, match="no row has a score of a distorted picture"):
        import_opinions(table, dataset, tmp_path / "out", (1, 5), "higher", "decision")
    assert not (tmp_path / "out" / "opinions.parquet").exists()
