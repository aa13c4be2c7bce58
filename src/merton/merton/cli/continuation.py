"""The command that goes on with a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from merton.cli.console import from_here, own_command
from merton.experiment.run_names import RUNS

if TYPE_CHECKING:
    from merton.experiment.run import RunDirectory


def continuation_of(
    directory: RunDirectory, graph: str = "sim", values: Mapping[str, str] = {}, record: bool = False, *rest: str
) -> str:
    """The sentence with the command that continues a run; `rest` are further words of it."""
    words = ["run", from_here(directory.path / "experiment.yaml"), "--resume"]
    if directory.path.parent != RUNS.resolve():
        words += ["--runs", from_here(directory.path.parent)]
    words += ["--name", directory.path.name]
    words += [] if graph == "sim" else ["--graph", graph]
    words += ["--record"] if record else []
    words += rest or (["--in-process"] if directory.in_process else [])
    for key, value in values.items():
        words += ["--set", f"{key}={value}"]
    return f" Go on with: {own_command(*words)}"
