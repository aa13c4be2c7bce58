"""Pictures that somebody else distorted become a dataset, with their own types and levels."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from foreign_images import NAMED, SEVERITIES, TYPES, Foreign, write_foreign

from merton.errors import InputError
from merton.perception.dataset import layout, verify
from merton.perception.dataset.foreign import ForeignRow, read_foreign
from merton.perception.dataset.importing import import_dataset
from merton.perception.dataset.numbering import plan
from merton.perception.dataset.origin import read_origin
from merton.perception.dataset.tables import read_table
from merton.perception.images import read_image

TYPE_COUNT = 3


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Foreign:
    return write_foreign(tmp_path_factory.mktemp("lab") / "prints", 4, types=TYPE_COUNT, size_px=(48, 40))


@pytest.fixture(scope="module")
def dataset(foreign: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("imported") / "data"
    found = read_foreign(foreign.table, columns=NAMED)
    result = import_dataset(found, out, licence="CC-BY-4.0", workers=1)
    assert (result.references, result.distorted, result.refused) == (4, 4 * TYPE_COUNT * len(SEVERITIES), {})
    return out


def table(folder: Path, rows: list[dict[str, Any]], name: str = "table.csv") -> Path:
    """A table of these rows, in which one picture stands for all names."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with file.open("w", newline="", encoding="utf-8") as target:
        writer = csv.DictWriter(target, columns)
        writer.writeheader()
        writer.writerows(rows)
    return file


def picture(file: Path, side_px: int = 32) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    shade = np.random.default_rng(len(file.name)).integers(0, 256, (side_px, side_px, 3), dtype=np.uint8)
    assert cv2.imwrite(str(file), shade)


def row(**cells: Any) -> dict[str, Any]:
    return {"reference": "a.png", "distorted": "b.png", "type": "fog"} | cells


