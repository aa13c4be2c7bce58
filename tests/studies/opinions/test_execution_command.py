"""`merton study execution`: metrics of a run's pictures, files that are the same twice, mistakes in one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from fake_run import make_fake_run
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton.perception.images import read_image
from merton.perception.quality import Metric, measure
from merton.results.records import TrialRecord
from merton.results.store import ResultStore
from merton.results.trial_files import first_frame, trial_detail
from merton.study.execution_study import from_json
from merton_studies.iqa import trial_values

METRICS = ("psnr", "blur_effect")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "full"
    make_fake_run(directory, levels=(1, 3, 5))
    return directory


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Metric, "missing", lambda metric: None if metric.name in METRICS else "too slow for a test")
    monkeypatch.setattr("merton.processes.usable_cores", lambda: 1)
    monkeypatch.setattr("merton.statistics.clustered.DRAWS", 100)
    monkeypatch.setattr("merton.statistics.clustered.PERMUTATIONS", 100)


def records_of(run: Path) -> list[TrialRecord]:
    with ResultStore(run / "results.sqlite", read_only=True) as store:
        return [record for experiment in store.experiments() for record in store.records(experiment)]


def test_a_trial_is_measured_on_its_first_picture_and_higher_is_better(run: Path) -> None:
    records = records_of(run)
    found = trial_values.trial_values(run, records, METRICS, workers=1)
    record = next(item for item in records if item.id in found["psnr"])
    frame = first_frame(trial_detail(run, record) or {})
    distorted, reference = (read_image(run / "trials" / record.id / frame[side]) for side in ("distorted", "reference"))
    assert found["psnr"][record.id] == measure("psnr", distorted, reference)
    assert found["blur_effect"][record.id] == -measure("blur_effect", distorted), "less is better"
    with_pictures = {item.id for item in records if (run / "trials" / item.id / "00_top_distorted.jpg").exists()}
    distorted_ones = {item.id for item in records if item.case.level}
    assert set(found["psnr"]) == with_pictures & distorted_ones
    assert distorted_ones - with_pictures, "a trial without its pictures has no value"


def test_values_are_measured_once_and_again_when_the_code_changes(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    records = [record for record in records_of(copy) if record.case.task == "pick"]
    job = trial_values._Job(copy, tuple(records), {"psnr": "one"}, tmp_path / "part.json")
    first = trial_values._work(job)
    written = job.part.read_bytes()
    asked: list[str] = []
    monkeypatch.setattr(trial_values, "_value", lambda name, *pictures: asked.append(name) or 1.0)
    assert trial_values._work(job) == first
    assert (asked, job.part.read_bytes()) == ([], written)
    changed = trial_values._Job(copy, tuple(records), {"psnr": "two"}, job.part)
    assert set(trial_values._work(changed)["psnr"].values()) == {1.0}
    assert 0 < len(asked) < len(first["psnr"]), "agents that saw the same picture share its value"


def test_the_command_writes_numbers_and_a_page_and_the_same_twice(run: Path, tmp_path: Path) -> None:
    written = []
    for name in ("one", "two"):
        files = [tmp_path / f"{name}.json", tmp_path / f"{name}.html"]
        command = ["study", "execution", str(run), "--json", str(files[0]), "--out", str(files[1])]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        written.append([file.read_bytes() for file in files])
    assert written[0] == written[1]
    assert "ssim is left out: too slow for a test" in result.stderr
    study = from_json(written[0][0], "one.json")
    assert study.agents == ("servo",)
    assert study.excluded.blind_agents == ("hold", "oracle")
    assert {row.metric for row in study.metrics if row.kind == "metric"} == set(METRICS)
    assert "SRCC(D, E) over types, from this run:" in result.stdout
    about = json.loads(written[0][0])["about"]
    assert (about["run"], about["seed"], len(about["trials_sha256"])) == ("quickstart-20260314-092653", 0, 64)
    assert all(np.isfinite(row.srcc) for row in study.coefficients if row.srcc is not None)


def test_mistakes_are_one_sentence(run: Path, tmp_path: Path) -> None:
    few = tmp_path / "few"
    make_fake_run(few, distortions=("gaussian_blur",), tasks=("pick",))
    refused = CliRunner().invoke(app, ["study", "execution", str(few)])
    assert isinstance(refused.exception, InputError)
    assert "at least 5 types of distortion" in str(refused.exception)
    refused = CliRunner().invoke(app, ["study", "execution", str(run), "--opinions", str(tmp_path / "none.parquet")])
    assert isinstance(refused.exception, InputError)
    assert "none.parquet" in str(refused.exception)
