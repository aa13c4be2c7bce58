"""`merton new`, `--dry-run`, the reference of the experiment file, and commands that can be pasted."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from merton.cli import console, new
from merton.cli.main import app
from merton.config import load, loads
from merton.errors import InputError
from merton.experiment.dry_run import not_ready
from merton.experiment.plan import DistortedPart, ExperimentSpec
from merton.experiment.reference import keys, listing
from merton.experiment.template import experiment_text

ROOT = Path(__file__).parents[3]
CHOSEN = ("mine", ["glance", "describe+hold"], ["pick"], ["jpeg"], [1, 5], 3)


def merton(*arguments: str, answers: str = "") -> str:
    result = CliRunner().invoke(app, list(arguments), input=answers)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0
    return result.output


def test_every_key_stands_in_a_new_experiment_with_a_comment() -> None:
    text = experiment_text(*CHOSEN)
    spec = loads(text, ExperimentSpec)
    assert (spec.name, spec.tasks, spec.levels, spec.scenes) == ("mine", ("pick",), (1, 5), 3)
    assert [agent.id for agent in spec.agents] == ["glance", "describe-hold"]
    assert all(f"{name}:" in text for name in (*ExperimentSpec.model_fields, *DistortedPart.model_fields))
    assert all(key.short in text for key in keys())
    assert spec.design == loads("\n".join(line for line in text.splitlines() if line[:1] != "#"), ExperimentSpec).design


def test_a_key_without_its_hash_holds_its_default() -> None:
    """But for those whose default is nothing, which have an example."""
    text = experiment_text(*CHOSEN)
    for name in ("seed", "reference_scenes", "max_steps", "vlm_camera", "prompt", "stop_rule", "sensor", "latency_s"):
        assert loads(text.replace(f"# {name}:", f"{name}:"), ExperimentSpec) == loads(text, ExperimentSpec), name
    assert loads(text.replace("# couple:", "couple:"), ExperimentSpec).couple == "vlm -> vla"


def test_a_new_experiment_by_options_by_questions_and_never_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = merton("new", "-o", "My Study.yaml", "--agents", "hold", "--levels", "staircase", "--scenes", "2")
    assert said.splitlines()[0] == "my-study: 12 trials (4 undistorted, 8 distorted)"
    assert said.splitlines()[-1].endswith("run 'My Study.yaml'")
    with pytest.raises(InputError, match="exists: choose another name"):
        merton("new", "-o", "My Study.yaml")
    monkeypatch.setattr(new, "_on_a_terminal", lambda: True)
    asked = merton("new", "-o", "asked.yaml", answers="hold,sevro\nhold,servo\n\n\n2\n1\n")
    assert "agents, entry 2, vla: unknown vla 'sevro'; did you mean 'servo'?" in asked
    spec = load(Path("asked.yaml"), ExperimentSpec)
    assert ([agent.vla for agent in spec.agents], spec.levels, spec.scenes) == (["hold", "servo"], (2,), 1)


def test_a_dry_run_names_the_models_that_are_not_ready(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("name: x\nagents: [{id: a, vla: pi0-droid}, {id: b, vla: hold}]\ntasks: [pick]\n")
    assert not_ready(load(file, ExperimentSpec))[0].startswith("not ready here: vla pi0-droid: ")
    assert not any("hold" in line for line in not_ready(load(file, ExperimentSpec)))
    assert "not ready here: vla pi0-droid" in merton("run", str(file), "--dry-run")


def test_the_table_of_the_document_is_that_of_the_models() -> None:
    """To renew it: .venv/bin/python tools/renew/experiment_reference.py."""
    assert listing() in (ROOT / "docs" / "use" / "experiments.md").read_text(encoding="utf-8")
    rows = {key.name: key for key in keys()}
    assert set(ExperimentSpec.model_fields) <= set(rows)
    assert (rows["scenes"].values, rows["scenes"].default) == ("a whole number, 1 to 100,000", "`1`")
    assert all(key.meaning for key in keys())


def test_a_printed_command_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "merton"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for variable in ("MERTON_CATALOGUE", "MERTON_WORLDS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert console.own_command("run", "my file.yaml") == "bin/merton run 'my file.yaml'"
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("MERTON_CATALOGUE", "my lab.yaml")
    assert console.own_command("runs") == "MERTON_CATALOGUE='my lab.yaml' merton runs"
    monkeypatch.setenv("MERTON_TASKS", "stack.py")
    assert console.own_command("runs") == "MERTON_CATALOGUE='my lab.yaml' MERTON_TASKS=stack.py merton runs"
    monkeypatch.delenv("MERTON_CATALOGUE")
    monkeypatch.delenv("MERTON_TASKS")
    monkeypatch.setattr(sys, "argv", ["/x/merton/__main__.py"])
    assert shlex.split(console.own_command("runs")) == [sys.executable, "-m", "merton", "runs"]
