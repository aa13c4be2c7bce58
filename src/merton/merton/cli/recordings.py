"""`merton recording`: recorded runs scored again, played and repaired."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import print_out
from merton.cli.tree import App
from merton.errors import InputError
from merton.experiment.run_names import find_run
from merton.graph.supervisor import environment, find_executable

app = App("Score recorded runs again, play them, repair them.")


def recording_named(name: Path) -> Path:
    """The recording that an argument names: a file, or the newest one of a run; raises InputError if it has none."""
    if name.is_file() or name.suffix == ".mcap":
        return name
    run = find_run(name)
    files = sorted(run.glob("recording*.mcap"), key=lambda file: file.stat().st_mtime)
    if not files:
        raise InputError(f"{run} has no recording: it was run without --record")
    return files[-1]


Recording = Annotated[
    Path,
    typer.Argument(metavar="RECORDING", callback=recording_named, help="A run, latest, or such as a.mcap."),
]


@app.command("rescore")
def rescore_command(recording: Recording) -> None:
    """Recompute the scores of a recorded run; exit code 1 if any differs from the recorded one."""
    from merton.recording.reader import RecordingReader

    RecordingReader(recording)  # reports a mistake before anything starts
    _run(str(find_executable("merton_nodes", "rescore_recording")), str(recording))


@app.command("play")
def play_command(recording: Recording) -> None:
    """Play the cameras of a recording in this ROS domain until Ctrl-C."""
    from merton.recording.reader import RecordingReader

    RecordingReader(recording)
    bag = f"bag:={json.dumps(str(recording.resolve()))}"
    _run(str(find_executable("merton_nodes", "camera_node")), "--ros-args", "-p", "source:=bag", "-p", bag)


@app.command("repair")
def repair_command(
    recording: Recording,
    out: Annotated[Path, typer.Option("-o", "--out", help="The new file.")],
) -> None:
    """Write the readable messages of a torn recording as a new file."""
    from merton.recording.reader import repair

    print_out(f"{repair(recording, out)} messages are in {out}")


def _run(*command: str) -> None:
    """Run a program of the nodes and end with its exit code."""
    raise typer.Exit(subprocess.run(command, env=environment(), check=False).returncode)
