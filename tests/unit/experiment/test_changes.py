"""Changes of an experiment by a command line: any key, shipped experiments by name, sweeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from merton.cli.changing import by_namespace, settings_of
from merton.cli.main import app
from merton.cli.sweeping import labelled
from merton.config import loads
from merton.errors import FileError, InputError
from merton.experiment.changes import experiment_file, experiments, one_experiment, shipped, value_of
from merton.experiment.plan import ExperimentSpec
from merton.experiment.run import RunDirectory
from merton.experiment.run_names import latest_run

TEXT = """\
# ours
name: ours
seed: 3   # drawn once
agents:
  - {id: one, vla: servo}
  - {id: two, vla: hold}
tasks: [reach]
distortions: [jpeg]
levels: [0, 5]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ours.yaml"
    path.write_bytes(TEXT.encode())
    return path


def merton(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "160"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_an_experiment_without_changes_is_its_file(file: Path) -> None:
    file.write_bytes(TEXT.replace("\n", "\r\n").encode())
    (made,) = experiments(file)
    assert made.text.encode() == file.read_bytes(), "line ends, too: a run is resumed with the same bytes alone"
    assert not made.changes
    assert sorted(made.about) == ["source"]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("seed", 8, {"seed": 8}),
        ("agents.1.vla", "glance", {"agents": {1: {"vla": "glance"}}}),
        ("distort.steps", (0,), {"distort": {"steps": (0,)}}),
        ("levels", "one", {"levels": "one"}),
        ("latency_s", 0.5, {"latency_s": 0.5}),
    ],
)
def test_a_change_is_one_key_and_nothing_else(file: Path, key: str, value: object, says: dict) -> None:
    (made,) = experiments(file, [(key, value)])
    before, after = (spec.model_dump() for spec in (loads(TEXT, ExperimentSpec), made.spec))
    (top, expected) = next(iter(says.items()))
    if isinstance(expected, dict):
        for place, inner in expected.items():
            entry = after[top][place]
            assert {**entry, **inner} == entry if isinstance(inner, dict) else entry == inner
    else:
        assert after[top] == expected
    assert {**before, top: after[top]} == after
    assert after[top] != before[top]
    assert made.about["changes"] == {key: value}
    assert "# drawn once" in made.text, "comments are kept"
    assert loads(made.text, ExperimentSpec).model_dump() == after
    assert experiments(file, list(made.changes.items()))[0].text == made.text, "the changes make the experiment again"
    again = file.with_name("again.yaml")
    again.write_text(made.text)
    assert experiments(again, [(key, value)])[0].text == made.text, "a run goes on with the same settings, too"


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("agents.2.vla", "hold", "there is no key 'agents.2.vla': agents has 2 entries, so agents.0 to agents.1"),
        ("agents.x.vla", "hold", "there is no key 'agents.x.vla': agents has 2 entries"),
        ("seed.low", 1, "there is no key 'seed.low': seed is a single value"),
        ("levels", (9,), r"ours\.yaml with levels=\[9\]: levels, entry 1: must be at most 5, got 9"),
        ("distort.step", (0,), "distort.step: unknown key; did you mean 'steps'"),
        ("agents.0.vla", "serfo", "agents, entry 1, vla: unknown vla 'serfo'; did you mean 'servo'"),
        ("agents", None, "agents: must be a list, got nothing"),
    ],
)
def test_a_wrong_change_is_one_sentence(file: Path, key: str, value: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        experiments(file, [(key, value)])


def test_a_sweep_is_every_combination_in_order(file: Path) -> None:
    made = experiments(file, [("seed", 1), ("levels", "one"), ("seed", 2), ("levels", (0, 3))])
    assert [one.title for one in made] == [
        "seed=1, levels=one", "seed=1, levels=[0, 3]", "seed=2, levels=one", "seed=2, levels=[0, 3]",
    ]  # fmt: skip
    assert [one.label for one in made][1:3] == ["seed-1-levels-0-3", "seed-2-levels-one"]
    assert len({one.text for one in made}) == len(made)
    file.write_text(f"{TEXT}sweep:\n  seed: [1, 2]\n  levels: [one, [0, 3]]\n")
    assert [(one.spec, one.changes) for one in experiments(file)] == [(one.spec, one.changes) for one in made]
    (chosen,) = experiments(file, [("seed", 2), ("levels", "one")])
    assert (chosen.spec, chosen.label) == (made[2].spec, "")
    with pytest.raises(
        InputError, match=r"merton plan takes one experiment, and .* a sweep of 4: give each of seed, l"
    ):
        one_experiment(file, (), "merton plan")


@pytest.mark.parametrize("sweep", ["3", "{seed: 1}", "{seed: []}"])
def test_a_sweep_that_is_none_is_refused(file: Path, sweep: str) -> None:
    file.write_text(f"{TEXT}sweep: {sweep}\n")
    with pytest.raises(FileError, match=r"sweep(\.seed)?: must be a"):
        experiments(file)


def test_names_of_a_sweep_are_different_and_short(file: Path) -> None:
    alike = experiments(file, [("description", "a b"), ("description", "a-b")])
    assert [label for _, label in labelled(alike)] == ["1", "2"]
    long = experiments(file, [("description", "x" * 90), ("description", "y" * 90)])
    assert [label for _, label in labelled(long)] == ["1", "2"]


def test_shipped_experiments_have_names(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    assert experiment_file("quickstart") == experiment_file("quickstart.yaml") == shipped()["quickstart"]
    (file.parent / "quickstart.yaml").write_text(TEXT)
    assert experiment_file("quickstart.yaml") == Path("quickstart.yaml"), "a file that is there comes first"
    with pytest.raises(InputError, match="no experiment 'quikstart'; did you mean 'quickstart'"):
        experiment_file("quikstart")
    with pytest.raises(InputError, match=r"`merton new -o away/mine\.yaml` writes it, and these come with M.*gate"):
        experiment_file("away/mine.yaml")
    listed = merton("run")
    assert all(name in listed for name in shipped())
    assert "new mine.yaml" in listed


def test_options_are_settings(file: Path) -> None:
    chosen = settings_of(
        file,
        ["agents.0.id=first"],
        seed=4, scenes=2, levels="0,3", distortions="", cameras="top,wrist",
    )  # fmt: skip
    (made,) = experiments(file, chosen)
    spec = made.spec
    assert (spec.seed, spec.scenes, spec.levels, spec.distortions) == (4, 2, (0, 3), ())
    assert (spec.distort.cameras, spec.agents[0].id) == (("top", "wrist"), "first")
    (made,) = experiments(file, settings_of(file, [], agents="two,gaze+glance", levels="staircase"))
    assert [(agent.id, agent.vlm, agent.vla) for agent in made.spec.agents] == [
        ("two", "describe", "hold"),
        ("gaze-glance", "gaze", "glance"),
    ]
    assert made.spec.levels == "staircase"
    with pytest.raises(InputError, match="unknown agent or vla 'thre'"):
        settings_of(file, [], agents="thre")
    with pytest.raises(InputError, match="--seed and --set seed=2 are of one key"):
        settings_of(file, ["seed=2"], seed=1)


def test_a_key_is_of_the_experiment_first_and_then_of_the_graph() -> None:
    arguments = ["deadline_s", "quality_metric"]
    texts = ["deadline_s=9", "quality_metric=niqe-merton", "distort.steps=[0]"]
    assert by_namespace(texts, "sim", arguments) == (texts[1:], {"deadline_s": "9"})
    with pytest.raises(
        InputError, match=r"--set scens: no such key; did you mean 'scenes'. keys of an experiment: name"
    ):
        by_namespace(["scens=3"], "sim", arguments)
    with pytest.raises(InputError, match=r"did you mean .deadline_s.. .*arguments of the graph sim: deadline_s, qual"):
        by_namespace(["deadline=3"], "sim", arguments)
    with pytest.raises(InputError, match="--set deadline_s is there twice"):
        by_namespace(["deadline_s=3", "deadline_s=4"], "sim", arguments)
    with pytest.raises(InputError, match="--set takes key=value, got 'seed'"):
        by_namespace(["seed"], "sim", arguments)
    with pytest.raises(InputError, match="--set seed"):
        value_of("[1", "seed")


def test_a_run_holds_what_was_changed_and_is_resumed_with_the_same(file: Path) -> None:
    (made,) = experiments(file, [("seed", 8)])
    run = RunDirectory.create(file.parent / "runs", made.file, "mine", text=made.text, about=made.about)
    about = json.loads((run.path / "run.json").read_text())
    assert (about["changes"], about["seed"], run.spec.seed) == ({"seed": 8}, 8, 8)
    assert about["source"]["file"] == str(file)
    assert latest_run(file.parent / "runs", file, made.text).path == run.path
    run.check_experiment(file, made.text)
    with pytest.raises(InputError, match="is a run of another experiment"):
        run.check_experiment(file)
    assert [one.spec for one in experiments(run.path / "experiment.yaml")] == [run.spec]


def test_the_dry_run_of_a_sweep_names_each(file: Path) -> None:
    said = merton("run", str(file), "--dry-run", "--set", "seed=1", "--set", "seed=2", "--scenes", "3")
    assert said.count("ours: ") == 2
    assert said.index("seed=1:") < said.index("seed=2:")
