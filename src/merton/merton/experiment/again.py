"""Trials of a run carried out again in the embedded cell: in lockstep, the same trial goes the same way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from merton.experiment.local import LocalPorts
from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.scoring import ToolPath
from merton.experiment.trial import TrialRun
from merton.results.records import TrialRecord
from merton.results.trial_files import trial_detail


def carried_out_again(
    ports: LocalPorts, spec: ExperimentSpec, trial: Trial, at_slice: Callable[[int], None]
) -> TrialRun:
    """Carry a trial out again; returns it when it is over.

    Args:
        at_slice: called with the number of the step under way, from 0, at the start of the trial and after every slice
            of motion, as `UrCell.on_slice`; it may look at the cell and must not change it.

    Raises:
        InfrastructureError: a model cannot be asked, as in `merton.experiment.trial.run_trial`.
    """
    run = TrialRun(ports, spec, trial)
    ports.world.on_slice = lambda: at_slice(run.steps)
    try:
        at_slice(run.steps)
        return run.complete()
    finally:
        ports.world.on_slice = lambda: None


def is_as_recorded(run: Path, record: TrialRecord, path: ToolPath) -> bool:
    """Whether a tool's path, `rounded`, is the one in the trial.json of a run's trial, to the last digit."""
    detail = trial_detail(run, record) or {}
    return [list(point) for point in path] == detail.get("path")
