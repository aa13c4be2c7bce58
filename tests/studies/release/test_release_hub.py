"""`merton export hub`: loaded by `datasets`, valid for Croissant, the same bytes twice, and nothing private in it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from miniature_curation import make as make_curated
from miniature_dataset import write_miniature
from planted_opinions import planted
from ruamel.yaml import YAML
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import FileError, InputError
from merton.leaderboard.snapshot.store import of_trials, to_json
from merton.perception.dataset import layout
from merton.perception.images import read_image
from merton.results.export import TABLES
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton_studies.cli.export_hub import hub_command
from merton_studies.opinions.opinion import Opinions
from merton_studies.opinions.opinion_tables import write_opinions
from merton_studies.release import shards
from merton_studies.release.card import About
from merton_studies.release.hub import Content, export_hub
from merton_studies.release.licences import BUILT_IN, Sources, licence_named, read_sources
from merton_studies.release.pictures import REFERENCE_FIELDS, pictures
from merton_studies.release.record import TRIAL_FIELDS
from merton_studies.release.table import Field, Table, split_of

SECRET = "Grace Hopper"
"""A person's name, which also stands in messages: it must be in no file."""
ABOUT = About("lab/small", licence_named("cc-by-4.0"), ("A. Author",), "2026-11-30")


def write_run(folder: Path, name: str) -> Path:
    """A run of two agents on four scenes, one trial of which failed with a message that names a person."""
    run = folder / name
    run.mkdir(parents=True)
    (run / "experiment.yaml").write_text("name: small\n", encoding="utf-8")
    about = {"id": name, "merton": "0.1", "arm": "UR5", "seed": 7, "experiment_sha256": "ab"}
    (run / "run.json").write_text(json.dumps(about))
    with ResultStore(run / "results.sqlite") as store:
        store.register_agent("servo", "3", "cd" * 32)
        store.record_all(trials(name))
    return run


def trials(name: str) -> list[TrialRecord]:
    fault = {"error_code": 101, "error_message": f"cannot read /home/{SECRET}/weights"}
    return [
        TrialRecord(
            name,
            agent,
            TestCase("pick", seed, distortion, level),
            Outcome.SUCCESS if agent == "servo" and seed else Outcome.FAILURE,
            execution=100.0 if agent == "servo" and seed else 60.0,
            progress=1.0 if agent == "servo" and seed else 0.2,
            steps=1,
            **(fault if seed == 3 else {}),  # type: ignore[arg-type]
        )
        for agent in ("hold", "servo")
        for seed in range(4)
        for distortion, level in (("reference", 0), ("gaussian_blur", 3))
    ]


def write_annotations(folder: Path, dataset: Path) -> Path:
    """annotations.parquet as `merton annotate` writes it, of one model."""
    ids = pq.read_table(dataset / layout.REFERENCE_TABLE)["id"].to_pylist()
    columns = {
        "model": ["teller"] * len(ids),
        "reference": ids,
        "distortion": ["reference"] * len(ids),
        "level": pa.array([0] * len(ids), pa.int8()),
        "task": ["Push the cup"] * len(ids),
        "outcome": ["answered"] * len(ids),
        "reason": [f"the server of {SECRET}"] * len(ids),
        "answer": ["left"] * len(ids),
        "deltas": pa.array([[[0.0] * 7]] * len(ids), pa.list_(pa.list_(pa.float64()))),
        "done": [True] * len(ids),
    }
    manifest = hashlib.sha256((dataset / layout.MANIFEST).read_bytes()).hexdigest()
    teller = {"model": f"/home/{SECRET}/teller-7b", "revision": "a1", "settings": {"url": f"http://{SECRET}"}}
    about = json.dumps({"dataset": manifest, "merton": "0.1", "models": {"teller": teller}})
    folder.mkdir()
    pq.write_table(pa.table(columns).replace_schema_metadata({"merton": about}), folder / "annotations.parquet")
    return folder


