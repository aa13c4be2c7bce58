"""An experiment in a graph of nodes: the processes started, the trials run by a client beside them, all ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from merton.errors import InfrastructureError, InputError
from merton.experiment.plan import ExperimentSpec
from merton.experiment.run import RunDirectory
from merton.files import locked_folder
from merton.graph.spec import GraphSpec, NodeSpec, load_graph
from merton.graph.supervisor import Exit, Supervisor, claim_domain, enclave, environment, find_executable, users_domain

SIM, LAB = "sim", "lab"
"""Graphs: of the embedded cell, and of the real one."""
CLIENT = "run_experiment"
"""The process that runs the experiment in the graph."""


class GraphEndedError(InfrastructureError):
    """A process of the graph, or the client of the experiment, ended too early. Results until then are recorded.

    Attributes:
        exit: the process that ended first.
    """

    def __init__(self, ended: Exit) -> None:
        self.exit = ended
        super().__init__(f"{ended}, before the experiment was done" + (f": {ended.log}" if ended.log.exists() else ""))

    @property
    def is_by_node(self) -> bool:
        """Whether a node ended; else the client did, which has said why on stderr."""
        return self.exit.name != CLIENT


def run_in_graph(
    run: RunDirectory,
    graph: str = SIM,
    arguments: Mapping[str, str] | None = None,
    *,
    resume: bool = False,
    beside: Sequence[NodeSpec] = (),
    on_start: Callable[[Supervisor, int], object] = lambda supervisor, domain: None,
    on_optional_exit: Callable[[Exit], object] = lambda ended: None,
) -> None:
    """Start a graph of nodes, run every trial of an experiment in it, end all processes.

    The embedded cell gets a ROS domain of its own; any other graph is in the user's (ROS_DOMAIN_ID), where the screen
    of its operator is. Progress is shown on stderr; logs of the nodes are in the folder `logs` of the run.

    Args:
        run: its results and files are written by the nodes.
        graph: its name: sim, lab, gazebo, ...
        arguments: of the graph, as `GraphSpec.with_arguments` takes them; `recording` is the file of a recording.
        resume: go on with a run that has results; without it they are an error.
        beside: further processes, which the graph can do without.
        on_start: called with the processes and their ROS domain once all are started.
        on_optional_exit: called with each process that ends and that the graph can do without.

    Raises:
        InputError: no such graph or argument, or an experiment that the graph cannot run (`refusal`).
        InfrastructureError: another process works on the run, or no ROS domain is free.
        MissingDependencyError: the nodes are not installed.
        GraphEndedError: a process that is needed ended before the last trial.
    """
    if refused := refusal(run.spec, graph):
        raise InputError(f"{run.path}: {refused}")
    arguments, started_s = dict(arguments or {}), time.monotonic()
    processes, logs = graph_of(run.spec, graph, arguments, beside), run.path / "logs"
    domain, claim = claim_domain(None if graph == SIM else users_domain(os.environ.get("ROS_DOMAIN_ID", "")))
    variables = environment(domain if graph == SIM else None)
    models = chain.from_iterable(models_of(run.spec, in_lab=graph == LAB).values())
    client = [
        str(find_executable("merton_nodes", CLIENT)),
        str(run.path),
        *(["--resume"] if resume else []),
        *(["--recorded"] if "recording" in arguments else []),
        *("--loading", ", ".join(dict.fromkeys(models))),
        *("--logs", str(logs)),
        *("--nodes", *(node.name for node in processes.nodes if not processes.can_do_without(node.name))),
        "--ros-args",
        *enclave(CLIENT),
    ]
    with locked_folder(run.path, "merton run"), claim, Supervisor(processes, logs, variables, claim) as supervisor:
        on_start(supervisor, domain)
        supervisor.start(CLIENT, client, logged=False)
        ended = supervisor.first_needed_exit(on_optional_exit)
    if ended.name != CLIENT or ended.code:
        raise GraphEndedError(ended)
    run.finish(wall_s=None if resume else round(time.monotonic() - started_s, 1))


def refusal(spec: ExperimentSpec, graph: str) -> str:
    """The reason why a graph cannot run an experiment, in words; empty if it can."""
    if spec.stop_rule == "contact" and graph != SIM:
        return (
            f"with stop_rule: contact the arm runs into table and walls, so it is refused for the graph {graph}; only "
            "sim is for it"
        )
    if spec.only_rendered and graph != SIM:
        return f"in the graph {graph} {spec.only_rendered}; only sim is for it"
    return ""


def graph_of(
    spec: ExperimentSpec, graph: str, arguments: Mapping[str, str], beside: Sequence[NodeSpec] = ()
) -> GraphSpec:
    """The processes of a graph for an experiment: they load its models, and gate images if it wants that.

    Args and errors as of `run_in_graph`.
    """
    processes = load_graph(graph).with_arguments({**image_gate_of(spec), **arguments})
    if spec.min_image_quality:
        processes = processes.that_needs("quality_node")
    return processes.with_models(models_of(spec, in_lab=graph == LAB)).beside(*beside)


def models_of(spec: ExperimentSpec, *, in_lab: bool) -> dict[str, list[str]]:
    """The models that an experiment asks, by the name of their node; `in_lab`: no reference run is added."""
    agents = spec.agents if in_lab else spec.agents_and_reference
    return {
        "vlm_node": list(dict.fromkeys(agent.vlm for agent in agents)),
        "vla_node": list(dict.fromkeys(agent.vla for agent in agents)),
    }


def image_gate_of(spec: ExperimentSpec) -> dict[str, str]:
    """The arguments of the graph that make arm_node refuse what the experiment wants refused; none if it wants none."""
    if not spec.min_image_quality:
        return {}
    return {"min_image_quality": str(spec.min_image_quality), "quality_metric": spec.quality_metric}
