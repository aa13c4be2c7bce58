"""A run holds the entries of its models: it is read without a catalogue, and goes on with the same models alone."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from merton.cognition.models.base import MODELS
from merton.config import load
from merton.decision.models.base import POLICIES
from merton.errors import FileError, InputError, UnknownNameError
from merton.experiment.changes import experiments
from merton.experiment.films import make_films
from merton.experiment.parts import AXES, dissection
from merton.experiment.plan import ExperimentSpec
from merton.experiment.run import RunDirectory
from merton.models.catalogue import VARIABLE
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore

EXPERIMENT = """
name: ours
agents: [{id: one, vla: our-vla}, {id: two, vla: hold}]
tasks: [reach]
distortions: [jpeg]
"""
ENTRY = '{name: our-vla, description: "ours", adapter: "ours:Ours", cameras: [top], settings: {speed: 1}}'


def catalogue(folder: Path, entry: str = ENTRY) -> Path:
    file = folder / "lab.yaml"
    file.write_text(f"vla:\n  - {entry}\n")
    return file


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """Makes a new terminal of this process: the catalogues are read again, in an empty folder."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    away = tmp_path / "away"
    away.mkdir()

    def new_terminal() -> None:
        monkeypatch.delenv(VARIABLE, raising=False)
        monkeypatch.chdir(away)
        for one in (MODELS, POLICIES):
            monkeypatch.setattr(one, "_read", False)
            monkeypatch.setattr(one, "_entries", {})
            monkeypatch.setattr(one, "_files", {})

    return new_terminal


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]) -> Path:
    """A run of a lab's own model, then a new terminal."""
    forget()
    monkeypatch.setenv(VARIABLE, str(catalogue(tmp_path)))
    file = tmp_path / "ours.yaml"
    file.write_text(EXPERIMENT)
    made = RunDirectory.create(tmp_path / "runs", file, "ours")
    made.check_experiment(file)
    forget()
    return made.path


def test_a_run_is_read_without_its_catalogue(run: Path) -> None:
    opened = RunDirectory(run)
    assert opened.spec.vla_entry("our-vla").settings == {"speed": 1}
    assert "our-vla" not in POLICIES, "the catalogue of this machine stays as it is"
    with ResultStore(run / "results.sqlite") as store:
        opened.register(store)
    assert dissection(opened.spec, opened.spec.agents[0], AXES, 2).looks
    assert [one.spec for one in experiments(run / "experiment.yaml")] == [opened.spec]
    about = json.loads((run / "run.json").read_text())
    assert about["models"]["vla"]["our-vla"]["file"].endswith("lab.yaml")
    assert "file" not in about["models"]["vla"]["hold"]
    assert set(about["models"]["vla"]) == {"our-vla", "hold", "oracle"}
    assert about["models"]["vla"]["our-vla"]["entry"].keys() == type(POLICIES["hold"]).model_fields.keys()


def test_a_catalogue_that_is_broken_hides_no_run(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "gone.yaml")
    assert RunDirectory(run).spec.vla_entry("our-vla").cameras == ("top",)


def test_going_on_says_which_model_is_missing(run: Path) -> None:
    opened = RunDirectory(run)
    says = rf"^the vla 'our-vla' is in no catalogue here, .* made with .*lab\.yaml, so set {VARIABLE}=.*lab\.yaml$"
    with pytest.raises(InputError, match=says):
        opened.check_experiment(run / "experiment.yaml")


@pytest.mark.parametrize(
    ("entry", "keys"),
    [
        (ENTRY.replace("speed: 1", "speed: 2"), r"settings\.speed"),
        (ENTRY.replace("[top]", "[top, side]").replace("speed: 1", ""), r"settings\.speed, cameras"),
        (ENTRY.replace("ours:Ours", "other:Ours"), "adapter"),
        (ENTRY.replace('"ours"', '"ours, in other words"'), ""),
    ],
)
def test_going_on_takes_the_same_model_alone(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, keys: str
) -> None:
    monkeypatch.setenv(VARIABLE, str(catalogue(tmp_path, entry)))
    opened = RunDirectory(run)
    assert opened.spec.vla_entry("our-vla").settings == {"speed": 1}, "the run's own comes first"
    if not keys:
        opened.check_models()
        return
    with pytest.raises(InputError, match=rf"the vla 'our-vla' is another one than when .*, by its {keys}: put the"):
        opened.check_models()


def test_films_ask_for_the_model_before_they_begin(run: Path) -> None:
    case = TestCase("reach", 0, "jpeg", 5)
    record = TrialRecord("ours", "one", case, Outcome.SUCCESS, 0.5, 1.0, 100.0)
    with pytest.raises(InputError, match="the vla 'our-vla' is in no catalogue here"):
        make_films(run, [record])
    assert not list(run.glob("**/*.webp"))


def test_an_unknown_name_is_the_same_in_another_process() -> None:
    error = UnknownNameError("vla", "serfo", ["servo"], "read from a file")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_run_of_an_older_merton_says_where_models_are_read_from(run: Path) -> None:
    about = json.loads((run / "run.json").read_text())
    del about["models"]
    (run / "run.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match=rf"unknown vla 'our-vla'; .*read from \./catalogue\.yaml and .* {VARIABLE}"):
        RunDirectory(run)


@pytest.mark.parametrize("models", [[], {"vla": 3}, {"vla": {"our-vla": {}}}, {"vla": {"our-vla": {"entry": 1}}}])
def test_a_torn_record_of_models_is_named(run: Path, models: object) -> None:
    about = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**about, "models": models}))
    with pytest.raises(FileError, match=r"run\.json: models, tasks and world must be as Merton wrote them"):
        RunDirectory(run)


def test_a_field_that_came_later_has_its_default(run: Path) -> None:
    about = json.loads((run / "run.json").read_text())
    entry = about["models"]["vla"]["our-vla"]["entry"]
    del entry["stochastic"]
    entry["of_another_merton"] = True
    (run / "run.json").write_text(json.dumps(about))
    assert RunDirectory(run).spec.vla_entry("our-vla").stochastic is False


def test_a_task_of_a_lab_needs_its_file_to_go_on_alone(run: Path) -> None:
    about = json.loads((run / "run.json").read_text())
    task = {"file": "/lab/stack.py", "sha256": "0" * 64}
    (run / "run.json").write_text(json.dumps({**about, "tasks": {"stack": task}}))
    (run / "experiment.yaml").write_text(EXPERIMENT.replace("reach", "stack").replace("our-vla", "hold"))
    opened = RunDirectory(run)
    assert next(case.id for case in opened.spec.cases()) == "stack.0.reference.0"
    with pytest.raises(InputError, match=r"the task 'stack' is in no file here, .* MERTON_TASKS=/lab/stack\.py$"):
        opened.check_models()


def test_catalogue_yaml_of_the_folder_is_read_by_itself(
    forget: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget()
    own = Path("catalogue.yaml")
    own.write_text(f"vla:\n  - {ENTRY}\n")
    assert POLICIES.file_of("our-vla") == own.absolute()
    assert POLICIES.file_of("hold") is None
    file = tmp_path / "ours.yaml"
    file.write_text(EXPERIMENT)
    assert load(file, ExperimentSpec).agents[0].vla == "our-vla"
    monkeypatch.setattr(POLICIES, "_read", False)
    monkeypatch.setattr(POLICIES, "_entries", {})
    monkeypatch.setenv(VARIABLE, str(catalogue(tmp_path, ENTRY.replace("[top]", "[side]"))))
    assert POLICIES["our-vla"].cameras == ("side",), "a file that is named comes after it"
