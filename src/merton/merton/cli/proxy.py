"""`merton proxy`: distortion, a second session and a record between a harness and its policy server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import print_err, print_out
from merton.cli.tree import App
from merton.errors import InputError
from merton.extras import ready

app = App(
    "Stand between a harness and its policy server: distort, ask again undistorted, and keep the record, until Ctrl-C.",
    invoke_without_command=True,
    subcommand_metavar="[results ...]",
)

Runs = Annotated[Path, typer.Option("--runs", help="Directory that holds the runs.")]


@app.callback()
def proxy_command(
    context: typer.Context,
    upstream: Annotated[str, typer.Option(help="The policy server, such as ws://127.0.0.1:8000.")] = "",
    protocol: Annotated[str, typer.Option("--as", help="Its protocol: vla-eval, openpi or act.")] = "",
    design: Annotated[Path | None, typer.Option(help="File of the design: the conditions of each scene.")] = None,
    listen: Annotated[str, typer.Option(help="HOST:PORT; port 0 takes a free one.")] = "127.0.0.1:8001",
    agent: Annotated[str, typer.Option(help="The policy's name in the record.")] = "policy",
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    runs: Runs = Path("runs"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run of that name.")] = False,
    host_name: Annotated[list[str] | None, typer.Option(help="A further host name of the proxy.")] = None,
) -> None:
    """Stand between a harness and its policy server until Ctrl-C: distort pictures, ask again, keep the record.

    Point the harness at --listen instead of the policy server; neither of them is changed. The run it writes is read
    by report, leaderboard, rate, compare, gate and attribute. `merton proxy results` adds successes afterwards.
    """
    if context.invoked_subcommand is not None:
        return
    ready("`merton proxy`", "remote")
    if not upstream or not protocol:
        raise InputError("merton proxy needs --upstream URL, the policy server, and --as vla-eval, openpi or act")
    from merton.proxy.command import serve

    serve(listen, upstream, protocol, design, runs, name, resume, agent, host_name or (), print_err)


@app.command("results")
def results_command(
    run: Annotated[str, typer.Argument(help="The run: its folder, or its name.")],
    table: Annotated[Path, typer.Argument(help="Its successes: .csv, .tsv, .jsonl or .parquet.")],
    runs: Runs = Path("runs"),
) -> None:
    """Enter successes that the harness knows and its protocol did not say: columns success, and episode or task, scene.

    A row may also name agent, distortion, level and part. The same table again changes nothing.
    """
    if table.suffix == ".parquet":
        ready(str(table), "dataset")
    from merton.episodes.results import join
    from merton.episodes.run import EpisodesRun

    folder = Path(run) if Path(run).is_dir() else runs / run
    with EpisodesRun.open(folder) as opened:
        joined = join(opened, table)
    print_out(f"{joined.new} new, {joined.known} known before; {joined.left} episodes are still without a success")
