"""A study of pictures that somebody else distorted, with opinions by the planted law of `foreign_images`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from foreign_images import HARM, NAMED, SEVERITIES, TYPES, quality, write_foreign

from merton.perception.dataset.foreign import read_foreign
from merton.perception.dataset.importing import import_dataset
from merton_studies.annotate.opinions import read_annotations
from merton_studies.annotate.views import scenes_of
from merton_studies.iqa.judged import read_judged
from merton_studies.iqa.metric_table import columns
from merton_studies.opinions.claims import NO_TYPE
from merton_studies.opinions.dataset import DatasetStudy, dataset_study, extreme_levels, map_rows
from merton_studies.opinions.dataset_page import write_dataset_page
from merton_studies.opinions.opinion import VALUES, SubjectSums, opinions, read_images, subject_sums, write_subjects

SUBJECTS = ("vlm-a", "vlm-b")
WORDS = "prints, imported: 7 types at 4 levels"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_foreign(tmp_path_factory.mktemp("lab") / "prints", 8, size_px=(48, 40))
    out = tmp_path_factory.mktemp("imported") / "data"
    import_dataset(read_foreign(made.table, columns=NAMED), out, workers=1)
    return out


@pytest.fixture(scope="module")
def subjects(dataset: Path) -> Path:
    """The sums of two VLMs that follow the law, of each image."""
    images = read_images(dataset)
    rng = np.random.default_rng(0)
    law = [
        quality(kind, SEVERITIES[level - 1])
        for kind, level in zip(images.distortion.tolist(), images.level.tolist(), strict=True)
    ]
    own = np.clip(np.array(law) + rng.normal(0.0, 0.1, (len(SUBJECTS), len(law))), 0.0, 5.0)
    values = {name: own if VALUES.index(name) < 4 else np.full_like(own, np.nan) for name in VALUES}
    scenes = np.array([f"place{int(name.removeprefix('view')) // 2:02}" for name in images.reference_id.tolist()])
    sums = SubjectSums(
        np.array(SUBJECTS), scenes, images.reference_id, images.distortion, images.level, values, 5, {}
    )  # fmt: skip
    write_subjects(sums, dataset.parent / "subjects.parquet")
    return dataset.parent / "subjects.parquet"


@pytest.fixture(scope="module")
def study(dataset: Path, subjects: Path) -> DatasetStudy:
    found = read_annotations([subjects], dataset)
    return dataset_study(opinions(found.sums, found.images), found.sums)


def test_levels_and_types_are_those_of_the_dataset(study: DatasetStudy) -> None:
    assert study.opinions.levels == (1, 2, 3, 4)
    assert extreme_levels(study.opinions) == ((3, 4), (1,))
    assert [len(classes) for _, classes in map_rows(study.opinions, "cognition")] == [4] * len(TYPES)
    trends = study.stages["cognition"].results.trends
    assert [trend.distortion for trend in trends] == list(TYPES)
    assert all(trend.falls for trend in trends)
    for trend in trends:  # from severity .1 to 1 the law loses its harm, less the root of .1 of it
        assert trend.ends == (1, 4)
        assert trend.fall == pytest.approx(HARM[trend.distortion] * (1.0 - 0.1**0.5), abs=0.15)


def test_sentences_about_types_that_are_not_there_are_not_applicable(study: DatasetStudy) -> None:
    of_types = [claim for claim in study.claims if claim.measured == NO_TYPE]
    assert len(of_types) == 6
    assert {claim.verdict for claim in of_types} == {"not applicable"}
    assert all(claim.verdict != "not applicable" for claim in study.claims if claim not in of_types)


def test_the_page_and_the_table_say_whose_distortions_they_show(
    study: DatasetStudy, dataset: Path, subjects: Path, tmp_path: Path
) -> None:
    page = write_dataset_page(study, [], tmp_path / "study.html").read_text(encoding="utf-8")
    assert f"Distortions: {WORDS}." in page
    assert '<th scope="col">level 4</th>' in page
    assert '<th scope="col">level 5</th>' not in page
    judged = read_judged(dataset, subjects, "cognition")
    assert (judged.about["distortions"], judged.about["levels"]) == (WORDS, 4)
    table = columns(judged.opinions, "cognition")
    assert [column.name for column in table if column.name.startswith("level_")] == [f"level_{k}" for k in (1, 2, 3, 4)]


def test_a_reference_with_fewer_tasks_has_its_sum_scaled_to_five(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    scores = {("one", "t1"): 0.5, ("two", "t1"): 0.5, ("two", "t2"): 1.0, ("torn", "t1"): 0.5}
    rows = [
        {
            "model": "a",
            "scene": ref,
            "image": f"{ref}.fog",
            "task": task,
            "dimension": "cognition",
            "level": 1,
            "score": s,
        }
        for (ref, task), s in scores.items()
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "scores.parquet")
    found = subject_sums([tmp_path / "scores.parquet"], {"one": 1, "two": 2, "torn": 2})
    sums = dict(zip(found.reference_id.tolist(), found.values["cognition"][0].tolist(), strict=True))
    assert (sums["one"], sums["two"]) == (2.5, 3.75)
    assert np.isnan(sums["torn"])  # one of its two tasks has no score


def test_the_scenes_of_imported_references_are_those_of_the_table(dataset: Path) -> None:
    """Two references show each scene; each by itself would make intervals too narrow."""
    assert scenes_of(dataset) == {f"view{number:03}": f"place{number // 2:02}" for number in range(8)}
