"""A run in TensorBoard, MLflow and Weights & Biases: written by their clients, and read back by their own readers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_run import make_fake_run
from typer.testing import CliRunner
from wandb_log import named, records

from merton.cli.main import app
from merton.errors import InfrastructureError, InputError, MissingDependencyError
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.statistics.means import mean_interval
from merton.study.report import write_report
from merton.study.trackers import in_wandb, targets
from merton.study.trackers.content import Content, content, plain

ID = "quickstart-20260314-092653"
AGENTS = ("servo", "hold")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two agents with its report."""
    folder = tmp_path_factory.mktemp("trackers") / "first"
    make_fake_run(folder, agents=AGENTS, distortions=("gaussian_blur", "max_darken"), tasks=("pick",), seeds=3)
    (folder / "experiment.yaml").write_text("name: first\n", encoding="utf-8")
    write_report(folder)
    return folder


@pytest.fixture(scope="module")
def grown(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, with one trial more."""
    folder = tmp_path_factory.mktemp("grown") / "first"
    shutil.copytree(run, folder)
    with ResultStore(folder / "results.sqlite") as store:
        experiment = store.experiments()[0]
        case = TestCase("pick", 9, "reference", 0)
        store.record(TrialRecord(experiment, "servo", case, Outcome.SUCCESS, execution=100.0))
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which clients write, without a network and without anybody's account."""
    monkeypatch.chdir(tmp_path)
    for name in ("WANDB_DIR", "WANDB_API_KEY", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_MODE", "offline")
    return tmp_path


def logged(run: Path | Content, *texts: str) -> list[str]:
    said: list[str] = []
    of = run if isinstance(run, Content) else content(run)
    targets.log(of, [targets.target(text) for text in texts], said.append)
    return said


def expected(run: Path, score: str, agent: str, distortion: str, level: int) -> tuple[float, float, float, int]:
    """Mean, ends of its interval and number of the trials, from the record itself."""
    with ResultStore(run / "results.sqlite", read_only=True) as store:
        found = [
            (record.case.scene, float(value))
            for record in store.records()
            if record.agent == agent
            and record.case.level == level
            and (level == 0 or record.case.distortion == distortion)
            and (value := record.success if score == "success" else getattr(record, score)) is not None
        ]
    scale = 100.0 if score == "execution" else 1.0
    values = [value / scale for _, value in found]
    low, high = mean_interval(values, [scene for scene, _ in found])
    return scale * sum(values) / len(values), scale * low, scale * high, len(values)


def test_names_of_agents_stay_distinct(tmp_path: Path) -> None:
    """`a+b` and `a_b` are two agents, and `..` is a name like any other and no folder."""
    names = ("a+b", "a_b", "a.b", "a b", "a/b", "..", "", "x" * 200, "x" * 201)
    assert len({plain(name) for name in names}) == len(names)
    assert plain("a_b") == "a_b"
    assert not {plain(name) for name in names} & {"..", ".", ""}
    run = tmp_path / "first"
    make_fake_run(run, agents=("a+b", "a_b"), distortions=("jpeg",), tasks=("pick",), seeds=2)
    write_report(run)
    found = content(run)
    (_, values), *_ = found.by_level()
    assert {name.split("/")[1] for name in values} == {plain("a+b"), "a_b"}
    assert {name for name in found.summary if name.startswith("drop/")} == {f"drop/{plain('a+b')}", "drop/a_b"}


CASES = [
    (score, agent, distortion, level)
    for score in ("success", "cognition", "decision", "execution")
    for agent in AGENTS
    for distortion in ("gaussian_blur", "max_darken")
    for level in (0, 3)
]


def test_a_curve_has_the_means_and_intervals_of_the_trials(run: Path) -> None:
    points = {
        (curve.score, curve.agent, curve.distortion, point.level): point
        for curve in content(run).curves
        for point in curve.points
    }
    checked = 0
    for case in CASES:
        if case in points:
            point = points[case]
            assert (point.mean, point.low, point.high, point.trials) == pytest.approx(expected(run, *case))
            assert point.low <= point.mean <= point.high
            checked += 1
    assert checked >= 24


def test_the_hash_is_that_of_the_numbers(run: Path, grown: Path) -> None:
    first, more = content(run), content(grown)
    assert first.sha256 == content(run).sha256 != more.sha256
    assert first.identity == more.identity
    assert first.settings["experiment_sha256"] != ""
    assert {file.name for file in first.files} >= {"report.html", "trials.csv", "run.json", "experiment.yaml"}


def test_a_run_of_the_same_name_that_was_begun_later_is_another(run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(run, tmp_path / "first")
    facts = json.loads((other / "run.json").read_text(encoding="utf-8"))
    (other / "run.json").write_text(json.dumps({**facts, "created": "2026-03-15T00:00:00+00:00"}), encoding="utf-8")
    assert content(other).identity != content(run).identity


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("wandbs:x", "unknown tracker 'wandbs'; did you mean 'wandb'"),
        ("mlflow", "'mlflow' names no place: write mlflow:URI"),
        ("tensorboard: ", "names no place: write tensorboard:FOLDER"),
    ],
)
def test_a_target_that_is_none_is_named(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        targets.target(text)


def test_an_address_keeps_its_colons() -> None:
    assert targets.target("mlflow:sqlite:///a.db").where == "sqlite:///a.db"


def test_a_client_that_fails_is_one_sentence_and_stops_no_other(
    run: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(run: Content, where: str) -> str:
        raise ConnectionError("no route\nto host")

    trackers = {"mlflow": ("URI", broken), "tensorboard": ("FOLDER", lambda run, where: f"done {where}")}
    monkeypatch.setattr(targets, "_TRACKERS", trackers)
    said: list[str] = []
    both = [targets.target("mlflow:http://127.0.0.1:9"), targets.target("tensorboard:there")]
    with pytest.raises(InfrastructureError) as error:
        targets.log(content(run), both, said.append)
    assert said == ["done there"]
    assert str(error.value) == (
        f"{ID} is not logged to mlflow:http://127.0.0.1:9: ConnectionError: no route to host "
        "(its report and record are written: log it again)"
    )


def test_without_the_client_the_command_says_what_to_install_before_it_works(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(run, tmp_path / "first")
    (copy / "report.html").unlink()
    monkeypatch.setattr("merton.extras._is_there", lambda module: module != "tensorboardX")
    result = CliRunner().invoke(app, ["report", str(copy), "--log-to", "tensorboard:there"])
    assert isinstance(result.exception, MissingDependencyError)
    assert "`--log-to` needs tensorboardX: install it with" in str(result.exception)
    assert not (copy / "report.html").exists()


class TestTensorBoard:
    """Read by TensorBoard's own accumulator of events."""

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("tensorboardX")
        pytest.importorskip("tensorboard")

    def accumulated(self, folder: Path) -> Any:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        found = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
        found.Reload()
        return found

    def test_each_agent_is_a_run_with_its_interval_beside_it(self, run: Path, here: Path) -> None:
        logged(run, "tensorboard:tb")
        for score, agent, distortion, level in CASES:
            parts = [self.accumulated(here / "tb" / ID / agent / part) for part in ("", "low", "high")]
            tag = f"{score}/{distortion}"
            if tag not in parts[0].Tags()["scalars"]:
                continue
            steps = [{event.step: event.value for event in part.Scalars(tag)} for part in parts]
            trials = {event.step: event.value for event in parts[0].Scalars(f"trials/{tag}")}
            if level in steps[0]:
                found = (*(values[level] for values in steps), trials[level])
                assert found == pytest.approx(expected(run, score, agent, distortion, level), rel=1e-6)
        assert {event.step for event in parts[0].Scalars("success/gaussian_blur")} == {0, 1, 2, 3, 4, 5}

    def test_settings_and_drops_are_texts_and_files_lie_beside(self, run: Path, here: Path) -> None:
        logged(run, "tensorboard:tb")
        whole = self.accumulated(here / "tb" / ID)
        texts = {
            tag: whole.Tensors(tag)[0].tensor_proto.string_val[0].decode()
            for tag in ("settings/text_summary", "drops/text_summary")
        }
        assert "| seed |" in texts["settings/text_summary"]
        assert "| servo |" in texts["drops/text_summary"]
        assert (here / "tb" / ID / "report.html").read_bytes() == (run / "report.html").read_bytes()

    def test_twice_is_once_and_more_trials_replace_it(self, run: Path, grown: Path, here: Path) -> None:
        logged(run, "tensorboard:tb")
        before = sorted((here / "tb").rglob("*tfevents*"))
        assert logged(run, "tensorboard:tb") == [f"TensorBoard: tb/{ID} has this run already"]
        assert sorted((here / "tb").rglob("*tfevents*")) == before
        logged(grown, "tensorboard:tb")
        trials = self.accumulated(here / "tb" / ID / "servo").Scalars("trials/success/gaussian_blur")
        assert (trials[0].step, trials[0].value) == (0, 4.0)
        assert len(trials) == 6
        assert [file.name for file in (here / "tb").iterdir()] == [ID]

    def test_a_folder_of_something_else_is_left_alone(self, run: Path, here: Path) -> None:
        (here / "tb" / ID).mkdir(parents=True)
        (here / "tb" / ID / "notes.txt").write_text("mine", encoding="utf-8")
        with pytest.raises(InputError, match="is there and has not this run"):
            logged(run, "tensorboard:tb")
        assert (here / "tb" / ID / "notes.txt").read_text(encoding="utf-8") == "mine"

    def test_the_command_logs_behind_the_report(self, run: Path, here: Path) -> None:
        copy = shutil.copytree(run, here / "first")
        shutil.copy(Path(__file__).parents[3] / "config/experiments/quickstart.yaml", copy / "experiment.yaml")
        with ResultStore(copy / "results.sqlite", read_only=True) as store:
            (id,) = store.experiments()
        facts = json.loads((copy / "run.json").read_text(encoding="utf-8"))
        (copy / "run.json").write_text(json.dumps({**facts, "id": id}), encoding="utf-8")
        result = CliRunner().invoke(app, ["report", str(copy), "--log-to", "tensorboard:tb"])
        assert result.exit_code == 0, result.exception
        assert f"TensorBoard: tb/{id}; tensorboard --logdir tb shows it" in result.output


class TestMlflow:
    """Read by MLflow's client, from its database file."""

    URI = "sqlite:///mlflow.db"

    @pytest.fixture(scope="class")
    def made(self, run: Path, grown: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
        """The runs in MLflow after one call, after a second, and with more trials; its tables take seconds to make."""
        mlflow = pytest.importorskip("mlflow")
        pytest.importorskip("alembic")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path_factory.mktemp("mlflow"))
            patch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
            said = [*logged(run, f"mlflow:{self.URI}"), *logged(run, f"mlflow:{self.URI}")]
            client = mlflow.MlflowClient(tracking_uri=self.URI)
            experiment = client.get_experiment_by_name("merton").experiment_id
            (first,) = client.search_runs([experiment])
            found = {
                "said": said,
                "run": first,
                "history": lambda name: client.get_metric_history(first.info.run_id, name),
                "files": {file.path for file in client.list_artifacts(first.info.run_id)},
                "page": Path(client.download_artifacts(first.info.run_id, "report.html")).read_bytes(),
            }
            found["said"] += logged(grown, f"mlflow:{self.URI}")
            found["after"] = client.search_runs([experiment])
            found["binned"] = client.search_runs([experiment], run_view_type=mlflow.entities.ViewType.DELETED_ONLY)
            yield found

    def test_the_level_is_the_step(self, made: dict[str, Any], run: Path) -> None:
        for score, agent, distortion, level in CASES:
            name = f"{score}/{agent}/{distortion}"
            ends = [name, f"{name}/low", f"{name}/high", f"{name}/trials"]
            values = [{point.step: point.value for point in made["history"](end)} for end in ends]
            assert all(len(steps) == len(made["history"](end)) for steps, end in zip(values, ends, strict=True))
            if level in values[0]:
                found = tuple(steps[level] for steps in values)
                assert found == pytest.approx(expected(run, score, agent, distortion, level))
        assert sorted(values[0]) == [0, 1, 2, 3, 4, 5]

    def test_settings_are_parameters_and_the_page_an_artifact(self, made: dict[str, Any], run: Path) -> None:
        data = made["run"].data
        assert data.params["seed"] == content(run).settings["seed"]
        assert data.params["experiment_sha256"] == content(run).settings["experiment_sha256"]
        assert made["files"] >= {"report.html", "trials.csv", "run.json"}
        assert made["page"] == (run / "report.html").read_bytes()
        assert data.metrics["drop/servo"] == pytest.approx(content(run).summary["drop/servo"])
        assert made["run"].info.status == "FINISHED"

    def test_twice_is_once_and_more_trials_replace_it(self, made: dict[str, Any], grown: Path) -> None:
        assert "has this run already" in made["said"][1]
        assert made["said"][2].endswith("1 earlier of it in the bin")
        (now,) = made["after"]
        assert now.data.tags["merton.sha256"] == content(grown).sha256
        assert [one.info.run_id for one in made["binned"]] == [made["run"].info.run_id]

    def test_a_place_that_cannot_be_written_is_one_sentence(self, made: dict[str, Any], run: Path, here: Path) -> None:
        with pytest.raises(InfrastructureError, match=r"is not logged to mlflow:nosuch://x: ") as error:
            logged(run, "mlflow:nosuch://x")
        assert "\n" not in str(error.value)


class TestWeightsAndBiases:
    """Offline, read from the file that `wandb sync` would send, by the client's own messages."""

    @pytest.fixture(scope="class")
    def made(self, run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
        """The offline folder after two calls, as messages."""
        wandb = pytest.importorskip("wandb")
        with pytest.MonkeyPatch.context() as patch:
            folder = tmp_path_factory.mktemp("wandb")
            patch.chdir(folder)
            patch.setenv("WANDB_MODE", "offline")
            patch.delenv("WANDB_DIR", raising=False)
            said = [*logged(run, "wandb:lab/merton"), *logged(run, "wandb:lab/merton")]
            wandb.teardown()  # the process of its service
        folders = [path for path in (folder / "wandb").glob("offline-run-*") if path.is_dir()]
        (file,) = folders[0].glob("*.wandb")
        return {"said": said, "folders": folders, "records": records(file)}

    def test_the_level_is_the_axis(self, made: dict[str, Any], run: Path) -> None:
        rows = [named(one.history.item) for one in made["records"] if one.WhichOneof("record_type") == "history"]
        by_level = {row["level"]: row for row in rows if "level" in row}
        assert sorted(by_level) == [0, 1, 2, 3, 4, 5]
        for score, agent, distortion, level in CASES:
            name = f"{score}/{agent}/{distortion}"
            if name in by_level[level]:
                found = tuple(by_level[level][f"{name}{end}"] for end in ("", "/low", "/high", "/trials"))
                assert found == pytest.approx(expected(run, score, agent, distortion, level))
        axes = {
            (one.metric.glob_name, one.metric.step_metric)
            for one in made["records"]
            if one.WhichOneof("record_type") == "metric" and one.metric.glob_name
        }
        assert axes >= {("success/*", "level"), ("execution/*", "level")}

    def test_settings_tables_and_page_are_there(self, made: dict[str, Any], run: Path) -> None:
        (begun,) = (one.run for one in made["records"] if one.WhichOneof("record_type") == "run")
        settings = {item.key: json.loads(item.value_json) for item in begun.config.update}
        assert settings["seed"] == content(run).settings["seed"]
        assert (begun.entity, begun.project, begun.display_name) == ("lab", "merton", ID)
        files = [
            entry.path
            for one in made["records"]
            if one.WhichOneof("record_type") == "artifact" and one.artifact.type == "report"
            for entry in one.artifact.manifest.contents
        ]
        assert {"report.html", "trials.csv", "run.json"} <= set(files)
        tables = list((made["folders"][0] / "files" / "media" / "table").glob("trials*.json"))
        assert len(json.loads(tables[0].read_text(encoding="utf-8"))["data"]) == len(content(run).tables["trials"].rows)

    def test_twice_is_once(self, made: dict[str, Any]) -> None:
        assert len(made["folders"]) == 1
        assert "has this run already; wandb sync" in made["said"][1]


def test_no_client_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, merton.study.trackers.targets; print({'wandb', 'mlflow', 'tensorboardX'} & {*sys.modules})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.mark.parametrize("where", ["a/b/c", "/p", "a/"])
def test_a_project_of_another_form_is_refused(run: Path, here: Path, where: str) -> None:
    pytest.importorskip("wandb")
    with pytest.raises(InputError, match="is no PROJECT or ENTITY/PROJECT"):
        logged(run, f"wandb:{where}")
    assert not (here / "wandb").exists()


def test_an_offline_folder_is_of_its_project_alone(run: Path, here: Path) -> None:
    """`wandb sync` sends it to the project that it was written for, so another one has nothing yet."""
    pytest.importorskip("wandb")
    identity = content(run).sha256[:32]
    folder = here / "wandb" / f"offline-run-20260101_000000-{identity}"
    folder.mkdir(parents=True)
    (folder / in_wandb.MARK).write_text("mine", encoding="utf-8")
    assert "has this run already" in logged(run, "wandb:mine")[0]
    assert in_wandb._offline(identity, "other") is None
