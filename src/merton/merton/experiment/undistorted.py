"""The undistorted runs of an experiment: the run that a trial is measured against, and the corpus of its VLM."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.trial import ReferenceRun
from merton.experiment.world_facts import YARDSTICKS
from merton.results.records import Reference

KEPT = 1024
"""Saved runs that are kept in memory after they were read; each has a path of up to thousands of points."""


class UndistortedRuns:
    """The undistorted runs of an experiment so far.

    Args:
        stored: returns the reference run that was saved, by trial id; None if there is none.
    """

    def __init__(self, spec: ExperimentSpec, stored: Callable[[str], ReferenceRun | None]) -> None:
        self._spec, self._stored = spec, stored
        self._known: dict[str, ReferenceRun] = {}
        self._read: dict[str, ReferenceRun] = {}
        self._corpora: dict[str, tuple[str, ...]] = {}

    def add(self, trial: Trial, run: ReferenceRun) -> None:
        """A reference trial has been run, perhaps again."""
        self._known[trial.id] = run
        self._corpora.pop(trial.agent.vlm, None)

    def of(self, trial: Trial) -> ReferenceRun | None:
        """The undistorted run of the same agent and scene, of this or an earlier process; None if there is none."""
        key = Trial(trial.agent, trial.case.reference).id
        if (known := self._known.get(key) or self._read.get(key)) is not None:
            return known
        if (found := self._stored(key)) is not None:
            if len(self._read) == KEPT:
                self._read.pop(next(iter(self._read)))
            self._read[key] = found
        return found

    def measure_for(self, trial: Trial) -> tuple[Reference, ReferenceRun | None]:
        """The agent's own undistorted run if it succeeded, else an oracle's that succeeded, else none.

        None and OWN for a trial that has no undistorted run of its own, or is it; None and NONE if that run failed.
        """
        own = None if trial.case.is_reference else self.of(trial)
        if own is not None and own.success:
            return Reference.OWN, own
        for agent in self._spec.agents_and_reference:
            if agent.vla in YARDSTICKS and agent != trial.agent:
                oracle = self.of(Trial(agent, trial.case))
                if oracle is not None and oracle.success:
                    return Reference.ORACLE, oracle
        return Reference.OWN if own is None else Reference.NONE, None

    def corpus(self, trial: Trial) -> tuple[str, ...]:
        """The reference answers that the trial's VLM gave, one a task and scene, even if several agents share the VLM.

        All reference trials run before all distorted ones (`ExperimentSpec.trials`), so the corpus is the same for
        every distorted trial of a VLM, and built once. Reference trials have none, so that their order does not matter.
        """
        if trial.case.is_reference:
            return ()
        vlm = trial.agent.vlm
        if vlm not in self._corpora:
            answers: dict[str, str] = {}
            for other in self._reference_trials[vlm]:
                reference = None if other.case.id in answers else self.of(other)
                if reference is not None and reference.answer is not None:
                    answers[other.case.id] = reference.answer
            self._corpora[vlm] = tuple(answers.values())
        return self._corpora[vlm]

    @cached_property
    def _reference_trials(self) -> dict[str, list[Trial]]:
        """VLM to its reference trials, in order."""
        trials: dict[str, list[Trial]] = {agent.vlm: [] for agent in self._spec.agents}
        for trial in self._spec.trials():
            if trial.case.is_reference:
                trials[trial.agent.vlm].append(trial)
        return trials