def write_people(folder: Path) -> Path:
    """An export of `merton people` that was made with the names of people."""
    folder.mkdir()
    (folder / "export.json").write_text(json.dumps({"project": "small", "names": True, "definition_sha256": "ef"}))
    head = "item,scene,rater,criterion,value,number,kind,seconds,saved_utc\n"
    people = (SECRET, "Ada Lovelace", SECRET)
    rows = [f"i{n},test_0{n},{who},quality,{n},{n + 1},design,2.5,2026-01-01\n" for n, who in enumerate(people)]
    (folder / "every_rating.csv").write_text(head + "".join(rows))
    return folder


def opinions_about(dataset: Path) -> Opinions:
    found = planted(["gaussian_blur"], lambda kind, level: 4.0, scenes=3)
    return replace(found, about={**found.about, "dataset": str(layout.sha256_of(dataset / layout.MANIFEST))})


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Content:
    folder = tmp_path_factory.mktemp("made")
    dataset = write_miniature(folder / "data", scenes=8, side_px=16, levels=(1, 5))
    (folder / "opinions").mkdir()
    write_opinions(opinions_about(dataset), folder / "opinions" / "opinions.parquet")
    make_curated(folder / "pool", folder / "bench")
    (folder / "board.json").write_bytes(to_json(of_trials(trials("other"), "lab")))
    return Content(
        [write_run(folder, "small")],
        dataset,
        [write_annotations(folder / "ann", dataset)],
        [folder / "opinions"],
        [write_people(folder / "people")],
        folder / "bench",
        [str(folder / "board.json")],
    )


