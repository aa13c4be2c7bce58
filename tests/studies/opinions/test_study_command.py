"""`merton study opinions` and `merton study dataset`, on annotations and a dataset written by hand."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InfrastructureError, InputError
from merton.perception.images import encode_image
from merton_studies.annotate.cases import cases
from merton_studies.annotate.chance import chances
from merton_studies.annotate.opinions import read_annotations
from merton_studies.opinions import opinion

arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

TASKS = ("Pick the cup", "Place the cup", "Pull the lid", "Push the lid", "Twist the knob")
STAGES = {"vlm": ("cognition", "bleu", "rouge_l", "cider"), "vla": ("decision", "position", "rotation", "state")}
TYPES = (("01", "haze"), ("02", "jpeg"))
SCENES = 4
Row = dict[str, Any]


def written(path: Path, rows: list[Row], about: Row | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = arrow.Table.from_pylist(rows).replace_schema_metadata({"merton": json.dumps(about or {})})
    parquet.write_table(table, path)
    return path


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scenes with two cameras and a photograph, two types at all levels; only two images have a file."""
    folder = tmp_path_factory.mktemp("study") / "data"
    references, manifest = [], []
    for name in [f"s{scene}_{camera}" for scene in range(SCENES) for camera in ("top", "wrist")] + ["photo"]:
        tags = {"perspective": "third_person", "object": "cup", "background": "room", "file": f"references/{name}.png"}
        references.append({"id": name, "domain": "real" if name == "photo" else "simulation", **tags})
        for number, distortion in TYPES:
            for level in range(1, 6):
                about = {"distortion_id": number, "distortion": distortion, "category": "blur", "level": level}
                manifest.append({"reference_id": name, **about, "file": f"distorted/{name}/{distortion}_{level}.png"})
    written(folder / "references.parquet", references)
    written(folder / "manifest.parquet", manifest)
    (folder / "references").mkdir()
    (folder / "references" / "s0_top.png").write_bytes(encode_image(np.full((30, 400, 3), 90, np.uint8)))
    return folder


def annotated(dataset: Path, out: Path, model: str, without: str = "", about: Row | None = None) -> Path:
    """The scores of a model that loses more at higher levels, and its answers or actions; none of one reference."""
    rng = np.random.default_rng(len(model) + ord(model[-1]))
    shown = [
        (row["reference_id"], row["distortion"], row["level"])
        for row in parquet.read_table(dataset / "manifest.parquet").to_pylist()
    ]
    shown = [(name, "reference", 0) for name in dict.fromkeys(name for name, *_ in shown)] + shown
    scores, answers = [], []
    for reference, distortion, level in shown:
        for task in TASKS:
            parts = np.clip(1.0 - level * rng.uniform(0.0, 0.2, 3), 0.0, 1.0).tolist()
            key = {"model": model, "level": level, "task": task}
            values = dict(zip(STAGES[model[:3]], [float(np.mean(parts)), *parts], strict=True))
            said = {"answer": f"{task} {reference} {level}", "deltas": None, "step_s": None, "frame": None}
            moved = {
                "answer": None,
                "deltas": rng.normal(0, 0.01, (3, 7)).tolist(),
                "step_s": 0.2,
                "frame": "base_link",
            }
            outputs = said if model.startswith("vlm") else moved
            answers.append(
                {
                    **key,
                    "reference": reference,
                    "distortion": distortion,
                    **outputs,
                    **dict.fromkeys(("cognition", "decision")),
                    **values,
                }
            )
            if reference != without:
                about_image = {"scene": reference.rpartition("_")[0] or reference, "image": f"{reference}.{distortion}"}
                scores += [{**key, **about_image, "dimension": name, "score": score} for name, score in values.items()]
    manifest = hashlib.sha256((dataset / "manifest.parquet").read_bytes()).hexdigest()
    written(out / "scores.parquet", scores, about or {"dataset": manifest, "models": {model: {}}})
    written(out / "annotations.parquet", answers)
    return out


@pytest.fixture(scope="module")
def folders(dataset: Path) -> list[Path]:
    """A folder for every model; vla-b has no score of the photograph."""
    return [
        annotated(dataset, dataset.parent / name, name, "photo" if name == "vla-b" else "")
        for name in ("vlm-a", "vlm-b", "vla-a", "vla-b")
    ]


def study(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["study", *map(str, arguments)])


def test_opinions_of_several_annotations(folders: list[Path], dataset: Path, tmp_path: Path) -> None:
    result = study("opinions", *folders, dataset, "--out", tmp_path / "o", "--leave-one-out")
    assert result.exit_code == 0, result.output
    assert "10 images have no decision" in result.stderr
    assert "cognition: 90 images scored by 2 subjects\ndecision: 80 images scored by 2 subjects" in result.stdout
    found = opinion.read_opinions(tmp_path / "o" / "opinions.parquet")
    assert found.about["subjects"] == {"cognition": ["vlm-a", "vlm-b"], "decision": ["vla-a", "vla-b"]}
    alone = opinion.read_opinions(tmp_path / "o" / "opinions_without_vlm-a.parquet")
    own = opinion.read_opinions(tmp_path / "o" / "opinions_of_vlm-a.parquet")
    assert (alone.cognition + own.cognition) / 2 == pytest.approx(found.cognition, abs=1e-12)
    again = study("opinions", *reversed(folders), dataset, "--out", tmp_path / "again")
    assert again.exit_code == 0
    for name in ("opinions.parquet", "subjects.parquet"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "o" / name).read_bytes()


