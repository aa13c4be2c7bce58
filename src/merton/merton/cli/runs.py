"""`merton demo`, `run`, `report` and `up`: experiments in a graph of nodes, and their results."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from merton.cli.changing import (
    AgentsOption,
    CamerasOption,
    DistortionsOption,
    ExperimentArgument,
    LevelsOption,
    ScenesOption,
    SeedOption,
    SetOption,
    by_namespace,
    named_experiment,
    settings_of,
    words_of,
)
from merton.cli.console import STDERR, AllOption, Run, from_here, own_command, print_err, print_out, working
from merton.cli.continuation import continuation_of
from merton.cli.logging_to import LogToOption, logger
from merton.cli.run_in_process import Workers, begun_otherwise, run_here
from merton.cli.sweeping import run_sweep
from merton.cli.tree import needs
from merton.cli.watching import exit_before_ready, open_once_ready, operator_page
from merton.errors import InputError
from merton.experiment.run_names import RUNS
from merton.extras import lacking, ready
from merton.files import resource
from merton.graph.spec import load_graph
from merton.graph.supervisor import Exit, Supervisor, claim_domain, environment, last_lines, users_domain
from merton.recording.writer import free_path
from merton.results.text import counted

if TYPE_CHECKING:
    from merton.experiment.changes import Experiment
    from merton.experiment.run import RunDirectory
    from merton.results.records import TrialRecord

NODE_DIED = 3
"""Exit code of a run whose graph lost a process that it needs."""

RunsOption = Annotated[Path, typer.Option("--runs", help="Directory that holds the runs.")]


MonitorOption = Annotated[
    bool, typer.Option("--monitor", help="Serve the operator's page of the run, and open it where there is a display.")
]


@needs("sim")
def demo_command(runs: RunsOption = RUNS, monitor: MonitorOption = False) -> None:
    """Run the quickstart experiment from start to report."""
    from merton.experiment.run import RunDirectory

    print_err("Merton quickstart: the cell, four agents, six distortions. Ctrl-C stops it and says how to go on.")
    run = RunDirectory.create(runs, resource("merton_bringup", "config/experiments/quickstart.yaml"))
    _execute(run, resume=False, monitor=monitor)
    _end(run, everything=False)


def run_command(
    experiment: ExperimentArgument = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest run of this experiment.")] = False,
    name: Annotated[str | None, typer.Option(help="Name of the run; with --resume, the run to go on with.")] = None,
    runs: RunsOption = RUNS,
    record: Annotated[bool, typer.Option("--record", help="Record it in recording.mcap, in the run's folder.")] = False,
    graph: Annotated[str, typer.Option(help="sim: embedded; lab: the real one, in your ROS domain.")] = "sim",
    setting: SetOption = None,
    seed: SeedOption = None,
    scenes: ScenesOption = None,
    levels: LevelsOption = None,
    distortions: DistortionsOption = None,
    agents: AgentsOption = None,
    cameras: CamerasOption = None,
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
    everything: AllOption = False,
) -> None:
    """Run an experiment in a simulated world or on a real arm, then write its report."""
    from merton.experiment.changes import experiments

    file = named_experiment(experiment, "run")
    own, values = by_namespace(setting, graph, load_graph(graph).arguments)
    means = _Means.chosen(graph, values, own, record, monitor, in_process, workers, engine)
    options: dict[str, Any] = {"seed": seed, "scenes": scenes, "levels": levels}
    options |= {"distortions": distortions, "agents": agents, "cameras": cameras}
    made = experiments(file, settings_of(file, own, **options))
    means = means.for_worlds(one.spec.world for one in made)
    extras = means.extras_for(made)
    if dry_run:
        _outline(made, extras)
        return
    ready(str(file), *extras)
    if len(made) == 1:
        directory = _directory(made[0], runs, name, resume)
        means.carry_out(directory, resume)
        _end(directory, everything)
    else:
        again = ["run", str(experiment), *words_of(setting, **options, name=name), *means.words]
        again += ["--runs", str(runs)] if runs != RUNS else []
        for directory in run_sweep(made, runs, name, resume, means.carry_out, again):
            exit_for_failed_models(directory)


@dataclass(frozen=True)
class _Means:
    """The carrier of trials: a graph of nodes with its arguments, or `workers` without ROS.

    `shared` are keys of the experiment that are arguments of the graph, too, and that the command line changes.
    """

    graph: str
    values: Mapping[str, str]
    shared: Sequence[str]
    record: bool
    monitor: bool
    workers: Workers | None

    @classmethod
    def chosen(
        cls,
        graph: str,
        values: dict[str, str],
        settings: Sequence[str],
        record: bool,
        monitor: bool,
        in_process: bool,
        workers: int | None,
        engine: str,
    ) -> _Means:
        """Those of a command line; mistakes end the command before anything is written."""
        of_graph = {"--graph": graph != "sim", "--set": values, "--record": record, "--monitor": monitor}
        hired = Workers.chosen(in_process, workers, engine, [option for option, given in of_graph.items() if given])
        load_graph(graph).with_arguments(values)
        keys = (text.partition("=")[0] for text in settings)
        shared = [key for key in keys if key in load_graph(graph).arguments]
        return cls(graph, values, shared, record, monitor, hired)

    def for_worlds(self, worlds: Iterable[str]) -> _Means:
        """The same, but without ROS in worlds that have no graph of nodes; raises InputError for options of one."""
        from merton.experiment.world_facts import UR5

        world = next((world for world in worlds if world != UR5), None)
        if world is None or self.workers is not None:
            return self
        if self.graph != "sim" or self.record or self.monitor or self.values:
            raise InputError(f"the world {world} has no graph of nodes: leave --graph, --record and --monitor out")
        return replace(self, workers=Workers())

    def extras_for(self, experiments: Sequence[Experiment]) -> list[str]:
        """The extras (`merton.extras`) that it takes; raises InputError for an experiment that the graph cannot run."""
        from merton.experiment.dry_run import extras_of
        from merton.experiment.in_graph import refusal

        for one in experiments:
            if refused := refusal(one.spec, self.graph):
                raise InputError(f"{one.file}: {refused}")
        asked = {"recording": self.record, "serve": self.monitor}
        if self.workers:
            extras = [*(extra for one in experiments for extra in one.spec.facts.extras), *self.workers.extras]
        else:
            extras = list(load_graph(self.graph).with_arguments(dict(self.values)).extras)
        models = (extra for one in experiments for extra in extras_of(one.spec))
        return list(dict.fromkeys([*extras, *(name for name in asked if asked[name]), *models]))

    def carry_out(self, directory: RunDirectory, begun: bool) -> None:
        """Run all trials that are not finished."""
        if begun:
            begun_otherwise(directory, self.workers)
        if self.workers:
            run_here(directory, self.workers)
        else:
            values = {**self.values, **{key: str(getattr(directory.spec, key)) for key in self.shared}}
            _execute(directory, begun, self.record, self.graph, values, self.monitor)

    @property
    def words(self) -> list[str]:
        """The options that choose them, but for `--set`."""
        words = [] if self.graph == "sim" else ["--graph", self.graph]
        return [*words, *(["--record"] if self.record else []), *(self.workers.words if self.workers else ())]


def _outline(experiments: Sequence[Experiment], extras: Sequence[str]) -> None:
    """Print what experiments take, and what of them is not ready here."""
    from merton.experiment.dry_run import not_ready, outline

    for one in experiments:
        if one.swept:
            print_out(f"{one.title}:")
        for line in outline(one.spec):
            print_out(line)
    for line in dict.fromkeys(line for one in experiments for line in not_ready(one.spec)):
        print_out(line)
    if sentence := lacking(str(experiments[0].file), *extras):
        print_out(f"not ready here: {sentence}")


def _directory(experiment: Experiment, runs: Path, name: str | None, resume: bool) -> RunDirectory:
    """The run of an experiment, new or to go on with."""
    from merton.experiment.run import RunDirectory
    from merton.experiment.run_names import latest_run

    file, text = experiment.file, experiment.text
    if not resume:
        return RunDirectory.create(runs, file, name, text=text, about=experiment.about)
    directory = RunDirectory(runs / name) if name else latest_run(runs, file, text)
    directory.check_experiment(file, text)
    return directory


def report_command(
    run: Run,
    open_report: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
    everything: AllOption = False,
    log_to: LogToOption = None,
) -> None:
    """Write the report of a run again, and show its board; with --open the page shows it."""
    from merton.cli.episodes import conclude_episodes
    from merton.cli.run_list import show_page
    from merton.experiment.run import RunDirectory
    from merton.experiment.run_names import is_episodes

    logs = logger(log_to)
    shows_board = everything or not open_report
    if is_episodes(run):
        page = conclude_episodes(run, everything, shows_board)
    else:
        page = _conclude(RunDirectory(run), everything, shows_board)
    logs(run)
    if open_report:
        show_page(page)


def up_command(
    graph: Annotated[str, typer.Argument(help="Which graph: sim, replay, lab, gazebo.")] = "sim",
    argument: Annotated[list[str] | None, typer.Option("--set", help="name=value, an argument of the graph.")] = None,
    record: Annotated[bool, typer.Option("--record", help="Record everything in runs/live/recording.mcap.")] = False,
) -> None:
    """Start a node graph alone, as `ros2 launch merton_bringup <graph>.launch.py` would, until Ctrl-C."""
    values = _values(argument)
    if record:
        values.setdefault("recording", str(free_path(RUNS / "live")))
    spec = load_graph(graph).with_arguments(values)
    ready(f"`merton up {graph}`", *spec.extras)
    logs = RUNS / "live" / "logs"
    shutil.rmtree(logs, ignore_errors=True)  # of the previous graph
    domain, claim = claim_domain(users_domain(os.environ.get("ROS_DOMAIN_ID", "")))
    with claim, Supervisor(spec, logs, environment(), claim) as supervisor:
        print_err(f"{len(spec.nodes)} nodes are starting in ROS domain {domain}; logs in {logs}; Ctrl-C ends them")
        ended = exit_before_ready(supervisor)
        if ended is None:
            print_err(f"ready: {len(spec.nodes)} nodes. Watch them: ROS_DOMAIN_ID={domain} {own_command('monitor')}")
        _report_death(supervisor.first_needed_exit(_report_optional_exit, ended))
        raise typer.Exit(NODE_DIED)


def _execute(
    directory: RunDirectory,
    resume: bool,
    record: bool = False,
    name: str = "sim",
    values: dict[str, str] | None = None,
    monitor: bool = False,
) -> None:
    """Run the experiment in the graph called `name`; if that ends early, say how to go on."""
    from merton.experiment.in_graph import GraphEndedError, run_in_graph

    values = dict(values or {})
    continuation = continuation_of(directory, name, values, record)
    if record:
        values.setdefault("recording", str(free_path(directory.path)))
    page, address = operator_page() if monitor else (None, "")

    def on_start(supervisor: Supervisor, domain: int) -> None:
        if monitor:
            print_err(f"The operator's page, once it is ready: {address}")
            open_once_ready(supervisor, address)
        else:
            print_err(f"Watch it: ROS_DOMAIN_ID={domain} {own_command('monitor')}")

    try:
        run_in_graph(
            directory,
            name,
            values,
            resume=resume,
            beside=[page] if page else [],
            on_start=on_start,
            on_optional_exit=_report_optional_exit,
        )
    except KeyboardInterrupt:
        print_err(f"Interrupted.{continuation}")
        raise
    except GraphEndedError as error:
        if error.is_by_node:
            _report_death(error.exit)
            print_err(f"{directory.recorded()} results are safe.{continuation}")
            raise typer.Exit(NODE_DIED) from None
        print_err(f"The run has ended early.{continuation}")
        raise typer.Exit(error.exit.code) from None


def _values(arguments: list[str] | None) -> dict[str, str]:
    """The arguments of `--set`; raises InputError for a text that is not name=value."""
    values = {}
    for text in arguments or []:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set takes name=value, got {text!r}")
        values[key] = value
    return values


def _report_optional_exit(ended: Exit) -> None:
    print_err(f"{ended}; the others go on without it. Its log: {ended.log}\n{last_lines(ended.log, 1)}".rstrip())


def _report_death(exit_: Exit) -> None:
    STDERR.print(f"[red]{exit_}[/]; everything was stopped. Its log: {exit_.log}", highlight=False, soft_wrap=True)
    if tail := last_lines(exit_.log):
        print_err(tail)


def _records(directory: RunDirectory) -> list[TrialRecord]:
    """All results of a run; raises InputError if it has none."""
    records = directory.records()
    if not records:
        raise InputError(f"{directory.path} has no results")
    return records


def _end(directory: RunDirectory, everything: bool = False) -> None:
    """Board and report of a run that is finished; exit code 1 if a model failed in every trial of it."""
    _conclude(directory, everything)
    exit_for_failed_models(directory)


def exit_for_failed_models(directory: RunDirectory) -> None:
    """Ends with exit code 1 and a sentence for each model that failed in every trial of a run, if there is one."""
    from merton.experiment.failed_models import failed_models

    if failed := failed_models(directory.spec, _records(directory)):
        print_err("\n".join(failed))
        raise typer.Exit(1)


def _conclude(directory: RunDirectory, everything: bool, shows_board: bool = True) -> Path:
    """Board on the terminal, with `everything` all of its tables and remarks, report on disk; gives the report."""
    with working("loading"):
        from merton.leaderboard.snapshot import store as snapshot
        from merton.leaderboard.snapshot.terminal import render_snapshot
        from merton.leaderboard.terminal import terminal_width
        from merton.study.report import write_report

    records = _records(directory)
    planned = directory.planned(record.id for record in records)
    unfinished = "" if planned is None or len(records) >= planned else f"{len(records)} of {planned} trials so far"
    if unfinished:
        print_out(f"{unfinished}: the run is unfinished, so places may still change.")
    if shows_board:
        with working("rating"):
            board = render_snapshot(snapshot.of_trials(records), terminal_width(), everything)
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
    from merton.experiment.dry_run import duration

    added, took_s = directory.added_runs(), directory.took_s
    whose = directory.spec.facts.yardstick
    text = f" and {counted(added, 'reference run')} of the {whose}, not rated," if added else ""
    return text.rstrip(",") if took_s is None else f"{text} in {duration(took_s)}"
