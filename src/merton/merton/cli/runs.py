"""`merton demo`, `run`, `report`, `compare` and `up`: experiments in a graph of nodes, and their results."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import STDERR, Run, from_here, own_command, print_err, print_out, working
from merton.cli.watching import exit_before_ready, open_once_ready, with_monitor
from merton.errors import InputError
from merton.files import locked_folder, resource
from merton.graph.spec import load_graph
from merton.graph.supervisor import (
    Exit,
    Supervisor,
    claim_domain,
    enclave,
    environment,
    find_executable,
    last_lines,
    users_domain,
)
from merton.recording.writer import free_path, mcap_writer

if TYPE_CHECKING:
    from merton.experiment.plan import ExperimentSpec
    from merton.experiment.run import RunDirectory
    from merton.results.records import TrialRecord

NODE_DIED = 3
"""Exit code of a run whose graph lost a process that it needs."""
RUNS = Path("runs")
CLIENT = "run_experiment"
"""The process that runs the experiment in the graph."""

SetOption = Annotated[list[str] | None, typer.Option("--set", help="name=value, an argument of the graph.")]
RunsOption = Annotated[Path, typer.Option("--runs", help="Directory that holds the runs.")]


MonitorOption = Annotated[
    bool, typer.Option("--monitor", help="Serve the operator's page of the run, and open it where there is a display.")
]


def demo_command(runs: RunsOption = RUNS, monitor: MonitorOption = False) -> None:
    """Run the quickstart experiment from start to report."""
    from merton.experiment.run import RunDirectory

    print_err("Merton quickstart: the cell, four agents, six distortions. Ctrl-C stops it and says how to go on.")
    run = RunDirectory.create(runs, resource("merton_bringup", "config/experiments/quickstart.yaml"))
    _execute(run, resume=False, monitor=monitor)


def run_command(
    experiment: Annotated[Path, typer.Argument(help="The experiment, such as config/experiments/quickstart.yaml.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest run of this experiment.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the run; with --resume, the run to go on with.")] = None,
    runs: RunsOption = RUNS,
    record: Annotated[bool, typer.Option("--record", help="Record it in recording.mcap, in the run's folder.")] = False,
    graph: Annotated[str, typer.Option(help="sim: embedded; lab: the real one, in your ROS domain.")] = "sim",
    argument: SetOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many trials it has, and how long.")] = False,
    monitor: MonitorOption = False,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Without ROS: in processes, each with a simulated cell of its own.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; one for each usable core by default. With --in-process.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="With --in-process. local: processes of this machine; ray: actors of a Ray cluster.")
    ] = "local",
) -> None:
    """Run an experiment on the embedded cell or a real one, then write its report."""
    from merton.cli.run_in_process import Workers, begun_otherwise, run_here
    from merton.config import load
    from merton.experiment.dry_run import not_ready, outline
    from merton.experiment.plan import ExperimentSpec
    from merton.experiment.run import RunDirectory, latest_run

    values = _values(argument)
    of_graph = {"--graph": graph != "sim", "--set": values, "--record": record, "--monitor": monitor}
    chosen = Workers.chosen(in_process, workers, engine, [option for option, given in of_graph.items() if given])
    load_graph(graph).with_arguments(values)  # mistakes end the command before anything is written
    spec = load(experiment, ExperimentSpec)
    if refused := _refused_by(graph, spec):
        raise InputError(f"{experiment}: {refused}")
    if dry_run:
        for line in [*outline(spec), *not_ready(spec)]:
            print_out(line)
        return
    if record:
        mcap_writer()
    if not resume:
        directory = RunDirectory.create(runs, experiment, name)
    else:
        directory = RunDirectory(runs / name) if name else latest_run(runs, experiment)
        directory.check_experiment(experiment)
        begun_otherwise(directory, chosen)
    if chosen:
        run_here(directory, chosen)
        _end(directory)
    else:
        _execute(directory, resume, record, graph, values, monitor)


def _refused_by(graph: str, spec: ExperimentSpec) -> str:
    """Why the graph cannot run the experiment, in words; empty if it can."""
    if spec.stop_rule == "contact" and graph != "sim":
        return (
            f"with stop_rule: contact the arm runs into table and walls, so it is refused for the graph {graph}; only "
            "sim is for it"
        )
    if spec.only_rendered and graph != "sim":
        return f"in the graph {graph} {spec.only_rendered}; only sim is for it"
    return ""


def report_command(
    run: Run,
    open_report: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
) -> None:
    """Write the report of a run again, and show its board."""
    from merton.cli.run_list import show_page
    from merton.experiment.run import RunDirectory

    page = _conclude(RunDirectory(run))
    if open_report:
        show_page(page)


def compare_command(first: Run, second: Run) -> None:
    """Compare scores and ratings of two runs; exit code 1 if anything but wall time differs."""
    with working("loading"):
        from merton.experiment.run import RunDirectory
        from merton.leaderboard.snapshot import store as snapshot
        from merton.results import comparison

    one, other = (_records(RunDirectory(path)) for path in (first, second))
    differences = comparison.compare(one, other)
    with working("rating"):
        boards = [snapshot.of_trials(records) for records in (one, other)]
    if (boards[0].agents, boards[0].cases) != (boards[1].agents, boards[1].cases):
        differences.append("the ratings differ")
    for difference in differences:
        print_out(difference)
    if differences:
        raise typer.Exit(1)
    print_out(f"identical: {len(one)} trials, all scores and ratings")


def up_command(
    graph: Annotated[str, typer.Argument(help="Which graph: sim, replay, lab, gazebo.")] = "sim",
    argument: SetOption = None,
    record: Annotated[bool, typer.Option("--record", help="Record everything in runs/live/recording.mcap.")] = False,
) -> None:
    """Start a node graph alone, as `ros2 launch merton_bringup <graph>.launch.py` would, until Ctrl-C."""
    values = _values(argument)
    if record:
        mcap_writer()
        values.setdefault("recording", str(free_path(RUNS / "live")))
    spec = load_graph(graph).with_arguments(values)
    logs = RUNS / "live" / "logs"
    shutil.rmtree(logs, ignore_errors=True)  # of the previous graph
    domain, claim = claim_domain(users_domain(os.environ.get("ROS_DOMAIN_ID", "")))
    with claim, Supervisor(spec, logs, environment(), claim) as supervisor:
        print_err(f"{len(spec.nodes)} nodes are starting in ROS domain {domain}; logs in {logs}; Ctrl-C ends them")
        ended = exit_before_ready(supervisor)
        if ended is None:
            print_err(f"ready: {len(spec.nodes)} nodes. Watch them: ROS_DOMAIN_ID={domain} {own_command('monitor')}")
        _report_death(_first_exit(supervisor, ended))
        raise typer.Exit(NODE_DIED)


def _execute(
    directory: RunDirectory,
    resume: bool,
    record: bool = False,
    name: str = "sim",
    values: dict[str, str] | None = None,
    monitor: bool = False,
) -> None:
    """Start the graph called `name`, run the experiment in it, end the graph, write the report.

    The embedded cell gets a ROS domain of its own; any other graph is in the user's, where its operator's screen is.
    """
    values = dict(values or {})
    continuation = continuation_of(directory, name, values, record)
    if record:
        values.setdefault("recording", str(free_path(directory.path)))
    started = time.monotonic()
    ended = _first_exit_of_run(directory, resume, name, values, continuation, monitor)
    if ended.name != CLIENT:
        print_err(f"{_count(directory)} results are safe.{continuation}")
        raise typer.Exit(NODE_DIED)
    if ended.code:
        print_err(f"The run has ended early.{continuation}")
        raise typer.Exit(ended.code)
    directory.finish(wall_s=None if resume else round(time.monotonic() - started, 1))
    _end(directory)


def _first_exit_of_run(
    directory: RunDirectory, resume: bool, name: str, values: dict[str, str], continuation: str, monitor: bool
) -> Exit:
    """Run the graph and the client of its experiment until one that is needed ends, then end all."""
    models = models_of(directory.spec, in_lab=name == "lab")
    graph = load_graph(name).with_arguments(image_gate_of(directory.spec) | values).with_models(models)
    if directory.spec.min_image_quality:
        graph = graph.that_needs("quality_node")
    address = ""
    if monitor:
        graph, address = with_monitor(graph)
    logs = directory.path / "logs"
    domain, claim = claim_domain(None if name == "sim" else users_domain(os.environ.get("ROS_DOMAIN_ID", "")))
    variables = environment(domain if name == "sim" else None)
    client = [
        str(find_executable("merton_nodes", CLIENT)),
        str(directory.path),
        *(["--resume"] if resume else []),
        *(["--recorded"] if "recording" in values else []),
        *("--loading", ", ".join(dict.fromkeys(chain.from_iterable(models.values())))),
        *("--logs", str(logs)),
        *("--nodes", *(node.name for node in graph.nodes if not graph.can_do_without(node.name))),
        "--ros-args",
        *enclave(CLIENT),
    ]
    with (
        locked_folder(directory.path, "merton run"),
        claim,
        Supervisor(graph, logs, variables, claim) as supervisor,
    ):
        if monitor:
            print_err(f"The operator's page, once it is ready: {address}")
            open_once_ready(supervisor, address)
        else:
            print_err(f"Watch it: ROS_DOMAIN_ID={domain} {own_command('monitor')}")
        supervisor.start(CLIENT, client, logged=False)
        try:
            ended = _first_exit(supervisor)
        except KeyboardInterrupt:
            print_err(f"Interrupted.{continuation}")
            raise
        if ended.name != CLIENT:
            _report_death(ended)
    return ended


def models_of(spec: ExperimentSpec, *, in_lab: bool) -> dict[str, list[str]]:
    """The models that an experiment asks, by the name of their node; `in_lab`: no reference run is added."""
    added = None if in_lab else spec.reference_agent
    agents = (*spec.agents, *([added] if added else []))
    return {
        "vlm_node": list(dict.fromkeys(agent.vlm for agent in agents)),
        "vla_node": list(dict.fromkeys(agent.vla for agent in agents)),
    }


def image_gate_of(spec: ExperimentSpec) -> dict[str, str]:
    """The arguments of the graph that make arm_node refuse what the experiment wants refused; none if it wants none."""
    if not spec.min_image_quality:
        return {}
    return {"min_image_quality": str(spec.min_image_quality), "quality_metric": spec.quality_metric}


def _values(arguments: list[str] | None) -> dict[str, str]:
    """The arguments of `--set`; raises InputError for a text that is not name=value."""
    values = {}
    for text in arguments or []:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set takes name=value, got {text!r}")
        values[key] = value
    return values


def continuation_of(
    directory: RunDirectory, graph: str = "sim", values: Mapping[str, str] = {}, record: bool = False, *rest: str
) -> str:
    """The sentence with the command that continues a run; `rest` are further words of it."""
    words = ["run", from_here(directory.path / "experiment.yaml"), "--resume"]
    if directory.path.parent != RUNS.resolve():
        words += ["--runs", from_here(directory.path.parent)]
    words += ["--name", directory.path.name]
    words += [] if graph == "sim" else ["--graph", graph]
    words += ["--record"] if record else []
    words += rest or (["--in-process"] if directory.in_process else [])
    for key, value in values.items():
        words += ["--set", f"{key}={value}"]
    return f" Go on with: {own_command(*words)}"


def _first_exit(supervisor: Supervisor, ended: Exit | None = None) -> Exit:
    """The end of a process that the graph needs, perhaps `ended`; prints the end of every optional one."""
    while True:
        ended = ended or supervisor.next_exit()
        assert ended is not None
        if not supervisor.graph.can_do_without(ended.name):
            return ended
        tail = last_lines(ended.log, 1)
        print_err(f"{ended}; the others go on without it. Its log: {ended.log}\n{tail}".rstrip())
        ended = None


def _report_death(exit_: Exit) -> None:
    STDERR.print(f"[red]{exit_}[/]; everything was stopped. Its log: {exit_.log}", highlight=False, soft_wrap=True)
    if tail := last_lines(exit_.log):
        print_err(tail)


def _count(directory: RunDirectory) -> int:
    from merton.results.store import ResultStore

    if not directory.database.exists():
        return 0
    with ResultStore(directory.database, read_only=True) as store:
        return len(store.ids(directory.id))


def _records(directory: RunDirectory) -> list[TrialRecord]:
    """All results of a run; raises InputError if it has none."""
    from merton.results.store import ResultStore

    with ResultStore(directory.database, read_only=True) as store:
        records = store.records(directory.id)
    if not records:
        raise InputError(f"{directory.path} has no results")
    return records


def _end(directory: RunDirectory) -> None:
    """Board and report of a run that is finished; exit code 1 if a model failed in every trial of it."""
    _conclude(directory)
    exit_for_failed_models(directory)


def exit_for_failed_models(directory: RunDirectory) -> None:
    """Ends with exit code 1 and a sentence for each model that failed in every trial of a run, if there is one."""
    from merton.experiment.failed_models import failed_models

    if failed := failed_models(directory.spec, _records(directory)):
        print_err("\n".join(failed))
        raise typer.Exit(1)


def _conclude(directory: RunDirectory) -> Path:
    """Board on the terminal, report on disk; gives the report."""
    with working("loading"):
        from merton.leaderboard.snapshot import store as snapshot
        from merton.leaderboard.snapshot.terminal import render_snapshot
        from merton.leaderboard.terminal import terminal_width
        from merton.study.report import write_report

    records = _records(directory)
    planned = directory.planned(record.id for record in records)
    unfinished = "" if planned is None or len(records) >= planned else f"{len(records)} of {planned} trials so far"
    with working("rating"):
        board = render_snapshot(snapshot.of_trials(records), terminal_width())
    if unfinished:
        print_out(f"{unfinished}: the run is unfinished, so places may still change.")
    print_out(board)
    with working("writing the report"):
        path = write_report(directory.path, planned)
    print_out(f"{unfinished or f'{len(records)} trials'}{_further(directory)}. Report: {path}")
    if unfinished:
        print_out(continuation_of(directory).strip())
    else:
        print_out(f"Next: {own_command('report', from_here(directory.path), '--open')}")
    return path


def _further(directory: RunDirectory) -> str:
    """Such as " and 16 reference runs of the oracle, not rated, in 4 min"."""
    added, took_s = directory.added_runs(), directory.took_s
    text = f" and {added} reference run{'s' * (added != 1)} of the oracle, not rated," if added else ""
    if took_s is None:
        return text.rstrip(",")
    return text + (f" in {took_s:.0f} s" if took_s < 90 else f" in {took_s / 60:.0f} min")
