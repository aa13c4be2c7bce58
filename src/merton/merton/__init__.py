"""Merton measures how well embodied AI can use what it sees; docs/use/python.md shows programs that use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from merton.study.loaded import Results

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "calibration",
    "cli",
    "cluster",
    "cognition",
    "config",
    "decision",
    "episodes",
    "errors",
    "execution",
    "experiment",
    "extras",
    "files",
    "graph",
    "gym",
    "hosts",
    "leaderboard",
    "load",
    "models",
    "monitor",
    "pages",
    "perception",
    "pool",
    "processes",
    "progress",
    "proxy",
    "rating",
    "recording",
    "results",
    "seeding",
    "simulation",
    "statistics",
    "study",
    "web",
    "world",
]


def load(run: str | Path = "latest") -> Results:
    """The results of a run, of an experiment or of episodes, or of a record; `.frame()` has a row for each trial.

    Nothing else of Merton is imported before it is called.

    Args:
        run: its folder, its name below `runs`, or "latest"; a record's file, or its address (postgresql://...).

    Raises:
        InputError: there is none; the text names the run that is most like it.
    """
    from merton.experiment.run_names import find_record
    from merton.study.loaded import Results

    return Results(find_record(run))
