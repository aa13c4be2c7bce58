"""Databases of people's opinions in their published layouts, in miniature, and metrics tested across them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from miniature_dataset import distorted, picture
from scipy.io import savemat
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton.perception.dataset import database_types, databases
from merton.perception.dataset.databases import read_database
from merton.perception.dataset.foreign import read_foreign
from merton.perception.dataset.importing import import_dataset
from merton.perception.dataset.origin import read_origin
from merton.perception.dataset.tables import read_table
from merton.perception.images import read_image, write_image
from merton.perception.quality.learned import TRAINABLE
from merton.perception.quality.pairs import ImagePair
from merton_studies.iqa.cross import ScoredImages, cross, of_people, train_on

SCENES, LEVELS = 3, (1, 3)


def write(folder: Path, name: str, image: np.ndarray) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    write_image(image, folder / name)


def copies() -> Iterator[tuple[int, str, int, np.ndarray, float]]:
    """Scene, type, level, image and how bad it is (0..1)."""
    for scene in range(SCENES):
        for kind in ("gaussian_blur", "white_noise"):
            for level in LEVELS:
                image = distorted(picture(64, scene), kind, level, 10 * scene + level)
                yield scene, kind, level, image, level / 5 + 0.01 * scene


def write_live(folder: Path) -> Path:
    """gblur and wn have two copies of each scene, and every folder its original."""
    labels: list[float] = []
    originals: list[int] = []
    for kind in (one.folder for one in database_types.LIVE):
        ours = {"gblur": "gaussian_blur", "wn": "white_noise"}.get(kind)
        lines = []
        for scene in range(SCENES):
            write(folder / "refimgs", f"scene{scene}.bmp", picture(64, scene))
            shown = [(image, bad) for one, name, _, image, bad in copies() if one == scene and name == ours]
            for image, bad in [(picture(64, scene), 0.0), *shown]:
                lines.append(f"scene{scene}.bmp img{len(lines) + 1}.bmp {1.5 * bad:.4f}")
                write(folder / kind, f"img{len(lines)}.bmp", image)
                labels.append(100 * bad)
                originals.append(int(bad == 0.0))
        (folder / kind / "info.txt").write_text("\n".join(reversed(lines)) + "\n\n")  # the order of lines plays no part
    savemat(folder / "dmos_realigned.mat", {"dmos_new": [labels], "orgs": [originals], "dmos_std": [labels]})
    return folder


def write_tid2013(folder: Path) -> Path:
    lines = []
    for scene, kind, level, image, bad in copies():
        name = f"{'I' if scene == 1 else 'i'}{scene + 1:02}_{8 if kind == 'gaussian_blur' else 1:02}_{level}.bmp"
        write(folder / "reference_images", f"I{scene + 1:02}.BMP", picture(64, scene))
        write(folder / "distorted_images", name.lower() if scene == 2 else name, image)
        lines.append(f"{9 * (1 - bad):.5f} {name}")
    (folder / "mos_with_names.txt").write_text("\r\n".join(lines))
    return folder


def write_kadid10k(folder: Path) -> Path:
    lines = ["dist_img,ref_img,dmos,var"]
    for scene, kind, level, image, bad in copies():
        name = f"I{scene + 1:02}_{1 if kind == 'gaussian_blur' else 11:02}_{level:02}.png"
        write(folder / "images", f"I{scene + 1:02}.png", picture(64, scene))
        write(folder / "images", name, image)
        lines.append(f"{name},I{scene + 1:02}.png,{5 - 4 * bad:.2f},0.3")
    (folder / "dmos.csv").write_text("\n".join(lines))
    return folder


def write_csiq(folder: Path) -> Path:
    rows: list[list[str | float]] = [
        ["all images"],
        [],
        ["image", "dst_idx", "dst_type", "dst_lev", "dmos_std", "dmos"],
    ]
    for kind in database_types.CSIQ.values():
        (folder / "dst_imgs" / kind).mkdir(parents=True)
    for scene, kind, level, image, bad in copies():
        name = "1600" if scene == 0 else f"scene{scene}"
        write(folder / "src_imgs", f"{name}.png", picture(64, scene))
        place, word = ("blur", "BLUR") if kind == "gaussian_blur" else ("jpeg2000", "jpeg2000")
        write(folder / "dst_imgs" / place, f"{name}.{word}.{level}.png", image)
        rows.append([name if scene else 1600, 5, "blur" if place == "blur" else "jpeg 2000", level, 0.1, bad])
    _write_xlsx(folder / "csiq.DMOS.xlsx", rows)
    return folder


def _write_xlsx(file: Path, rows: Sequence[Sequence[str | float]]) -> None:
    """As spreadsheets write it: texts are shared, and the first column is empty."""
    texts = list(dict.fromkeys(str(cell) for row in rows for cell in row if isinstance(cell, str)))
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    lines = []
    for number, row in enumerate(rows, 1):
        cells = [
            f'<c r="{"DEFGHI"[at]}{number}" t="s"><v>{texts.index(cell)}</v></c>'
            if isinstance(cell, str)
            else f'<c r="{"DEFGHI"[at]}{number}"><v>{cell}</v></c>'
            for at, cell in enumerate(row)
        ]
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    with zipfile.ZipFile(file, "w") as book:
        book.writestr("xl/worksheets/sheet1.xml", f"<worksheet {space}><sheetData/></worksheet>")
        sheet = f"<worksheet {space}><sheetData>{''.join(lines)}</sheetData></worksheet>"
        book.writestr("xl/worksheets/sheet2.xml", sheet)
        shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
        book.writestr("xl/sharedStrings.xml", f"<sst {space}>{shared}</sst>")


WRITERS: dict[str, Callable[[Path], Path]] = {
    "live": write_live,
    "tid2013": write_tid2013,
    "kadid10k": write_kadid10k,
    "csiq": write_csiq,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A miniature of each database: three references, two types, two levels."""
    top = tmp_path_factory.mktemp("databases")
    return {name: make(top / name) for name, make in WRITERS.items()}


