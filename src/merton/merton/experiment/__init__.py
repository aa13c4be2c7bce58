"""Experiments: trials over the four stages, their plan, their scores and the files of a run."""

__all__ = [
    "again",
    "dry_run",
    "failed_models",
    "forks",
    "in_graph",
    "local",
    "paired",
    "parts",
    "plan",
    "ports",
    "progress",
    "run",
    "run_names",
    "runner",
    "scoring",
    "staircase",
    "template",
    "trial",
    "undistorted",
    "workers",
]
