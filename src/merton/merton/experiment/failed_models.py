"""Models of a run that never did what they were asked: their trials say nothing, and the run ends with a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from merton.errors import ErrorCode
from merton.experiment.plan import ExperimentSpec
from merton.results.records import Outcome, TrialRecord


def failed_models(spec: ExperimentSpec, records: Iterable[TrialRecord]) -> list[str]:
    """A sentence for each model that failed in every trial in which it was asked, with its first error.

    A VLM fails in a trial in which it gives no answer to one of the two images, a policy in one that ends with its
    first decision unusable. Trials that a fault of the infrastructure ended say nothing.
    """
    counted = [record for record in records if record.outcome is not Outcome.INFRASTRUCTURE]
    vlms = {agent.id: agent.vlm for agent in spec.agents}
    policies = {agent.id: agent.vla for agent in spec.agents}
    instructed = [record for record in counted if spec.couple is None or record.error_code != ErrorCode.NO_ANSWER]
    return [
        *_of(vlms, counted, lambda record: record.error_code == ErrorCode.NO_ANSWER, "the VLM {} gave no answer"),
        *_of(policies, instructed, _is_undecided, "the policy {} gave no action"),
    ]


def _is_undecided(record: TrialRecord) -> bool:
    return record.outcome is Outcome.INVALID_ACTION and record.steps == 0


def _of(
    models: dict[str, str], records: Iterable[TrialRecord], has_failed: Callable[[TrialRecord], bool], what: str
) -> list[str]:
    """The sentences about the models of a kind; `models` are those of the agents."""
    trials: dict[str, list[TrialRecord]] = {}
    for record in records:
        if record.agent in models:
            trials.setdefault(models[record.agent], []).append(record)
    return [
        f"{what.format(name)} in any of its {len(own)} trial{'s' if len(own) > 1 else ''}: {own[0].error_message}"
        for name, own in trials.items()
        if all(map(has_failed, own))
    ]