@pytest.mark.parametrize("name", WRITERS)
def test_a_miniature_is_imported_with_its_own_types_and_levels(
    name: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    found = read_foreign(folders[name])
    assert found.layout == name
    result = import_dataset(found, tmp_path / "data", workers=1)
    assert (result.references, result.distorted, result.refused) == (SCENES, SCENES * 2 * len(LEVELS), {})
    blur, noise = {
        "live": ("04 gblur", "03 wn"),
        "tid2013": ("08 gaussian_blur", "01 gaussian_noise"),
        "kadid10k": ("01 gaussian_blur", "11 white_noise"),
        "csiq": ("02 blur", "06 jpeg2000"),
    }[name]
    rows = read_table(tmp_path / "data/manifest.parquet")
    assert {f"{row['distortion_id']} {row['distortion']}" for row in rows} == {blur, noise}
    # LIVE has six different strengths of each type here, which are ranked
    assert sorted({row["level"] for row in rows}) == (list(range(1, 7)) if name == "live" else list(LEVELS))
    first = {"live": "scene0", "tid2013": "I01", "kadid10k": "I01", "csiq": "1600"}[name]
    for row in rows:  # the stronger copy is the one of the higher level
        if row["reference_id"] == first:
            kind = "gaussian_blur" if row["distortion"] == blur[3:] else "white_noise"
            level = LEVELS[sorted(one["level"] for one in rows if _of(one) == _of(row)).index(row["level"])]
            expected = distorted(picture(64, 0), kind, level, level)
            np.testing.assert_array_equal(read_image(tmp_path / "data" / row["file"]), expected)
    title = {"live": "LIVE release 2", "tid2013": "TID2013", "kadid10k": "KADID-10k", "csiq": "CSIQ"}[name]
    assert read_origin(tmp_path / "data").words == f"{title}, imported: 2 types at {6 if name == 'live' else 3} levels"


def _of(row: dict[str, Any]) -> tuple[str, str]:
    return row["reference_id"], row["distortion"]


@pytest.mark.parametrize("name", WRITERS)
def test_a_miniature_is_read_to_the_right_pairs_labels_and_direction(name: str, folders: dict[str, Path]) -> None:
    found = read_database(name, folders[name])
    assert len(found.pairs) == SCENES * 2 * len(LEVELS)
    assert found.better == ("lower" if name in ("live", "csiq") else "higher")
    bad = {image.tobytes(): (scene, bad) for scene, _, _, image, bad in copies()}
    for pair, score in zip(found.pairs, found.scores, strict=True):
        scene, expected = bad[read_image(pair.image).tobytes()]
        assert pair.reference is not None
        np.testing.assert_array_equal(read_image(pair.reference), picture(64, scene))
        scale = {"live": -100 * expected, "tid2013": 9 - 9 * expected, "kadid10k": 5 - 4 * expected, "csiq": -expected}
        assert score == pytest.approx(scale[name], abs=1e-9)


@pytest.mark.parametrize(
    ("name", "images", "references"),
    [("live", 779, 29), ("tid2013", 3000, 25), ("kadid10k", 10125, 81), ("csiq", 866, 30)],
)
def test_a_count_that_is_not_the_published_one_is_a_warning(
    name: str, images: int, references: int, folders: dict[str, Path]
) -> None:
    assert read_database(name, folders[name]).warnings == (
        f"{name} has 12 distorted images, and {images} were published",
        f"{name} has 3 references, and {references} were published",
    )


def test_the_published_count_gives_no_warning(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = databases._Layout("CSIQ", (), databases._csiq, "lower", 12, 3)
    monkeypatch.setitem(databases.DATABASES, "csiq", whole)
    assert read_database("csiq", folders["csiq"]).warnings == ()


def test_mistakes_are_one_sentence(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^there is no folder '.*absent' for live: unpack the database there$"):
        read_database("live", tmp_path / "absent")
    with pytest.raises(UnknownNameError, match="unknown database 'tid2031'; did you mean 'tid2013'"):
        read_database("tid2031", tmp_path)
    with pytest.raises(InputError, match=r"mos_with_names.txt' is missing$|distorted_images' is missing$"):
        read_database("tid2013", tmp_path)
    with pytest.raises(InputError, match=r"^live: .* has neither dmos_realigned.mat nor dmos.mat$"):
        read_database("live", tmp_path)
    with pytest.raises(InputError, match=r"csiq.DMOS.xlsx' is missing$"):
        read_database("csiq", tmp_path)
    (tmp_path / "csiq.DMOS.xlsx").write_bytes(b"no zip")
    with pytest.raises(InputError, match=r"^csiq.DMOS.xlsx is no readable .xlsx file"):
        read_database("csiq", tmp_path)
    (tmp_path / "dmos.csv").write_text("dist_img,ref_img,dmos\nI01_01_01.png,I01.png,nan\n")
    with pytest.raises(InputError, match=r"^kadid10k: a label or level is missing$"):
        read_database("kadid10k", tmp_path)
    (tmp_path / "dmos.csv").write_text("dist_img,ref_img,dmos\nI01_01_01.png,I01.png,3.2\n")
    with pytest.raises(InputError, match=r"^kadid10k: '.*images/I01_01_01.png' is missing$"):
        read_database("kadid10k", tmp_path)


class Grain:
    """A planted trainable metric: remembers the scale of the labels, and judges by the difference to the reference."""

    name, needs_reference, description, version = "grain", True, "planted", 1

    def missing(self) -> None:
        """Needs nothing."""

    def prepare(self, pairs: Sequence[ImagePair], cache: Path, on_progress: object = None) -> None:
        """Nothing to prepare."""

    def train(self, pairs: Sequence[ImagePair], labels: np.ndarray, seed: int, folder: Path, *_: object) -> Path:
        card = dict.fromkeys(("metric", "pairs_sha256", "labels_sha256", "merton", "torch"), "grain")
        card |= {"version": 1, "seed": seed, "epochs": 1, "pairs": len(pairs), "lowest": 0.0, "highest": 1.0}
        np.savez(folder / "weights.npz", card=np.array(json.dumps(card)))
        return folder / "weights.npz"

    def predict(self, weights: Path, pairs: Sequence[ImagePair], cache: Path | None = None) -> np.ndarray:
        return np.array(
            [-np.abs(read_image(p.image).astype(float) - read_image(p.reference or p.image)).mean() for p in pairs]
        )


@pytest.fixture
def grain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRAINABLE._entries, "grain", Grain())  # type: ignore[arg-type]


def test_a_copy_under_another_name_gives_the_in_domain_coefficients(
    folders: dict[str, Path], grain: None, tmp_path: Path
) -> None:
    """The labels of people, and the same as a study of robots: the same images, so the same coefficients."""
    people = of_people(read_database("tid2013", folders["tid2013"]))
    copy = ScoredImages("decision", people.pairs, people.scores, people.train, people.test)
    weights = train_on("grain", people, tmp_path)
    first, second = cross(weights, [people, copy], tmp_path)
    assert (first.srcc, first.krcc, first.plcc) == (second.srcc, second.krcc, second.plcc)
    assert first.srcc > 0.5
    (kadid,) = cross(weights, [of_people(read_database("kadid10k", folders["kadid10k"]))], tmp_path)
    assert kadid.srcc == pytest.approx(first.srcc)
    assert first.published["TOPIQ-FR"] == (0.4510, 0.2277)
    assert kadid.published == {}


def test_the_command_tests_a_trained_metric_on_databases(folders: dict[str, Path], grain: None, tmp_path: Path) -> None:
    given = ["iqa", "cross", "grain", "--from", f"tid2013={folders['tid2013']}", "--out", str(tmp_path)]
    given += ["--on", f"live={folders['live']}", "--on", f"csiq={folders['csiq']}"]
    result = CliRunner().invoke(app, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "live has 12 distorted images, and 779 were published" in result.output
    lines = (tmp_path / "cross-grain-tid2013.csv").read_text().splitlines()
    assert lines[1].startswith("grain,tid2013,live,12,")
    assert 'TOPIQ-FR,decision,live,,0.7285,,0.755,,"Embodied-IQA, Table 8a"' in lines
    with pytest.raises(InputError, match=r"^decision needs --dataset and --opinions"):
        CliRunner().invoke(
            app, ["iqa", "cross", "grain", "--on", "decision", "--out", str(tmp_path)], catch_exceptions=False
        )
    with pytest.raises(InputError, match=r"^live is a database that you own: write live=FOLDER$"):
        CliRunner().invoke(
            app, ["iqa", "cross", "grain", "--on", "live", "--out", str(tmp_path)], catch_exceptions=False
        )


def test_a_folder_of_results_that_cannot_be_written_is_told_in_one_sentence(
    folders: dict[str, Path], grain: None, tmp_path: Path
) -> None:
    def command(out: Path) -> None:
        given = ["iqa", "cross", "grain", "--from", f"csiq={folders['csiq']}", "--on", f"live={folders['live']}"]
        CliRunner().invoke(app, [*given, "--out", str(out)], catch_exceptions=False)

    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file' is a file or lies in one: choose a folder$"):
        command(tmp_path / "file")
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "grain-csiq").touch()
    with pytest.raises(InfrastructureError, match=r"^cannot write into '.*training': File exists$"):
        command(tmp_path / "training")
    (tmp_path / "table" / "cross-grain-csiq.csv").mkdir(parents=True)
    with pytest.raises(InfrastructureError, match=r"^cannot write .*cross-grain-csiq\.csv: Is a directory$"):
        command(tmp_path / "table")
