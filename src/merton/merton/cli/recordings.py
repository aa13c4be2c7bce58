"""`merton recording`: recorded runs scored again, played, repaired and viewed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import STDERR, print_err, print_out
from merton.cli.tree import App, needs
from merton.errors import InputError
from merton.experiment.run_names import find_run
from merton.extras import ready
from merton.graph.supervisor import environment, find_executable

FOXGLOVE_PROGRAMS = ("foxglove-studio", "foxglove", "lichtblick")
"""Names of Foxglove's desktop program, and of its free successor Lichtblick, which reads the same files and layouts."""
app = App("Score recorded runs again, play them, repair them, view them.")


def recording_named(name: Path) -> Path:
    """The recording that an argument names: a file, the folder of a bag, or the newest one of a run.

    Raises:
        InputError: a run without a recording, or no run.
        MissingDependencyError: the extra `recording` is not installed.
    """
    ready("a recording", "recording")
    from merton.recording.bag_files import is_recording

    if name.is_file() or is_recording(name):
        return name
    run = find_run(name)
    files = sorted(run.glob("recording*.mcap"), key=lambda file: file.stat().st_mtime)
    if not files:
        raise InputError(f"{run} has no recording: it was run without --record")
    return files[-1]


Recording = Annotated[
    Path,
    typer.Argument(
        metavar="RECORDING", callback=recording_named, help="A run, latest, a file such as a.mcap, or a bag's folder."
    ),
]


@app.command("rescore")
@needs("recording")
def rescore_command(recording: Recording) -> None:
    """Recompute the scores of a recorded run; exit code 1 if any differs from the recorded one."""
    from merton.recording.reader import RecordingReader

    RecordingReader(recording)  # reports a mistake before anything starts
    _run(str(find_executable("merton_nodes", "rescore_recording")), str(recording))


@app.command("play")
@needs("recording")
def play_command(
    recording: Recording,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CAMERA=TOPIC",
            help="The colour image of a camera whose topic has another name, such as top=/my/image_raw; "
            "top.depth=/my/depth for its depth. Repeat it.",
        ),
    ] = None,
) -> None:
    """Play the cameras of a recording in this ROS domain until Ctrl-C."""
    from merton.perception.camera.bag import BagCamera
    from merton.perception.camera.bag_topics import topics_of

    topics = ", ".join(topic or [])
    BagCamera(recording, None, topics_of(topics))  # reports a mistake before anything starts
    parameters = {"bag": str(recording.resolve()), **({"bag_topics": topics} if topics else {})}
    given = [part for name, value in parameters.items() for part in ("-p", f"{name}:={json.dumps(value)}")]
    _run(str(find_executable("merton_nodes", "camera_node")), "--ros-args", "-p", "source:=bag", *given)


@app.command("repair")
@needs("recording")
def repair_command(
    recording: Recording,
    out: Annotated[Path, typer.Option("-o", "--out", help="The new file.")],
) -> None:
    """Write the readable messages of a torn recording as a new file."""
    from merton.recording.reader import repair, torn_note

    count, torn = repair(recording, out)
    if torn:
        print_err(torn_note(torn))
    print_out(f"{count} messages are in {out}")


class Viewer(str, Enum):
    """The programs that show recordings."""

    rerun = "rerun"
    foxglove = "foxglove"


@app.command("view")
def view_command(
    recording: Recording, viewer: Annotated[Viewer, typer.Option("--in", help="The program that shows it.")]
) -> None:
    """Open a recording in rerun or Foxglove, with Merton's layout: pictures, arm, speeds, scores, stages."""
    ready("`merton recording view`", "recording", *(["rerun"] if viewer is Viewer.rerun else []))
    (_view_in_rerun if viewer is Viewer.rerun else _view_in_foxglove)(recording)


def _view_in_rerun(recording: Path) -> None:
    """Write the recording as rerun's own file beside it, and open that where there is a screen."""
    from merton.monitor.rerun_export import export
    from merton.recording.reader import torn_note

    target = beside(recording, ".rrd")
    with STDERR.status(f"reading {recording}"):
        count, torn = export(recording, target)
    if torn:
        print_err(torn_note(torn))
    print_out(f"{count} messages are in {target}")
    program = shutil.which("rerun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None or not _has_screen():
        print_err(f"there is no screen here; on a machine with one: rerun {target}")
        return
    raise typer.Exit(subprocess.run([program, str(target)], check=False).returncode)


def _view_in_foxglove(recording: Path) -> None:
    """Write the layout beside the recording, and open that in Foxglove's desktop program if there is one."""
    from merton.monitor.foxglove import write_layout
    from merton.recording.reader import RecordingReader

    RecordingReader(recording)
    layout = beside(recording, ".foxglove.json")
    write_layout(layout)
    print_out(f"layout: {layout} (in Foxglove: layouts, import from file; once)")
    program = next(filter(None, map(shutil.which, FOXGLOVE_PROGRAMS)), None)
    if program is None or not _has_screen():
        print_out(f"recording: {recording.resolve()} (in Foxglove: open local file)")
        print_err(
            f"no program of {', '.join(FOXGLOVE_PROGRAMS)} can be started here; https://foxglove.dev has the first two"
        )
        return
    raise typer.Exit(subprocess.run([program, str(recording.resolve())], check=False).returncode)


def beside(recording: Path, ending: str) -> Path:
    """The file of this ending beside a recording."""
    if recording.is_file():
        return recording.with_suffix(ending)
    folder = recording.resolve()  # "." and ".." have no name
    return folder.with_name(folder.name + ending)


def _has_screen() -> bool:
    """Whether a window can be opened."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _run(*command: str) -> None:
    """Run a program of the nodes and end with its exit code."""
    raise typer.Exit(subprocess.run(command, env=environment(), check=False).returncode)
