"""The `merton` command."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merton import __version__
from merton.annotate.commands import annotate_command
from merton.calibration import commands as calibration_commands
from merton.cli import models as model_commands
from merton.console import STDERR, STDOUT, print_err, print_out
from merton.errors import ErrorCode, InputError, MertonError
from merton.files import locked_folder, resource
from merton.graph.spec import load_graph
from merton.graph.supervisor import Exit, Supervisor, claim_domain, enclave, environment, find_executable, last_lines
from merton.leaderboard import commands as leaderboard_commands
from merton.monitor.commands import monitor_command
from merton.perception.dataset import commands as dataset_commands
from merton.perception.distortion import commands
from merton.recording.commands import replay_command
from merton.recording.writer import free_path, mcap_writer
from merton.results import commands as results_commands

if TYPE_CHECKING:
    from merton.experiment.run import RunDirectory

USER_MISTAKE = 2
NODE_DIED = 3
INTERRUPTED = 130
LAST_USER_DOMAIN = 232
"""ROS domains beyond have no UDP ports."""
RUNS = Path("runs")

app = typer.Typer(
    help="Measures how well embodied AI can use what it sees.", no_args_is_help=True, pretty_exceptions_enable=False,
    add_completion=False,
)  # fmt: skip
app.command("annotate")(annotate_command)
app.add_typer(calibration_commands.app, name="calibrate")
app.add_typer(dataset_commands.app, name="dataset")
app.add_typer(commands.app, name="distort")
app.add_typer(leaderboard_commands.app, name="leaderboard")
app.add_typer(model_commands.app, name="models")
app.command("monitor")(monitor_command)
app.command("rate")(leaderboard_commands.rate_command)
app.command("replay")(replay_command)
app.add_typer(results_commands.app, name="results")
SetOption = Annotated[list[str] | None, typer.Option("--set", help="name=value, an argument of the graph.")]
RunsOption = Annotated[Path, typer.Option("--runs", help="Directory that holds the runs.")]


@app.command()
def demo(runs: RunsOption = RUNS) -> None:
    """Run the quickstart experiment from start to report."""
    from merton.experiment.run import RunDirectory

    print_err("Merton quickstart: the cell, four agents, six distortions. Ctrl-C stops it and says how to go on.")
    _execute(RunDirectory.create(runs, resource("merton_bringup", "config/experiments/quickstart.yaml")), resume=False)


@app.command()
def run(
    experiment: Annotated[Path, typer.Argument(help="The experiment, such as config/experiments/quickstart.yaml.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest run of this experiment.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the run; with --resume, the run to go on with.")] = None,
    runs: RunsOption = RUNS,
    record: Annotated[bool, typer.Option("--record", help="Record it in recording.mcap, in the run's folder.")] = False,
    graph: Annotated[str, typer.Option(help="sim: embedded; lab: the real one, in your ROS domain.")] = "sim",
    argument: SetOption = None,
) -> None:
    """Run an experiment on the embedded cell or a real one, then write its report."""
    from merton.experiment.run import RunDirectory, latest_run

    values = _values(argument)
    load_graph(graph).with_arguments(values)  # a mistake is found before anything is written
    if record:
        mcap_writer()
    if not resume:
        directory = RunDirectory.create(runs, experiment, name)
    else:
        directory = RunDirectory(runs / name) if name else latest_run(runs, experiment)
        directory.check_experiment(experiment)
    _execute(directory, resume, record, graph, values)


@app.command()
def report(run_directory: Annotated[Path, typer.Argument(help="A run, such as runs/quickstart-...")]) -> None:
    """Write the report of a run anew, and show its board."""
    from merton.experiment.run import RunDirectory

    _conclude(RunDirectory(run_directory))


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="A run.")], second: Annotated[Path, typer.Argument(help="Another.")]
) -> None:
    """Compare scores and ratings of two runs; exit code 1 if anything but wall time differs."""
    from merton.experiment.run import RunDirectory
    from merton.leaderboard.snapshot import store as snapshot
    from merton.results import comparison

    one, other = ([*_records(RunDirectory(path))] for path in (first, second))
    differences = comparison.compare(one, other)
    boards = [snapshot.of_trials(records) for records in (one, other)]
    if (boards[0].agents, boards[0].cases) != (boards[1].agents, boards[1].cases):
        differences.append("the ratings differ")
    for difference in differences:
        print_out(difference)
    if differences:
        raise typer.Exit(1)
    print_out(f"identical: {len(one)} trials, all scores and ratings")


@app.command()
def up(
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
    shutil.rmtree(logs, ignore_errors=True)  # of the last time
    domain, claim = claim_domain(_users_domain())
    with claim, Supervisor(spec, logs, environment(), claim) as supervisor:
        print_err(f"{len(spec.nodes)} nodes are starting in ROS domain {domain}; logs in {logs}; Ctrl-C ends them")
        died = _first_exit(supervisor)
        _report_death(died)
        raise typer.Exit(NODE_DIED)


@app.command()
def serve(
    model: Annotated[str, typer.Argument(help="MODULE:CLASS; found in this folder or installed.")],
    protocol: Annotated[str, typer.Option(help="openpi, act or chat.")],
    host: Annotated[str, typer.Option(help="Where to listen. Nothing but loopback is private.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one and says which.")] = 8000,
) -> None:
    """Put a model class behind a protocol until Ctrl-C; see docs/serving.md."""
    from merton.models import serving

    try:
        serving.serve(model, protocol, host, port)
    except serving.ServingError as error:
        raise InputError(str(error)) from None


@app.command()
def doctor() -> None:
    """Check ROS, OpenGL, the simulator and ports, and say how to mend what is missing."""
    from merton.cli.doctor import examine

    findings = examine()
    for finding in findings:
        mark = "[green]ok  [/]" if finding.fine else "[red]fail[/]"
        STDOUT.print(f"{mark} {finding.subject:<14} {finding.seen}", highlight=False)
        if not finding.fine:
            print_out(f"     {'':<14} mend: {finding.remedy}")
    if not all(finding.fine for finding in findings):
        raise typer.Exit(1)


@app.command()
def errors() -> None:
    """Print the error codes of messages and records, and their meaning."""
    for code in ErrorCode:
        print_out(f"{int(code):>3}  {code.name:<18}  {code.meaning}")


@app.command()
def version() -> None:
    """Print the version."""
    print_out(__version__)


def _execute(
    directory: RunDirectory,
    resume: bool,
    record: bool = False,
    name: str = "sim",
    values: dict[str, str] | None = None,
) -> None:
    """Start the graph called `name`, run the experiment in it, end it, write the report.

    The embedded cell gets a ROS domain of its own; any other graph is in the user's, where its operator's screen is.
    """
    values = dict(values or {})
    how_to_go_on = _how_to_go_on(directory, name, values, record)
    if record:
        values.setdefault("recording", str(free_path(directory.path)))
    graph = load_graph(name).with_arguments(values)
    domain, claim = claim_domain(None if name == "sim" else _users_domain())
    variables = environment(domain if name == "sim" else None)
    started = time.monotonic()
    client = [
        str(find_executable("merton_nodes", "run_experiment")),
        str(directory.path),
        *(["--resume"] if resume else []),
        *(["--recorded"] if "recording" in values else []),
        "--ros-args",
        *enclave("run_experiment"),
    ]
    with (
        locked_folder(directory.path, "merton run"),
        claim,
        Supervisor(graph, directory.path / "logs", variables, claim) as supervisor,
    ):
        supervisor.start("run_experiment", client, logged=False)
        try:
            ended = _first_exit(supervisor)
        except KeyboardInterrupt:
            print_err(f"Interrupted.{how_to_go_on}")
            raise
        if ended.name != "run_experiment":
            _report_death(ended)
    if ended.name != "run_experiment":
        done = _count(directory)
        print_err(f"{done} results are safe.{how_to_go_on}")
        raise typer.Exit(NODE_DIED)
    if ended.code:
        print_err(f"The run has ended early.{how_to_go_on}")
        raise typer.Exit(ended.code)
    directory.amend(finished=True, wall_s=round(time.monotonic() - started, 1))
    _conclude(directory)


def _values(arguments: list[str] | None) -> dict[str, str]:
    """What `--set` says; raises InputError for what is no name=value."""
    values = {}
    for text in arguments or []:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set takes name=value, got {text!r}")
        values[key] = value
    return values


def _users_domain() -> int:
    """The domain ROS programs of this user are in; raises InputError for what is none."""
    text = os.environ.get("ROS_DOMAIN_ID") or "0"
    if not text.isdecimal() or int(text) > LAST_USER_DOMAIN:
        raise InputError(f"ROS_DOMAIN_ID must be a number from 0 to {LAST_USER_DOMAIN}, got {text!r}")
    return int(text)


def _how_to_go_on(directory: RunDirectory, graph: str, values: dict[str, str], record: bool) -> str:
    where = "" if graph == "sim" else f" --graph {graph}"
    where += " --record" if record else ""
    where += "".join(f" --set {shlex.quote(f'{key}={value}')}" for key, value in values.items())
    return (
        f" Go on with: merton run {directory.path / 'experiment.yaml'}"
        f" --resume --runs {directory.path.parent} --name {directory.path.name}{where}"
    )


def _first_exit(supervisor: Supervisor) -> Exit:
    """Wait for the first process to end that the graph cannot do without; say which others have ended meanwhile."""
    while True:
        ended = supervisor.next_exit()
        assert ended is not None
        if not supervisor.graph.can_do_without(ended.name):
            return ended
        tail = last_lines(ended.log, 1)
        print_err(f"{ended}; the others go on without it. Its log: {ended.log}\n{tail}".rstrip())


def _report_death(exit_: Exit) -> None:
    STDERR.print(f"[red]{exit_}[/]; everything was stopped. Its log: {exit_.log}", highlight=False, soft_wrap=True)
    if tail := last_lines(exit_.log):
        print_err(tail)


def _count(directory: RunDirectory) -> int:
    """How many results a run has."""
    from merton.results.store import ResultStore

    if not directory.database.exists():
        return 0
    with ResultStore(directory.database, read_only=True) as store:
        return len(store.ids(directory.id))


def _records(directory: RunDirectory):  # type: ignore[no-untyped-def]
    from merton.results.store import ResultStore

    with ResultStore(directory.database, read_only=True) as store:
        records = store.records(directory.id)
    if not records:
        raise InputError(f"{directory.path} has no results")
    return records


def _conclude(directory: RunDirectory) -> None:
    """Board on the terminal, report on disk."""
    from merton.leaderboard.snapshot import store as snapshot
    from merton.leaderboard.terminal import render_snapshot, terminal_width
    from merton.study.report import write_report

    records = _records(directory)
    print(render_snapshot(snapshot.of_trials(records), terminal_width()))
    path = write_report(directory.path)
    print_out(f"{len(records)} trials. Report: {path}")


def main() -> None:
    """Entry point: a user's mistake is one line and exit code 2; Ctrl-C is 130."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    try:
        sys.exit(app(standalone_mode=False) or 0)  # typer.Exit comes back as its code
    except typer.Abort:
        sys.exit(INTERRUPTED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except InputError as error:
        print_err(f"merton: {error}")
        sys.exit(USER_MISTAKE)
    except MertonError as error:
        print_err(f"merton: {error}")
        sys.exit(1)
    except Exception as error:
        show = getattr(error, "show", None)  # the command line's own errors: unknown option, missing argument
        if show is None:
            raise
        show()
        sys.exit(USER_MISTAKE)
