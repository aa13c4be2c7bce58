"""`merton replay`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import print_out
from merton.errors import InputError
from merton.graph.supervisor import environment, find_executable
from merton.recording.reader import RecordingReader, repair

RepairOption = Annotated[
    Path | None, typer.Option("--repair", help="Write the readable messages of a torn recording as a new file.")
]
PublishOption = Annotated[bool, typer.Option("--publish", help="Play its cameras in this ROS domain until Ctrl-C.")]


def replay_command(
    recording: Annotated[Path, typer.Argument(help="A recording, such as runs/<id>/recording.mcap.")],
    publish: PublishOption = False,
    repaired: RepairOption = None,
) -> None:
    """Recompute the scores of a recorded run; exit code 1 if any differs from the recorded one."""
    RecordingReader(recording)
    if publish and repaired:
        raise InputError("--publish and --repair exclude each other: choose one")
    if repaired:
        count = repair(recording, repaired)
        print_out(f"{count} messages are in {repaired}")
        return
    if publish:
        command = [str(find_executable("merton_nodes", "camera_node")), "--ros-args", "-p", "source:=bag"]
        command += ["-p", f"bag:={json.dumps(str(recording.resolve()))}"]
    else:
        command = [str(find_executable("merton_nodes", "rescore_recording")), str(recording)]
    raise typer.Exit(subprocess.run(command, env=environment(), check=False).returncode)