@pytest.fixture(scope="module")
def exported(content: Content, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "small"
    export_hub(out, content, ABOUT)
    return out


def rows_of(folder: Path, table: str) -> list[tuple[str, dict[str, Any]]]:
    """(split, row) of a table."""
    return [
        (file.name.partition("-")[0], row)
        for file in sorted((folder / table).iterdir())
        for row in pq.read_table(file, partitioning=None).to_pylist()
    ]


def test_datasets_loads_every_table_and_the_croissant_file_is_valid(
    exported: Path, content: Content, tmp_path: Path
) -> None:
    for package in ("datasets", "mlcroissant"):
        if find_spec(package) is None:
            pytest.skip(f"no {package}: make develop")
    program = Path(__file__).parents[2] / "support" / "load_release.py"
    found = json.loads(
        subprocess.check_output([sys.executable, program, exported, tmp_path], stderr=subprocess.DEVNULL)
    )
    tables = {folder.name: rows_of(exported, folder.name) for folder in exported.iterdir() if folder.is_dir()}
    assert len(tables) == 10
    counts = {
        name: [sum(split == one for split, _ in rows) for one in ("train", "test")] for name, rows in tables.items()
    }
    assert {name: [rows.get("train", 0), rows.get("test", 0)] for name, rows in found["rows"].items()} == counts
    assert found["filtered"] == found["rows"], "by the field split of the Croissant file"
    assert counts["references"][0] + counts["references"][1] == 24
    assert min(counts["references"]) > 0
    assert found["types"]["images"]["image"].startswith("Image(")
    assert found["types"]["references"]["tasks"] == "List(Value('string'))"
    assert found["types"]["annotations"]["deltas"] == "List(List(Value('float64')))"
    schema = pq.read_schema(next((exported / "images").iterdir()))
    assert json.loads(schema.metadata[b"huggingface"])["info"]["features"]["image"] == {"_type": "Image"}
    assert content.dataset
    pngs = {path.stem: np.asarray(read_image(path)) for path in (content.dataset / "references").iterdir()}
    assert found["pixels"] == {name: hashlib.sha256(image.tobytes()).hexdigest() for name, image in pngs.items()}
    assert found["question"] == [[32, 24]]
    assert (found["errors"], found["warnings"]) == ([], [])
    assert set(tables) < set(found["record_sets"])


def test_the_same_content_gives_the_same_bytes_and_a_changed_byte_is_found(
    exported: Path, content: Content, tmp_path: Path
) -> None:
    export_hub(tmp_path / "again", content, ABOUT)
    files = {path.relative_to(exported).as_posix(): path.read_bytes() for path in exported.rglob("*") if path.is_file()}
    again = tmp_path / "again"
    assert files == {
        path.relative_to(again).as_posix(): path.read_bytes() for path in again.rglob("*") if path.is_file()
    }
    check = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
    assert subprocess.run(check, cwd=again, check=False).returncode == 0
    assert len(files["SHA256SUMS"].splitlines()) == len(files) - 1
    damaged = bytearray(files["images/train-00000-of-00001.parquet"])
    damaged[100] ^= 1
    (again / "images/train-00000-of-00001.parquet").write_bytes(damaged)
    assert subprocess.run(check, cwd=again, check=False, capture_output=True).returncode == 1


def test_nothing_private_is_in_any_file_and_people_are_pseudonyms(exported: Path) -> None:
    rows = rows_of(exported, "people")
    assert sorted(row["rater"] for _, row in rows) in (["R01", "R01", "R02"], ["R01", "R02", "R02"])
    assert rows[0][1]["rater"] in ("R01", "R02")
    assert "saved_utc" not in rows[0][1]
    for name in ("trials", "annotations"):
        assert not {"error_message", "reason"} & set(rows_of(exported, name)[0][1])
    for path in exported.rglob("*"):
        if path.suffix == ".parquet":
            assert SECRET not in json.dumps(pq.read_table(path, partitioning=None).to_pylist(), default=str)
        elif path.is_file():
            assert SECRET not in path.read_text(encoding="utf-8")


def test_a_scene_is_in_one_split_of_all_tables(exported: Path) -> None:
    sides: dict[str, set[str]] = {}
    for name in ("references", "images", "annotations", "opinions", "people"):
        for split, row in rows_of(exported, name):
            sides.setdefault(row["scene"], set()).add(split)
    assert len(sides) >= 8
    assert all(len(splits) == 1 for splits in sides.values())
    share = np.mean([split_of(f"scene {number}") == "test" for number in range(4000)])
    assert abs(share - 0.2) < 0.02  # three standard errors


def test_the_card_says_what_a_reader_needs(exported: Path) -> None:
    text = (exported / "README.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    head = YAML(typ="safe").load(front)
    assert head["license"] == "cc-by-4.0"
    assert "robotics" in head["task_categories"]
    infos = {one["config_name"]: one for one in head["dataset_info"]}
    assert list(infos) == [one["config_name"] for one in head["configs"]]
    for name, info in infos.items():
        assert sum(split["num_examples"] for split in info["splits"]) == len(rows_of(exported, name))
        assert f"### {name}\n" in body
    for line in body.splitlines():  # a field without a description helps nobody
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            assert cells[2], line
    for words in ("no face can appear", "Execution", "pseudonyms", "seed", "@misc{small"):
        assert words.lower() in body.lower()
    assert "40.00" in body or "60.00" in body  # the floor: what doing nothing scores
    assert "| model teller · model | teller-7b |" in body
    assert "<script>" not in body
    left = (exported / "LEFT_OUT.csv").read_text(encoding="utf-8")
    assert left.count("its source web has no known licence") == 3


def test_photographs_need_a_licence_and_some_forbid_altered_copies(tmp_path: Path) -> None:
    dataset = write_miniature(tmp_path / "data", scenes=2, side_px=16, levels=(1,), domain="real")
    with pytest.raises(InputError, match=r"may be published.*--sources"):
        pictures(dataset, ABOUT.licence, read_sources(_sources(tmp_path, "other.png", "MIT")))
    table = pq.read_table(dataset / layout.REFERENCE_TABLE)
    names = pa.array([f"{name}.png" for name in table["id"].to_pylist()])
    place = table.schema.get_field_index("source")
    pq.write_table(table.set_column(place, "source", names), dataset / layout.REFERENCE_TABLE)
    shown = pictures(
        dataset, ABOUT.licence, read_sources(_sources(tmp_path, "*_top.png", "CC-BY-ND-4.0", "*_side.png", "MIT"))
    )
    references, images = shown.part.tables
    assert [row["id"] for _, row in references.rows()] == ["test_00_side", "test_00_top", "test_01_side", "test_01_top"]
    assert {row["licence"] for _, row in references.rows()} == {"MIT", "CC-BY-ND-4.0"}
    assert {row["reference_id"] for _, row in images.rows()} == {"test_00_side", "test_01_side"}
    assert sorted((entry.table, entry.name) for entry in shown.part.left_out) == [
        ("images", "test_00_top"),
        ("images", "test_01_top"),
        ("references", "test_00_wrist"),
        ("references", "test_01_wrist"),
    ]
    assert "all photographs show: container (table) 4." in " ".join(shown.part.privacy)
    own = pictures(dataset, ABOUT.licence, read_sources(_sources(tmp_path, "*", "CC-BY-SA-2.0")))
    assert {row["licence"] for _, row in own.part.tables[1].rows()} == {"CC-BY-SA-2.0"}
    assert all(licence.allows_altered_copies for _, licence in BUILT_IN.values())


def test_a_publisher_may_alter_the_own_renderings(tmp_path: Path) -> None:
    dataset = write_miniature(tmp_path / "data", scenes=1, side_px=16, levels=(1,))
    shown = pictures(dataset, licence_named("CC-BY-NC-ND-4.0"), Sources())
    assert not shown.part.left_out
    assert {row["licence"] for table in shown.part.tables for _, row in table.rows()} == {"CC-BY-NC-ND-4.0"}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("a.png,CC-BY-ND-4.0,", "line 2: CC-BY-ND-4.0 asks that its maker is named"),
        ("a.png,CC-BY-9.0,A. Person", "line 2: unknown licence 'CC-BY-9.0'"),
    ],
)
def test_a_wrong_line_of_sources_is_named(line: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "sources.csv").write_text(f"source,licence,attribution\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        read_sources(tmp_path / "sources.csv")


def test_opinions_of_another_dataset_are_refused(content: Content, tmp_path: Path) -> None:
    other = write_miniature(tmp_path / "other", scenes=1, side_px=16, levels=(1,))
    with pytest.raises(InputError, match="holds opinions of another dataset than the one that is named with --dataset"):
        export_hub(tmp_path / "out", Content(dataset=other, opinions=content.opinions), ABOUT)
    assert not (tmp_path / "out").exists()


def test_a_run_that_names_no_arm_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path, "armless")
    (run / "run.json").write_text('{"id": "armless"}')
    with pytest.raises(
        FileError, match=r"armless/run\.json does not name the arm of its run in `arm`: put the run\.json"
    ):
        export_hub(tmp_path / "out", Content(runs=[run]), ABOUT)
    assert not (tmp_path / "out").exists()


