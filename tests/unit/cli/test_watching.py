"""What the command says while a graph starts: nodes that are ready, the page to watch it on, commands to paste."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from merton.cli import watching
from merton.graph.spec import GraphSpec, NodeSpec, load_graph
from merton.graph.supervisor import READY, Supervisor, ready_nodes
from patience import until

SAYS_READY = f"import time; print({READY!r}, flush=True); time.sleep(600)"


def graph(*names: str) -> GraphSpec:
    nodes = tuple(NodeSpec(name=name, executable=name) for name in names)
    return GraphSpec(description="", parameters="nodes/sim.yaml", nodes=nodes)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Node to the Python code that stands for it."""
    code: dict[str, str] = {}
    monkeypatch.setattr("merton.graph.supervisor.command", lambda node, graph: [sys.executable, "-c", code[node.name]])
    return code


def test_a_node_is_ready_once_its_newest_process_has_said_so(tmp_path: Path, programs: dict[str, str]) -> None:
    (tmp_path / "slow.log").write_text(f"of an earlier process: {READY}\n")
    programs |= {"quick": SAYS_READY, "slow": "import time; time.sleep(600)"}
    with Supervisor(graph("quick", "slow"), tmp_path, {}):
        until(lambda: ready_nodes(tmp_path, ["quick", "slow", "absent"]) == ["quick"])


def test_up_waits_for_all_nodes_or_for_the_first_that_ends(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    programs |= {"one": SAYS_READY, "two": SAYS_READY, "broken": "raise SystemExit(3)"}
    with Supervisor(graph("one", "two"), tmp_path, {}) as supervisor:
        assert watching.exit_before_ready(supervisor) is None
    with Supervisor(graph("one", "broken"), tmp_path / "again", {}) as supervisor:
        ended = watching.exit_before_ready(supervisor)
        assert ended is not None
        assert (ended.name, ended.code) == ("broken", 3)


def test_the_operators_page_takes_another_port_if_its_own_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        monkeypatch.setattr(watching, "MONITOR_PORT", holder.getsockname()[1])
        page, address = watching.operator_page()
    changed, port = graph("one").beside(page), page.parameters["port"]
    assert address == f"http://127.0.0.1:{port}/"
    assert changed.can_do_without(watching.MONITOR), "a run goes on without its page"
    assert not changed.can_do_without("one")


@pytest.mark.parametrize("name", ["sim", "lab", "gazebo"])
def test_every_graph_takes_the_deadline_that_late_answers_name(name: str) -> None:
    changed = load_graph(name).with_arguments({"deadline_s": "240"})
    assert {node.name: node for node in changed.nodes}["experiment_node"].parameters == {"deadline_s": 240.0}
