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
        *_of(
            vlms,
            counted,
            lambda record: record.error_code == ErrorCode.NO_ANSWER,
            "the VLM {} gave no answer to an image",
            _of_vlm,
        ),
        *_of(policies, instructed, _is_undecided, "the policy {} gave no action", _of_policy),
    ]


def _is_undecided(record: TrialRecord) -> bool:
    return record.outcome is Outcome.INVALID_ACTION and record.steps == 0


def _of_vlm(name: str, record: TrialRecord) -> str:
    """The VLM's error, without the words that the sentence has already."""
    return record.error_message.removeprefix(f"{name} gave no answer ")


def _of_policy(name: str, record: TrialRecord) -> str:
    """The policy's error, which stands last in a record that also has the VLM's."""
    text = record.error_message
    return text.rpartition("; ")[2] if record.error_code == ErrorCode.NO_ANSWER else text


def _of_trials(n: int) -> str:
    return "its only trial" if n == 1 else f"each of its {n} trials; the first"


def _of(
    models: dict[str, str],
    records: Iterable[TrialRecord],
    has_failed: Callable[[TrialRecord], bool],
    what: str,
    reason: Callable[[str, TrialRecord], str],
) -> list[str]:
    """The sentences about the models of a kind; `models` are those of the agents."""
    trials: dict[str, list[TrialRecord]] = {}
    for record in records:
        if record.agent in models:
            trials.setdefault(models[record.agent], []).append(record)
    return [
        f"{what.format(name)} in {_of_trials(len(own))}: {reason(name, own[0])}"
        for name, own in trials.items()
        if all(map(has_failed, own))
    ]
