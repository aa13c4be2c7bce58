"""The commands of the studies, and their places in the tree of `merton`."""

from __future__ import annotations

from merton.cli import distort, doctor, leaderboard
from merton.cli.tree import App
from merton.errors import MissingDependencyError
from merton_studies.cli import curate, export, iqa, people, study
from merton_studies.cli.annotate import annotate_command
from merton_studies.cli.answers import answers_command
from merton_studies.cli.distort_dataset import distort_dataset_command
from merton_studies.cli.host import host_command
from merton_studies.cli.reproduce import reproduce_command
from merton_studies.cli.whatif import whatif_command

COMMANDS = (
    ("Studies", "annotate", annotate_command, "Models on a dataset, every answer kept"),
    ("Studies", "study", study.app, "One score per image of an annotated dataset, and its studies"),
    ("Studies", "iqa", iqa.app, "Image quality for robots: metrics, a benchmark, a gate"),
    ("Studies", "curate", curate.app, "Benchmarks curated and run by agents"),
    ("Studies", "people", people.app, "Studies with people: pages for raters, agreement, exports"),
    ("Studies", "reproduce", reproduce_command, "The papers' numbers, recomputed, each with a verdict"),
    ("Data", "export", export.app, "What a lab publishes: datasets with a card, for hubs and LeRobot"),
    ("Data", "whatif", whatif_command, "Would the arm have gone elsewhere on worse pictures?"),
)
"""As `merton.cli.main.COMMANDS`."""


def add(app: App) -> None:
    """Add all commands of the studies to the tree, and their check to `merton doctor`."""
    for panel, name, command, line in COMMANDS:
        app.add(panel, name, command, line)
    distort.app.command("dataset")(distort_dataset_command)
    leaderboard.app.command("answers")(answers_command)
    leaderboard.app.command("evaluate")(host_command)
    doctor.CHECKS.append(("sandbox", sandbox_engine, "see docs/studies/sandbox.md"))


def sandbox_engine() -> str:
    """Tell which engine confines generated code. None is no failure: only `merton curate evaluate` needs one."""
    from merton_studies.harness.sandbox import working_engine

    try:
        engine = working_engine()
    except MissingDependencyError as error:
        return f"none, needed by `merton curate evaluate` alone: {error}"
    note = "" if engine == "bubblewrap" else "; bubblewrap, tried first, is not there: sudo apt-get install bubblewrap"
    return f"programs that agents write are shut in by {engine}{note}"