def test_photographs_can_be_left_out(folders: list[Path], dataset: Path, tmp_path: Path) -> None:
    result = study("opinions", *folders, dataset, "--out", tmp_path, "--domain", "simulation", "--label", "zscore")
    assert result.exit_code == 0, result.output
    assert "photo" not in opinion.read_subjects(tmp_path / "subjects.parquet").reference_id
    found = opinion.read_opinions(tmp_path / "opinions.parquet")
    assert (found.about["label"], found.about["domain"]) == ("zscore", "simulation")
    assert len(found.unused("decision")) == 0


def test_the_page_of_a_dataset(folders: list[Path], dataset: Path, tmp_path: Path) -> None:
    assert study("opinions", *folders, dataset, "--out", tmp_path, "--domain", "simulation").exit_code == 0
    result = study(
        "dataset", tmp_path / "subjects.parquet", dataset, "--out", tmp_path / "b.html", "--domain", "simulation"
    )
    assert result.exit_code == 0, result.output
    assert "80 distorted images of 8 references in 4 scenes" in (tmp_path / "b.html").read_text()
    result = study("dataset", *folders, dataset, "--out", tmp_path / "study.html", "--domain", "simulation")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "study.html").read_text()
    assert "80 distorted images of 8 references in 4 scenes" in page
    assert "by vlm-" in page
    assert "steps, " in page
    assert "http:" not in page
    assert "https:" not in page


def test_cases_show_small_pictures_and_what_a_subject_made_of_them(folders: list[Path], dataset: Path) -> None:
    found = read_annotations(folders, dataset, "simulation")
    made = cases(opinion.opinions(found.sums, found.images), dataset, folders)
    first = next(case for case in made if case.reference_id == "s0_top")
    assert (first.pictures[0] or "").startswith("data:image/jpeg;base64,")
    assert first.pictures[1] is None
    assert {case.stage for case in made} == {"cognition", "decision"}
    assert all(len(case.outputs) == 3 and case.model for case in made)


def test_chance_compares_scenes_and_never_an_image_with_itself(folders: list[Path]) -> None:
    """Answers name task, reference and level, so all of two scenes that have a verb share 4 of their 5 words."""
    scene_of = {f"s{scene}_{camera}": f"s{scene}" for scene in range(SCENES) for camera in ("top", "wrist")}
    found = chances(folders[0] / "annotations.parquet", scene_of, 5)
    assert found["vlm-a"]["rouge_l"] == pytest.approx(5 * 4 / 5, abs=1e-9)
    assert chances(folders[0] / "annotations.parquet", {"s0_top": "s0", "s0_wrist": "s0"}, 5) == {}


def refused(words: str, *arguments: object) -> None:
    result = study(*arguments)
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)
    assert "\n" not in str(result.exception)


def test_mistakes_are_one_sentence(folders: list[Path], dataset: Path, tmp_path: Path) -> None:
    out = "--out", tmp_path / "o"
    refused("at least one folder", "opinions", dataset, *out)
    refused("no scores.parquet", "opinions", tmp_path, dataset, *out)
    refused("no finished dataset", "opinions", folders[0], tmp_path, *out)
    refused("there twice", "opinions", folders[0], folders[0], dataset, *out)
    refused("at least two of a stage", "opinions", folders[0], dataset, *out, "--leave-one-out")
    refused("no images of the domain 'moon'", "opinions", folders[0], dataset, *out, "--domain", "moon")
    other = annotated(dataset, tmp_path / "other", "vlm-a", about={"dataset": "0" * 64})
    refused("another dataset", "opinions", other, dataset, *out)
    refused("different datasets", "opinions", other, folders[1], dataset, *out)
    rows = parquet.read_table(folders[0] / "scores.parquet").to_pylist()
    written(tmp_path / "blind" / "scores.parquet", [row for row in rows if row["level"] > 0])
    refused("no scores of undistorted images", "opinions", tmp_path / "blind", dataset, *out)
    written(
        tmp_path / "strange" / "scores.parquet", [{**row, "image": row["image"].replace("s0_", "x_")} for row in rows]
    )
    refused("x_top under haze 1, which is not in", "opinions", tmp_path / "strange", dataset, *out)
    written(tmp_path / "nan" / "scores.parquet", [{**row, "score": float("nan")} for row in rows])
    refused("scores must be in 0 .. 1", "opinions", tmp_path / "nan", dataset, *out)
    written(tmp_path / "flat" / "scores.parquet", [{**row, "score": 1.0} for row in rows])
    refused("nothing to study", "dataset", tmp_path / "flat", dataset, *out)


def test_a_place_that_cannot_be_written_is_said(folders: list[Path], dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for command, out, error in (
        ("opinions", tmp_path / "file", InputError),
        ("dataset", tmp_path / "none" / "study.html", InfrastructureError),
    ):
        result = study(command, *folders, dataset, "--out", out, "--domain", "simulation")
        assert isinstance(result.exception, error), result.output


def test_one_subject_is_said_and_nothing_lost(folders: list[Path], dataset: Path, tmp_path: Path) -> None:
    result = study("opinions", folders[0], dataset, "--out", tmp_path)
    assert result.exit_code == 0
    assert "cognition is the opinion of one subject, vlm-a" in result.stderr
    assert np.isnan(opinion.read_opinions(tmp_path / "opinions.parquet").sos["cognition"]).all()
