"""Low-level attributes by type: planted shifts and shapes are found, and any set of types is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from miniature_dataset import write_miniature
from scipy import stats
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton.perception.dataset import layout
from merton.perception.dataset.tables import MANIFEST_COLUMNS, REFERENCE_COLUMNS, write_tables
from merton_studies.opinions.attributes import ATTRIBUTES, DENOISING, IRREGULAR, AttributeStudy, attribute_study
from merton_studies.opinions.attributes_page import write_attributes_page

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

BLURS = ("gaussian_blur", "lens_blur")
NOISES = ("white_noise", "color_noise", "rain", "snow")


def planted(folder: Path, sign: float = 1.0, references: int = 60) -> AttributeStudy:
    """A study of made-up attributes: blurs left, sharpening right (the other way with the sign -1), denoised types
    narrow, others two-humped.
    """
    rng = np.random.default_rng(0)
    (folder / layout.REFUSED).parent.mkdir(parents=True, exist_ok=True)
    (folder / layout.REFUSED).write_bytes(b"file,reason\n")
    categories = {
        **dict.fromkeys(BLURS, "blur"),
        **dict.fromkeys(NOISES, "noise"),
        **dict.fromkeys(DENOISING, "smooth"),
    }
    categories |= {**dict.fromkeys(IRREGULAR, "steps")}
    records = []
    for number in range(references):
        base = rng.normal(0, 1, 5)
        record = dict.fromkeys(REFERENCE_COLUMNS) | {
            "id": f"r{number}",
            "domain": "real",
            "perspective": "first_person",
        }
        images = []
        for place, (name, category) in enumerate(categories.items()):
            values = base + rng.normal(0, 0.1, 5)
            if category == "blur":
                values[3] -= sign
            elif category == "smooth":
                values *= 0.3
            elif category == "steps":
                values = np.sign(base) * 2.0 + rng.normal(0, 0.05, 5)
                values[3] = base[3] + 3.0 * sign * (name == "sharpness_change") + 2.0 * np.sign(base[3])
            facts = {"reference_id": f"r{number}", "distortion_id": f"{place:02}", "distortion": name, "level": 1}
            images.append(
                dict.fromkeys(MANIFEST_COLUMNS)
                | facts
                | {"category": category}
                | dict(zip(ATTRIBUTES, values.tolist(), strict=True))
            )
        records.append(record | dict(zip(ATTRIBUTES, base.tolist(), strict=True)) | {"tasks": [], "images": images})
    write_tables(folder, records, {})
    return attribute_study(folder, {f"r{number}": f"r{number}" for number in range(references)})


def test_planted_shifts_and_shapes_are_found(tmp_path: Path) -> None:
    study = planted(tmp_path / "data")
    assert [claim.verdict for claim in study.claims] == ["holds"] * 5, [claim.measured for claim in study.claims]
    values = np.concatenate([one.values for one in study.types])
    assert values.mean(axis=0) == pytest.approx(np.zeros(5), abs=1e-9)
    assert values.std(axis=0) == pytest.approx(np.ones(5))


def test_the_opposite_does_not_hold(tmp_path: Path) -> None:
    study = planted(tmp_path / "data", sign=-1.0)
    assert [claim.verdict for claim in study.claims][:2] == ["does not hold"] * 2


def test_the_shapes_are_those_of_scipy(tmp_path: Path) -> None:
    for one in planted(tmp_path / "data").types:
        skew, kurtosis = stats.skew(one.values), stats.kurtosis(one.values, fisher=False)
        assert one.irregularity == pytest.approx(float(((skew**2 + 1) / kurtosis).mean()))
        assert one.spread == pytest.approx(float(one.values.std(axis=0).mean()))


def test_the_page_of_any_types_is_the_same_twice(tmp_path: Path) -> None:
    """A dataset without the paper's types: its sentences are not applicable, and every type has its panel."""
    dataset = write_miniature(tmp_path / "data", scenes=3, side_px=24)
    pages = []
    for name in ("one", "two"):
        result = CliRunner().invoke(app, ["study", "attributes", str(dataset), "--out", str(tmp_path / f"{name}.html")])
        assert result.exit_code == 0, result.output
        pages.append((tmp_path / f"{name}.html").read_text())
    assert pages[0] == pages[1]
    assert pages[0].count("<figure>") == 2
    assert "01 gaussian blur" in pages[0]
    assert result.stdout.count("not applicable: ") == 4
    assert "holds: The blur curve of blurred images lies left" in result.stdout


def test_unknown_attributes_are_left_out(tmp_path: Path) -> None:
    study = planted(tmp_path / "data")
    one = study.types[0]
    one.values[:, 0] = np.nan
    assert np.isnan(one.moments[0][0])
    page = write_attributes_page(study, tmp_path / "page.html").read_text()
    assert "nan" not in page.lower().replace("luminance", "").replace("chrominance", "").replace("provenance", "")


def test_a_folder_without_a_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no finished dataset"):
        attribute_study(tmp_path, {})
