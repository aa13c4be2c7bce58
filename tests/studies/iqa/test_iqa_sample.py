"""The sample whose opinions come with Merton, made again on this machine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import pyarrow.compute
import pyarrow.parquet
import pytest

from merton.decision.models.base import PolicyEntry
from merton.files import resource
from merton.models.catalogue import VARIABLE, Catalogue
from merton.perception.dataset.tables import read_table
from merton.world.tasks import TASKS
from merton_studies.iqa import sample

TYPES = ("gaussian_blur", "white_noise")


@pytest.mark.usefixtures("renders")
def test_the_pictures_are_those_that_were_scored_or_counted_as_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one scene of each split and two types; a renderer of another version may give other bits."""
    scored = pyarrow.parquet.read_table(sample.MANIFEST)
    compute = pyarrow.compute
    few = compute.and_(
        compute.match_substring_regex(scored["reference_id"], "_00_"),
        compute.is_in(scored["distortion"], pyarrow.array(TYPES)),
    )
    shortened = tmp_path / "scored.parquet"
    pyarrow.parquet.write_table(scored.filter(few), shortened)
    monkeypatch.setattr(sample, "SCENES", 1)
    monkeypatch.setattr(sample, "MANIFEST", shortened)
    monkeypatch.setattr("merton.processes.usable_cores", lambda: 1)
    steps = set()

    def step(name: str) -> AbstractContextManager[Callable[[int, int], None]]:
        return nullcontext(lambda done, total: steps.add((name, total)))

    same, total = sample.make_sample(tmp_path / "data", step)
    assert total == 2 * 3 * len(TYPES)
    assert steps == {("render pictures", 6), ("distort each 30 times", total)}

    made = read_table(tmp_path / "data" / "manifest.parquet")
    assert [(row["reference_id"], row["distortion"], row["level"], row["seed"]) for row in made] == sorted(
        (row["reference_id"], row["distortion"], row["level"], row["seed"]) for row in read_table(shortened)
    )
    # the same pictures, all but one, as if scored here
    hashes = [row["sha256"] for row in made]
    own = pyarrow.Table.from_pylist(
        [{**row, "sha256": sha} for row, sha in zip(made, ["other", *hashes[1:]], strict=True)]
    )
    pyarrow.parquet.write_table(own.select(scored.column_names), shortened)
    torn = tmp_path / "again-references" / "torn.png"  # as after a kill: without the tags, which are written last
    torn.parent.mkdir()
    torn.touch()
    rendered = partial(shutil.copytree, tmp_path / "data-references")
    monkeypatch.setattr(sample, "write_sample", lambda folder, *_, **__: rendered(folder))
    assert sample.make_sample(tmp_path / "again")[0] == total - 1
    assert not torn.exists()
    assert same <= total


def test_every_scored_picture_has_its_row() -> None:
    rows = read_table(sample.MANIFEST)
    assert len(rows) == 2 * sample.SCENES * 3 * 30
    assert len({(row["reference_id"], row["distortion"]) for row in rows}) == len(rows)
    assert {row["level"] for row in rows} == {1, 2, 3, 4, 5}


def test_the_annotators_refuse_no_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subject that refuses one of the five tasks of a picture has no opinion of it."""
    file = resource("merton_bringup", "config/annotators.yaml")
    monkeypatch.setenv(VARIABLE, str(file))
    names = re.findall(r"- name: (\S+)", file.read_text(encoding="utf-8"))
    assert len(names) == 6
    catalogue = Catalogue("vla", PolicyEntry)
    for name in names:
        assert set(catalogue[name].settings["verbs"]) == set(TASKS)