def test_pixels_tags_and_names_are_those_of_the_source(foreign: Foreign, dataset: Path) -> None:
    rows = read_table(dataset / layout.MANIFEST)
    assert {one["distortion"] for one in rows} == set(list(TYPES)[:TYPE_COUNT])
    for one in rows[:: len(rows) // 6]:
        np.testing.assert_array_equal(read_image(dataset / one["file"]), read_image(foreign.folder / one["source"]))
        assert one["source"] == f"copies/{one['distortion']}/{one['reference_id']}_{one['value']:g}.png"
        assert one["value"] == SEVERITIES[one["level"] - 1]
        assert (one["seed"], one["unit"]) == (None, "severity")
        assert -1.0 < one["ssim"] <= 1.0
    (first, second, *_) = read_table(dataset / layout.REFERENCE_TABLE)
    assert (first["scene"], second["scene"]) == ("place00", "place00")
    assert (first["domain"], first["perspective"], len(first["tasks"])) == ("real", "first_person", 5)
    assert verify(dataset) == []


def test_the_dataset_says_whose_distortions_it_has(dataset: Path) -> None:
    origin = read_origin(dataset)
    assert origin.words == "prints, imported: 3 types at 4 levels"
    assert origin.facts == {"distortions": origin.words, "levels": 4, "licence_of_images": "CC-BY-4.0"}


def test_the_same_source_gives_the_same_bytes_after_a_kill(foreign: Foreign, dataset: Path, tmp_path: Path) -> None:
    found = read_foreign(foreign.table, columns=NAMED)
    done: list[int] = []

    class KillError(Exception):
        pass

    def killed(at: int, _total: int) -> None:
        done.append(at)
        if len(done) == 2:
            raise KillError

    out = tmp_path / "data"
    with pytest.raises(KillError):
        import_dataset(found, out, licence="CC-BY-4.0", workers=1, on_progress=killed)
    assert not (out / layout.MANIFEST).exists()
    (out / layout.REFERENCES / "view000.png").write_bytes(b"torn")
    result = import_dataset(found, out, licence="CC-BY-4.0", workers=1)
    assert result.reused == TYPE_COUNT * len(SEVERITIES)  # of the second reference; the first was torn
    for name in (layout.MANIFEST, layout.REFERENCE_TABLE, layout.SUMS):
        assert (out / name).read_bytes() == (dataset / name).read_bytes(), name


def test_another_source_is_refused_in_a_folder_that_is_taken(foreign: Foreign, dataset: Path, tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    picture(tmp_path / "b.png")
    with pytest.raises(InputError, match="choose another"):
        import_dataset(read_foreign(table(tmp_path, [row()])), dataset, workers=1)
    assert verify(dataset) == []


def foreign_rows(*strengths: tuple[str, str, float | None, int | None]) -> list[ForeignRow]:
    """Reference, type, severity and level of each copy."""
    return [
        ForeignRow(
            f"line {number}", Path(ref), ref, Path(f"{number}.png"), f"{number}.png", kind, level=level, severity=s
        )
        for number, (ref, kind, s, level) in enumerate(strengths, 2)
    ]


def levels(rows: list[ForeignRow]) -> list[int]:
    made = {copy.name: copy.level for one in plan(rows).references for copy in one.copies}
    return [made[row.distorted_name] for row in rows]


@pytest.mark.parametrize(
    ("strengths", "expected"),
    [
        ([("a", "fog", 0.1, None), ("a", "fog", 0.9, None), ("b", "fog", 0.5, None)], [1, 3, 2]),
        ([("a", "fog", -40.0, None), ("a", "fog", -10.0, None), ("a", "rain", 7.5, None)], [1, 2, 1]),
        ([("a", "fog", None, 2), ("a", "fog", None, 7)], [2, 7]),
        ([("a", "fog", None, None), ("b", "fog", None, None), ("a", "rain", 3.0, None)], [1, 1, 1]),
    ],
    ids=["ranks of a type", "any order of size", "levels are kept", "a type without levels"],
)
def test_levels(strengths: list[Any], expected: list[int]) -> None:
    assert levels(foreign_rows(*strengths)) == expected


def test_many_severities_are_ranked_within_each_reference() -> None:
    """30 of two references, as LIVE's bit rates: ranks of the type would be 60 levels."""
    rows = foreign_rows(*[(ref, "jpeg", shift + step, None) for ref, shift in (("a", 0.0), ("b", 0.5)) for step in
                          range(15)])  # fmt: skip
    assert levels(rows) == [*range(1, 16)] * 2


@pytest.mark.parametrize(
    ("strengths", "sentence"),
    [
        ([("a", "fog", None, 2), ("a", "fog", None, 2)], "another copy of the type fog and this strength in line 2"),
        ([("a", "fog", None, None), ("a", "fog", None, None)], "give each its level or severity"),
        ([("a", "fog", 1.0, None), ("b", "fog", None, None)], "give all or none"),
        ([("a", "fog", float(step), None) for step in range(21)], "at most 20 strengths are possible"),
    ],
    ids=["one level twice", "no level twice", "some have none", "too many"],
)
def test_strengths_that_tell_nothing_apart_are_refused(strengths: list[Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        plan(foreign_rows(*strengths))


def test_types_that_are_numbers_keep_them(tmp_path: Path) -> None:
    rows = [row(distorted=f"{number}.png", type=number, level=1) for number in (30, 7)]
    found = plan(read_foreign(table(tmp_path, rows)).rows)
    assert [(one.number, one.type) for one in found.references[0].copies] == [("07", "type_07"), ("30", "type_30")]


def test_faulty_pictures_are_left_out_with_the_reason(tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "alone.png", "of_none.png"):
        picture(tmp_path / name)
    picture(tmp_path / "larger.png", 48)
    (tmp_path / "torn.png").write_bytes((tmp_path / "a.png").read_bytes()[:80])
    names = {"b.png": "fog", "larger.png": "rain", "torn.png": "snow", "absent.png": "hail"}
    rows = [row(distorted=name, type=kind) for name, kind in names.items()]
    rows += [row(reference="gone.png", distorted="of_none.png"), row(reference="alone.png", distorted="", type="")]
    out = tmp_path / "data"
    result = import_dataset(read_foreign(table(tmp_path, rows)), out, workers=1)
    assert (result.references, result.distorted) == (2, 1)
    assert [one["id"] for one in read_table(out / layout.REFERENCE_TABLE)] == ["a", "alone"]
    assert set(result.refused) == {"larger.png", "torn.png", "absent.png", "gone.png", "of_none.png"}
    assert "is 48 x 48 pixels, and its reference a.png 32 x 32" in result.refused["larger.png"]
    assert result.refused["torn.png"] == "the PNG file is cut off"
    assert result.refused["of_none.png"].startswith("its reference gone.png: cannot be read")
    assert (out / layout.REFUSED).read_text().count("\n") == 6
    again = import_dataset(read_foreign(table(tmp_path, rows)), out, workers=1)
    assert (again.refused, again.reused) == (result.refused, 1)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([row(level=2.5)], "line 2: level is '2.5'; it must be a whole number from 1 to 20"),
        ([row(level=0)], "line 2: level is '0'; it must be a whole number"),
        ([row(severity="much")], "line 2: severity is 'much'; it must be a number"),
        ([row(severity="0,5")], "with a decimal point"),
        ([row(level=1, severity=2)], "both level and severity say how strong"),
        ([row(type="")], "line 2: type is ''"),
        ([row(type="reference")], "and not reference"),
        ([row(type="fog 1"), row(distorted="c.png", type="fog_1", level=1)], "in signs or zeros alone"),
        ([row(distorted="")], "has the type 'fog' but no distorted picture"),
        ([row(reference="")], "reference is empty"),
        ([row(), row(type="rain")], "line 3: the distorted picture 'b.png' stands twice, first in .*line 2"),
        ([row(domain="reel")], "line 2: unknown domain 'reel'; did you mean 'real'"),
        ([row(scene="x"), row(distorted="c.png", scene="y", type="rain")], "line 3: scene of the reference 'a.png'"),
        ([row(category="x"), row(reference="c.png", distorted="d.png", category="y")], "category of the type fog"),
        ([row(task_1="Push it", task_2="Push it")], "has the same task twice"),
        (
            [{"reference": "a.png", "picture": "b.png"}],
            "no column holds its distorted copy; .* --column distorted=NAME",
        ),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_a_wrong_table_is_refused_in_a_sentence(rows: list[Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        plan(read_foreign(table(tmp_path, rows)).rows)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"distorted": "image"}, "there is no column 'image' for distorted; "),
        ({"kind": "type"}, "unknown part of a row 'kind'"),
    ],
    ids=["column", "part"],
)
def test_a_column_that_is_not_there_is_refused(columns: dict[str, str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        read_foreign(table(tmp_path, [row()]), columns=columns)


def test_lines_of_json_and_columns_that_are_not_used(tmp_path: Path) -> None:
    lines = [row(level=1, tasks=["Push the cup"], perspective="First-person"), row(distorted="c.png", level=2, mos=3.1)]
    file = tmp_path / "table.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match=r"perspective of the reference 'a\.png' is not as in"):
        plan(read_foreign(file).rows)
    lines[1] |= {"tasks": ["Push the cup"], "perspective": "first_person"}
    file.write_text("\n".join(map(json.dumps, lines)))
    found = read_foreign(file)
    assert found.remarks == ("columns that are not used: mos",)
    about = plan(found.rows).references[0].about
    assert (about["tasks"], about["perspective"], about["scene"]) == (("Push the cup",), "first_person", "a")


def test_references_of_one_name_in_two_folders_get_two_ids(tmp_path: Path) -> None:
    rows = [row(reference=f"{place}/a.png", distorted=f"{place}.png") for place in ("home", "lab")]
    assert [one.id for one in plan(read_foreign(table(tmp_path, rows)).rows).references] == ["home_a", "lab_a"]


def test_a_folder_of_no_known_layout_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no database that Merton knows \(LIVE .*KADID-10k: dmos.csv, images"):
        read_foreign(tmp_path)
