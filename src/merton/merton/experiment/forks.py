"""One trial under several designs that differ in the distorted part alone: runs that are alike so far are one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.ports import Ports
from merton.experiment.trial import TrialRun


@runtime_checkable
class ForkingPorts(Ports, Protocol):
    """A world that may be able to go back to an earlier instant, such as `merton.experiment.world_ports.WorldPorts`."""

    def snapshot(self) -> Any:
        """The state between two chunks, which later chunks do not change."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Go back to a snapshot."""
        ...


def can_fork(spec: ExperimentSpec, trial: Trial) -> bool:
    """Whether the world of an experiment, and with it the policy of a trial, can go back to an earlier instant."""
    return spec.facts.can("fork") and not spec.vla_entry(trial.agent.vla).stateful


def run_forked(ports: Ports, specs: Sequence[ExperimentSpec], trial: Trial) -> list[TrialRun]:
    """Run a trial once for each experiment; returns the runs, which are over, in the order of the experiments.

    Where world and policy can go back (`ForkingPorts`), a run forks from the state of the simulator at the first step
    at which the experiments show a model different images; elsewhere each is run from the reset on, which takes longer.
    Its results are those of `run_trial` with its own experiment, byte for byte; `wall_s` counts from the start of the
    first run.

    Args:
        specs: experiments that differ in `distort` alone, at least one.

    Raises:
        InfrastructureError, OperatorStopError: as `run_trial`.
    """
    if not (isinstance(ports, ForkingPorts) and can_fork(specs[0], trial)):
        return [TrialRun(ports, spec, trial).complete() for spec in specs]
    runs: dict[int, TrialRun] = {}
    waiting: list[tuple[TrialRun, Any, list[int]]] = [(TrialRun(ports, specs[0], trial), None, [*range(len(specs))])]
    while waiting:
        run, state, members = waiting.pop()
        if state is not None:
            ports.restore(state)
        while not run.over and len(groups := _alike(run, specs, members)) == 1:
            run.take_step()
        if run.over:
            runs |= {member: run.fork(specs[member]) for member in members}
            continue
        state = ports.snapshot()
        waiting += [(run.fork(specs[group[0]]), state, group) for group in groups]
    return [runs[member] for member in range(len(specs))]


def _alike(run: TrialRun, specs: Sequence[ExperimentSpec], members: Sequence[int]) -> list[list[int]]:
    """The experiments in groups that show the same images at the run's next step."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for member in members:
        groups.setdefault(run.sides(specs[member]), []).append(member)
    return list(groups.values())
