"""Commands that run models ask for all extras, of the models too, before anything is written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from merton.cli.attribute import attribute_command
from merton.cli.gate import gate_command
from merton.cli.main import app
from merton.config import loads
from merton.errors import MissingDependencyError
from merton.experiment.dry_run import extras_of
from merton.experiment.plan import ExperimentSpec

EXPERIMENT = """
name: mine
agents:
  - {id: a, vlm: qwen2.5-vl, vla: openvla}
  - {id: b, vla: hold}
tasks: [reach]
levels: [0]
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment on a machine without torch, servers' clients, MCAP and Ray."""
    for name in ("huggingface_hub", "torch", "transformers", "httpx2", "mcap", "ray"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.yaml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return path


def test_an_experiment_knows_the_extras_of_its_models_and_its_image_gate() -> None:
    assert extras_of(loads(EXPERIMENT, ExperimentSpec)) == ["models", "remote"]
    gated = EXPERIMENT + "min_image_quality: 0.5\nquality_metric: brisque\n"
    assert extras_of(loads(gated, ExperimentSpec)) == ["models", "remote", "quality"]


def test_a_command_names_all_before_it_writes(file: Path) -> None:
    def run(words: str) -> None:
        app(words.split(), standalone_mode=False)

    models = "huggingface-hub, torch, transformers and httpx2"
    for call, named in (
        (lambda: run("run mine.yaml --record"), f"mine.yaml needs mcap, {models}: install it"),
        (lambda: run("run mine.yaml --in-process --engine ray"), f"mine.yaml needs ray, {models}: install it"),
        (lambda: gate_command("qwen2.5-vl+hold", "openvla"), f"qwen2.5-vl\\+hold against openvla needs {models}: "),
        (lambda: attribute_command(file), f"mine.yaml needs {models}: install it"),
    ):
        with pytest.raises(MissingDependencyError, match=named):
            call()
    assert list(file.parent.iterdir()) == [file]


def test_a_dry_run_says_it_and_goes_on(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app(["run", "mine.yaml", "--dry-run", "--record"], standalone_mode=False)
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("not ready here")]
    assert len(said) == 1
    assert said[0].startswith("not ready here: mine.yaml needs mcap, huggingface-hub, torch, transformers and httpx2: ")
