"""The `merton` command: the tree of its commands."""

from __future__ import annotations

import signal
import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

from merton import __version__
from merton.cli import (
    calibrate,
    dataset,
    distort,
    leaderboard,
    models,
    proxy,
    recordings,
    results,
    runs,
    submissions,
    world,
)
from merton.cli.attribute import attribute_command
from merton.cli.compare import compare_command
from merton.cli.console import own_command, print_err, print_out
from merton.cli.doctor import doctor_command
from merton.cli.gate import gate_command
from merton.cli.mistakes import sentence
from merton.cli.monitor import monitor_command
from merton.cli.new import new_command
from merton.cli.plan import plan_command
from merton.cli.rate import rate_command
from merton.cli.run_list import runs_command
from merton.cli.tree import App, Root
from merton.cli.video import video_command
from merton.errors import ErrorCode, InputError, MertonError, UnknownNameError, missing_library, reason_of
from merton.processes import ENDING

USER_MISTAKE = 2
INTERRUPTED = 130

app = App(
    "Measures how well embodied AI can use what it sees.",
    cls=Root,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def errors_command(
    codes: Annotated[list[str] | None, typer.Argument(metavar="CODE", help="Such as 304; all without one.")] = None,
) -> None:
    """Print the error codes of messages and records, and their meaning."""
    known = {str(int(code)): code for code in ErrorCode}
    if unknown := [text for text in codes or () if text not in known]:
        raise UnknownNameError("error code", unknown[0], known)
    for code in [known[text] for text in codes or known]:
        print_out(f"{int(code):>3}  {code.name:<18}  {code.meaning}")


COMMANDS = (
    ("Start here", "demo", runs.demo_command, "Run the quickstart experiment and write its report"),
    ("Start here", "new", new_command, "Write a commented experiment, by questions or options"),
    ("Start here", "run", runs.run_command, "Run an experiment and write its report"),
    ("Start here", "runs", runs_command, "List the runs, newest first; --open shows the report"),
    ("Start here", "report", runs.report_command, "Write the report of a run again, and show its board"),
    ("Start here", "video", video_command, "Film trials: undistorted beside distorted, path, answer"),
    ("Start here", "doctor", doctor_command, "Check this machine, and name each remedy"),
    ("Studies", "plan", plan_command, "What an experiment can tell, before it runs"),
    ("Studies", "gate", gate_command, "Is a candidate worse than a baseline? An exit code for CI"),
    ("Studies", "compare", compare_command, "Two runs side by side: what differs, and is it chance?"),
    ("Studies", "attribute", attribute_command, "Where agents lose: stage, camera, step, region"),
    ("Studies", "proxy", proxy.app, "Between another harness and its policy: distort and record"),
    ("Boards", "leaderboard", leaderboard.app, "Boards: in the terminal, as pages, served, verified"),
    ("Boards", "rate", rate_command, "How ratings settle, the long tail, a newcomer's place"),
    ("Boards", "submission", submissions.app, "Pack, check, send and withdraw submissions to a board"),
    ("Boards", "results", results.app, "List, export, import and merge records of results"),
    ("Data", "dataset", dataset.app, "Build datasets of distorted images, and verify them"),
    ("Data", "distort", distort.app, "Distort an image; a gallery, a list of distortions"),
    ("Data", "recording", recordings.app, "Score recorded runs again, play them, repair them, view them"),
    ("Lab", "up", runs.up_command, "Start a graph of nodes alone, until Ctrl-C"),
    ("Lab", "monitor", monitor_command, "The operator's page: stop, judge, watch"),
    ("Lab", "model", models.app, "The catalogue of models; serve one, check one"),
    ("Lab", "world", world.app, "The catalogue of worlds; add one, check one, serve one"),
    ("Lab", "calibrate", calibrate.app, "Find where a camera stands"),
    ("Lab", "errors", errors_command, "Error codes and their meaning"),
)
"""Panel of `merton --help`, name, function or group, and its line in the panel."""

for _panel, _name, _command, _line in COMMANDS:
    app.add(_panel, _name, _command, _line)


def _add_commands_of_packages() -> None:
    """Add the commands of other packages, such as merton_studies; a line names one that is broken."""
    for point in entry_points(group="merton.commands"):
        try:
            point.load()(app)
        except Exception as error:
            distribution = point.dist.name if point.dist else point.value
            print_err(f"merton: the commands of {distribution} cannot be loaded: {reason_of(error)}")


_add_commands_of_packages()


def _print_version(wanted: bool) -> None:
    if wanted:
        print_out(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of `merton` itself."""


def main() -> None:
    """Entry point: a user's mistake is one line and exit code 2; Ctrl-C is 130."""
    for number in set(ENDING) - {signal.SIGINT}:  # that one is Python's KeyboardInterrupt
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    try:
        sys.exit(app(prog_name="merton", standalone_mode=False) or 0)  # typer.Exit comes back as its code
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except MertonError as error:
        print_err(f"merton: {error}")
        sys.exit(USER_MISTAKE if isinstance(error, InputError) else 1)
    except ImportError as error:
        if (lacking := missing_library(error)) is None:
            raise
        print_err(f"merton: {lacking}; {own_command('doctor')} checks the rest of this machine")
        sys.exit(1)
    except Exception as error:
        if not hasattr(error, "format_message"):  # the command line's own errors: unknown option, missing argument
            raise
        if error.format_message():  # empty where the help was printed in place of a line without a command
            print_err(f"merton: {sentence(error)}")
        sys.exit(USER_MISTAKE)