def _sources(folder: Path, *pairs: str) -> Path:
    lines = [f"{pattern},{licence},A. Person\n" for pattern, licence in zip(pairs[::2], pairs[1::2], strict=True)]
    path = folder / "sources.csv"
    path.write_text("source,licence,attribution\n" + "".join(lines), encoding="utf-8")
    return path


def test_shards_keep_to_their_size_and_hold_every_row_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "_GROUP_BYTES", 50_000)
    monkeypatch.setattr(shards, "_FOOTER_BYTES", 4_000)
    noise = np.random.default_rng(0)
    pictures = [{"bytes": noise.bytes(20_000), "path": f"{number}.png"} for number in range(9)]  # three a row group
    fields = (Field("number", "int64", ""), Field("image", "image", ""))
    rows = [("train", {"number": number, "image": picture}) for number, picture in enumerate(pictures)]
    table = Table("images", "", fields, lambda: iter(rows))
    written = shards.write_shards(tmp_path, table, {}, most=80_000)
    assert [shard.rows for shard in written.shards] == [3, 3, 3]
    assert all(shard.size <= 80_000 for shard in written.shards)
    assert [shard.path for shard in written.shards] == [f"images/train-0000{n}-of-00003.parquet" for n in range(3)]
    assert [row for _, row in rows_of(tmp_path, "images")] == [row for _, row in rows]


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({}, "nothing to export is named"),
        ({"licence": "CC-BY-5.0"}, "unknown licence 'CC-BY-5.0'; did you mean"),
        ({"dataset": Path("none")}, "'none' holds no finished dataset"),
        ({"annotations": [Path("none")]}, "name their dataset with --dataset"),
        ({"opinions": [Path("none")]}, "there is no file none/opinions.parquet"),
        ({"people": [Path("none")]}, "cannot read none/export.json"),
        ({"curated": Path("none")}, "none is no curated benchmark"),
        ({"board": ["none.json"]}, "none.json holds no board"),
        ({"board": ["none.sqlite"]}, "none.sqlite"),
        ({"run": ["none"]}, "there is no run 'none'"),
        ({"sources": Path("none.csv")}, "cannot read none.csv: No such file or directory"),
        ({"name": "a/b/c"}, "or is owner/name; got 'a/b/c'"),
        ({"name": "a/.."}, "begins and ends with a letter or digit"),
        ({"date": "soon"}, "such as 2026-11-30; got 'soon'"),
    ],
)
def test_a_mistake_is_one_sentence(
    named: dict[str, Any], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as mistake:
        hub_command(Path("out"), **{"licence": "MIT", **named})
    assert sentence in str(mistake.value)
    assert "\n" not in str(mistake.value)
    assert not list(tmp_path.iterdir())  # no half-written folder is left


def test_a_folder_with_files_is_refused_and_the_upload_is_only_printed(
    content: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="is not an empty folder"):
        export_hub(tmp_path / "full", content, ABOUT)
    monkeypatch.chdir(tmp_path / "full")
    with pytest.raises(InputError, match=r"'\.' is the folder that you are in"):
        export_hub(Path(), content, ABOUT)
    out = tmp_path / "bench"
    words = ["export", "hub", "--out", str(out), "--curated", str(content.curated), "--licence", "MIT"]
    done = CliRunner().invoke(app, words)
    assert f"hf upload OWNER/bench {out} --repo-type dataset" in done.output
    assert {path.name for path in out.iterdir()} == {
        "questions",
        "README.md",
        "croissant.json",
        "LEFT_OUT.csv",
        "SHA256SUMS",
    }


def test_a_picture_that_changed_leaves_no_folder_behind(tmp_path: Path) -> None:
    dataset = write_miniature(tmp_path / "data", scenes=1, side_px=16, levels=(1,))
    changed = next((dataset / "distorted").rglob("*.png"))
    changed.write_bytes(changed.read_bytes() + b"0")
    with pytest.raises(InputError, match=f"{changed.name} has changed since the dataset was built"):
        export_hub(tmp_path / "out", Content(dataset=dataset), ABOUT)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_the_columns_of_references_are_those_of_the_dataset() -> None:
    """A column that a dataset gains is not forgotten here."""
    from merton.perception.dataset.tables import REFERENCE_COLUMNS

    assert {field.name for field in REFERENCE_FIELDS} - {"image", "scene", "licence", "attribution"} == set(
        REFERENCE_COLUMNS
    ) - {"file"}


def test_every_column_of_a_record_of_trials_is_published_or_private() -> None:
    """A column that a later record has would else be left out in silence."""
    with_case = {column.name for column in TABLES["trials"].selected_columns}
    published = {field.name for field in TRIAL_FIELDS}
    assert with_case - published == {"case", "error_message"}
    assert published - with_case == {"seed"}, "the number of a scene, beside its name"
