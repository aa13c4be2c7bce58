"""An experiment in a graph whose processes are stand-ins: who ended, what is raised, what the run's file says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from merton.errors import InputError
from merton.experiment import in_graph
from merton.experiment.in_graph import CLIENT, GraphEndedError, graph_of, models_of, run_in_graph
from merton.experiment.plan import AgentSpec, ExperimentSpec
from merton.experiment.run import RunDirectory
from merton.graph.spec import NodeSpec, load_graph
from merton.graph.supervisor import Exit
from patience import until
from runs import small_run

STAYS = "import time; time.sleep(600)"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Node to the Python code that stands for it; `CLIENT` stands for the client, whose first argument is the run."""
    code: dict[str, str] = {}
    monkeypatch.setattr(
        "merton.graph.supervisor.command", lambda node, graph: [sys.executable, "-c", code.get(node.name, STAYS)]
    )

    def client(package: str, executable: str) -> Path:
        file = tmp_path / executable
        file.write_text(f"#!{sys.executable}\n{code[CLIENT]}\n")
        file.chmod(0o755)
        return file

    monkeypatch.setattr(in_graph, "find_executable", client)
    return code


def about(run: RunDirectory) -> dict[str, object]:
    """The content of run.json."""
    return dict(json.loads((run.path / "run.json").read_text()))


def test_a_run_whose_client_ends_well_is_finished(tmp_path: Path, programs: dict[str, str]) -> None:
    programs[CLIENT] = "import sys; from pathlib import Path; Path(sys.argv[1], 'words').write_text(' '.join(sys.argv))"
    run, domains = small_run(tmp_path, "one"), list[int]()
    run_in_graph(run, on_start=lambda supervisor, domain: domains.append(domain))
    assert about(run)["finished"] is True
    assert float(str(about(run)["wall_s"])) > 0
    words = (run.path / "words").read_text()
    assert "--loading describe, oracle, servo, plunge" in words
    assert "--resume" not in words
    assert all(node.name in words for node in load_graph("sim").nodes)
    assert len(domains) == 1
    run_in_graph(run, resume=True)
    assert "--resume" in (run.path / "words").read_text()
    assert about(run)["wall_s"] is None, "the time of a part is not that of the run"


def test_a_node_that_ends_is_named_and_the_run_is_unfinished(tmp_path: Path, programs: dict[str, str]) -> None:
    programs |= {CLIENT: STAYS, "arm_node": "raise SystemExit(5)"}
    run = small_run(tmp_path, "two")
    with pytest.raises(GraphEndedError, match=r"arm_node ended with exit code 5, before .*arm_node\.log") as error:
        run_in_graph(run)
    assert error.value.is_by_node
    assert "finished" not in about(run)


def test_a_client_that_fails_is_no_node(tmp_path: Path, programs: dict[str, str]) -> None:
    programs[CLIENT] = "raise SystemExit(1)"
    with pytest.raises(GraphEndedError, match="run_experiment ended with exit code 1, before") as error:
        run_in_graph(small_run(tmp_path, "three"))
    assert (error.value.is_by_node, error.value.exit.code) == (False, 1)


def test_a_run_goes_on_without_a_process_beside_it(tmp_path: Path, programs: dict[str, str]) -> None:
    programs |= {
        "page": "pass",
        CLIENT: f"import os, time\nwhile not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)",
    }
    run, ended = small_run(tmp_path, "four"), list[Exit]()

    def on_optional_exit(exit_: Exit) -> None:
        ended.append(exit_)
        (tmp_path / "go").touch()

    run_in_graph(run, beside=[NodeSpec(name="page", executable="page")], on_optional_exit=on_optional_exit)
    until(lambda: [one.name for one in ended] == ["page"])
    assert about(run)["finished"] is True


@pytest.mark.parametrize(
    ("change", "says"), [({"stop_rule": "contact"}, "arm runs into table and walls"), ({"sensor": "d455"}, "sensor")]
)
def test_only_the_embedded_cell_takes_what_it_alone_can_do(
    tmp_path: Path, programs: dict[str, str], change: dict[str, str], says: str
) -> None:
    lines = "".join(f"{key}: {value}\n" for key, value in change.items())
    text = f"name: x\nagents: [{{id: a, vla: servo}}]\ntasks: [reach]\ndistortions: [jpeg]\nlevels: [5]\n{lines}"
    run = small_run(tmp_path, "five", text)
    with pytest.raises(InputError, match=says):
        run_in_graph(run, "lab")
    assert not (run.path / "logs").exists()


AGENTS = (AgentSpec(id="a", vlm="gaze", vla="servo"), AgentSpec(id="b", vla="servo"))
SPEC = ExperimentSpec(name="x", agents=AGENTS, tasks=("reach",))


def test_the_models_of_an_experiment_are_loaded_before_its_first_trial() -> None:
    assert models_of(SPEC, in_lab=False) == {"vlm_node": ["gaze", "describe"], "vla_node": ["servo", "oracle"]}
    assert models_of(SPEC, in_lab=True)["vla_node"] == ["servo"], "a real cell has no oracle"
    loaded = {node.name: node.parameters.get("preload") for node in graph_of(SPEC, "sim", {}).nodes}
    assert (loaded["vlm_node"], loaded["vla_node"]) == (("gaze", "describe"), ("servo", "oracle"))


def test_an_experiment_that_gates_images_needs_the_node_that_measures_them() -> None:
    gated = SPEC.model_copy(update={"min_image_quality": 0.3})
    graph = graph_of(gated, "sim", {})
    assert "quality_node" in [node.name for node in graph.nodes]
    assert not graph.can_do_without("quality_node")
