"""The `merton` command: the tree of its commands."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from merton import __version__
from merton.cli import calibrate, dataset, distort, leaderboard, models, results, runs
from merton.cli.annotate import annotate_command
from merton.cli.attribute import attribute_command
from merton.cli.console import print_err, print_out
from merton.cli.doctor import doctor_command
from merton.cli.gate import gate_command
from merton.cli.monitor import monitor_command
from merton.cli.plan import plan_command
from merton.cli.recordings import replay_command
from merton.errors import ErrorCode, InputError, MertonError
from merton.processes import ENDING

USER_MISTAKE = 2
INTERRUPTED = 130

app = typer.Typer(
    help="Measures how well embodied AI can use what it sees.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command("demo")(runs.demo_command)
app.command("run")(runs.run_command)
app.command("plan")(plan_command)
app.command("gate")(gate_command)
app.command("report")(runs.report_command)
app.command("compare")(runs.compare_command)
app.command("rate")(leaderboard.rate_command)
app.command("attribute")(attribute_command)
app.command("replay")(replay_command)
app.command("up")(runs.up_command)
app.command("monitor")(monitor_command)
app.command("annotate")(annotate_command)
app.command("doctor")(doctor_command)
app.add_typer(calibrate.app, name="calibrate")
app.add_typer(dataset.app, name="dataset")
app.add_typer(distort.app, name="distort")
app.add_typer(leaderboard.app, name="leaderboard")
app.add_typer(models.app, name="models")
app.add_typer(results.app, name="results")


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of `merton` itself."""


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
def errors() -> None:
    """Print the error codes of messages and records, and their meaning."""
    for code in ErrorCode:
        print_out(f"{int(code):>3}  {code.name:<18}  {code.meaning}")


@app.command()
def version() -> None:
    """Print the version."""
    print_out(__version__)


def main() -> None:
    """Entry point: a user's mistake is one line and exit code 2; Ctrl-C is 130."""
    for number in set(ENDING) - {signal.SIGINT}:  # that one is Python's KeyboardInterrupt
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    try:
        sys.exit(app(standalone_mode=False) or 0)  # typer.Exit comes back as its code
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except MertonError as error:
        print_err(f"merton: {error}")
        sys.exit(USER_MISTAKE if isinstance(error, InputError) else 1)
    except Exception as error:
        show = getattr(error, "show", None)  # the command line's own errors: unknown option, missing argument
        if show is None:
            raise
        show()
        sys.exit(USER_MISTAKE)
