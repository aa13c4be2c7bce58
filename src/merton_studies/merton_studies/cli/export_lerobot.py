"""`merton export lerobot`: executed trials as demonstrations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import print_err, print_out, progress
from merton.cli.tree import needs

FPS = 10
"""Frames a second of a run, as in films of people."""
SHOWN = 5
"""So many sentences on trials that are left out."""


@needs("people", "dataset", "recording", "sim")
def lerobot_command(
    source: Annotated[
        str, typer.Argument(metavar="RUN", help="A run, latest, or a recording: a.mcap, a bag's folder.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="A new or empty folder.")],
    fps: Annotated[
        int | None,
        typer.Option(
            "--fps", help="Frames a second; 10 of a run, and of a recording those of its cameras if left out."
        ),
    ] = None,
    successful: Annotated[bool, typer.Option("--successful", help="Trials that did the task alone.")] = False,
    cameras: Annotated[
        str, typer.Option("--cameras", help="Cameras whose pictures are exported, such as top,wrist; all if left out.")
    ] = "",
    width: Annotated[
        int | None, typer.Option("--width", help="Width of the pictures [px], even; as they are if left out.")
    ] = None,
) -> None:
    """Write executed trials as demonstrations that LeRobot loads: video, state and action at an even rate.

    The trials of a run are carried out again in the embedded cell; one that goes another way is left out.
    """
    from merton.experiment.run_names import find_run
    from merton.recording.bag_files import is_recording
    from merton.recording.reader import torn_note
    from merton_studies.release.lerobot import from_recording, from_run, pictures

    named = tuple(name.strip() for name in cameras.split(",") if name.strip())
    choice = pictures.PictureChoice(named, width)
    with progress("trials") as on_progress:
        if is_recording(Path(source)):
            made = from_recording.export(Path(source), out, fps, successful, on_progress, choice)
        else:
            rate = FPS if fps is None else fps
            made = from_run.export(find_run(source), out, rate, successful, on_progress, choice)
    counts = made.counts
    print_out(
        f"{counts.episodes} episodes, {counts.successes} of them successes: {counts.frames} frames at {counts.fps} Hz "
        f"({counts.frames / counts.fps:.1f} s) of {', '.join(counts.cameras)}; {counts.size / 1e6:.1f} MB in {out}"
    )
    print_out(f'load them: LeRobotDataset("me/demonstrations", root="{out}")')
    if made.lag_s > 2 / counts.fps:
        print_err(
            f"pictures lag up to {made.lag_s:g} s behind the arm; of a simulated run, export the run, not the recording"
        )
    if made.torn:
        print_err(torn_note(made.torn))
    for sentence in made.left_out[:SHOWN]:
        print_err(f"left out: {sentence}")
    if len(made.left_out) > SHOWN:
        print_err(f"{len(made.left_out)} trials are left out; all are in {out / 'meta/merton.json'}")
