"""The rows of a snapshot: one for each agent and one for each test case, from trials, matches and ratings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from merton.errors import ErrorCode, InputError
from merton.leaderboard.snapshot.contents import AgentRow, CaseRow, Drop, MetricMean, Standing
from merton.leaderboard.snapshot.inputs import Inputs
from merton.leaderboard.snapshot.ranges import is_compared, rank_ranges
from merton.rating.checking import MatchTable
from merton.rating.predictions import Gap
from merton.results.losses import of_agents, successes
from merton.results.metrics import METRICS, match_scores
from merton.results.records import FLOOR_AGENT, AgentRecord, Outcome, TrialRecord
from merton.results.refusals import refused_sentences
from merton.statistics.intervals import Interval
from merton.statistics.means import mean, mean_interval, ranks


@dataclass(frozen=True)
class Standings:
    """Ratings and ranks by both methods, by id; empty by likelihood where there is no fit or it is withheld."""

    likelihood: Mapping[str, Standing]
    agi_elo: Mapping[str, Standing]
    is_withheld: bool = False


def standings(ratings: Mapping[str, Any]) -> dict[str, Standing]:
    """Ratings of either method with their ranks, by id."""
    places = ranks(rating.mean for rating in ratings.values())
    return {
        name: Standing(
            rank,
            rating.mean,
            rating.deviation,
            getattr(rating, "interval", None),
            rating.flag,
            getattr(rating, "spread", None),
            getattr(rating, "single_pass", None),
        )
        for (name, rating), rank in zip(ratings.items(), places, strict=True)
        if rank is not None
    }


def chance_floor(trials: Iterable[TrialRecord]) -> float | None:
    """Mean execution score of doing nothing under distortion, 0..100; None if it was not measured."""
    return _distorted_mean([trial for trial in trials if trial.agent == FLOOR_AGENT], "execution")


def agent_rows(
    inputs: Inputs,
    table: MatchTable,
    rated: Standings,
    gaps: Mapping[str, tuple[Gap, ...]],
    floor: float | None,
) -> tuple[AgentRow, ...]:
    """Every agent that is registered or has a trial or a match: by rank, the unrated last, by id."""
    trials: dict[str, list[TrialRecord]] = {}
    for trial in inputs.trials:
        trials.setdefault(trial.agent, []).append(trial)
    registered = {item.id: item for item in inputs.agents}
    submission_of = {item.agent: item.source for item in inputs.submitted}
    scores, metrics = _agent_scores(table), _metric_means(inputs.trials)
    drops, stated, refused = _drops(inputs), _are_undistorted(inputs), refused_sentences(inputs.trials)
    is_ranged = len(table.agent_ids) > 1 and (bool(rated.likelihood) or is_compared(table))
    ranges = rank_ranges(table, rated.likelihood or rated.agi_elo) if is_ranged else {}
    rows = []
    for agent in sorted(trials.keys() | scores.keys() | registered.keys()):
        likelihood, agi_elo = rated.likelihood.get(agent), rated.agi_elo.get(agent)
        best = likelihood or agi_elo
        record = registered.get(agent, AgentRecord(agent))
        matches, score, interval, scenes = scores.get(agent, (0, None, None, 0))
        own = trials.get(agent, [])
        rows.append(
            AgentRow(
                id=agent,
                version=record.version or "",
                weights_sha256=record.weights_sha256 or "",
                owner=record.owner or "",
                rank=best.rank if best else None,
                likelihood=likelihood,
                agi_elo=agi_elo,
                matches=matches,
                score=score,
                score_interval=interval,
                scenes=scenes,
                gaps=gaps.get(agent, ()),
                **_trial_columns(own, floor),
                missing="" if matches else _missing(own),
                submission=submission_of.get(agent, ""),
                metrics=metrics.get(agent, ()),
                rank_range=ranges.get(agent),
                is_withheld=rated.is_withheld and agi_elo is not None,
                drop=drops.get(agent),
                no_drop=""
                if agent in drops
                else _no_drop(stated.get(agent, []), bool(matches), agent in submission_of),
                refused=refused.get(agent, ""),
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.rank is None, row.rank, row.id)))


def case_rows(inputs: Inputs, table: MatchTable, rated: Standings) -> tuple[CaseRow, ...]:
    """Every test case that has a trial or a match, by id."""
    count = np.bincount(table.cases, minlength=len(table.case_ids))
    # Sorted before they are summed: the last bit of a sum depends on the order.
    order = np.lexsort((table.scores, table.cases))
    total = np.add.reduceat(table.scores[order], np.cumsum(count) - count) if len(count) else np.zeros(0)
    scores = {case: (int(count[i]), float(total[i] / count[i])) for i, case in enumerate(table.case_ids)}
    own = {trial.case.id: trial.case for trial in inputs.trials}
    sources = {item.case: item.source for item in inputs.scores}
    rows = []
    for name in sorted(own.keys() | scores.keys()):
        case, (n, score) = own.get(name), scores.get(name, (0, None))
        rows.append(
            CaseRow(
                name,
                sources.get(name, "") if case is None else "",
                case.task if case else "",
                case.seed if case else None,
                case.distortion if case else "",
                case.level if case else None,
                rated.likelihood.get(name),
                rated.agi_elo.get(name),
                n,
                score,
                case.group if case else "",
            )
        )
    return tuple(rows)


def _drops(inputs: Inputs) -> dict[str, Drop]:
    """Agent to its drop over its own trials, or over the successes that its submission states."""
    return {
        agent: Drop(loss.before, loss.after, loss.points, loss.interval, loss.trials, loss.scenes)
        for agent, loss in of_agents([*successes(inputs.trials), *inputs.stated_successes()]).items()
    }


def _are_undistorted(inputs: Inputs) -> dict[str, list[bool]]:
    """Agent to whether each trial whose success is known, its own or stated by its submission, is undistorted."""
    found: dict[str, list[bool]] = {}
    for agent, case, _ in (*successes(inputs.trials), *inputs.stated_successes()):
        found.setdefault(agent, []).append(case.is_reference)
    return found


def _no_drop(counted: Sequence[bool], has_matches: bool, is_submission: bool) -> str:
    """The reason why an agent without a pair of trials has no drop.

    Args:
        counted: whether each of its trials of known success is undistorted.
        has_matches: whether it has a score on some case.
        is_submission: whether its manufacturer stated its scores.
    """
    if is_submission and not counted:
        return "its submission states no success"
    if not counted and not has_matches:
        return "no scored trials"
    if True not in counted:
        return "no undistorted trials"
    return "undistorted trials of other scenes" if False in counted else "no distorted trials"


def _agent_scores(table: MatchTable) -> dict[str, tuple[int, float, Interval, int]]:
    """Matches, mean score, its interval and number of scenes of every agent."""
    ends = np.searchsorted(table.agents, np.arange(len(table.agent_ids) + 1)).tolist()
    found = {}
    for agent, first, last in zip(table.agent_ids, ends[:-1], ends[1:], strict=True):
        scores, cases = table.scores[first:last], table.cases[first:last]
        interval = mean_interval(scores, table.clusters[first:last])
        found[agent] = (last - first, float(scores.mean()), interval, table.scene_count(cases))
    return found


def _metric_means(trials: Sequence[TrialRecord]) -> dict[str, tuple[MetricMean, ...]]:
    """Agent to its mean score by every metric, and its rank by it; without above_floor if `hold` did not take part."""
    agents, scene_of = sorted({trial.agent for trial in trials}), {trial.case.id: trial.case.scene for trial in trials}
    found: dict[str, list[MetricMean]] = {agent: [] for agent in agents}
    for metric in METRICS:
        try:
            matches = match_scores(trials, metric)
        except InputError:  # no floor, or failures of unknown progress
            continue
        if not matches and metric == "execution":  # nothing was measured against another run
            continue
        scores: dict[str, list[float]] = {agent: [] for agent in agents}
        scenes: dict[str, list[str]] = {agent: [] for agent in agents}
        for agent, case, score in matches:
            scores[agent].append(score)
            scenes[agent].append(scene_of[case])
        means = [mean(scores[agent]) for agent in agents]
        for agent, value, rank in zip(agents, means, ranks(means), strict=True):
            interval = None if value is None else mean_interval(scores[agent], scenes[agent])
            n = len(scores[agent])
            found[agent].append(MetricMean(metric, value, rank, n, interval, len(set(scenes[agent]))))
    return {agent: tuple(means) for agent, means in found.items()}


def unrated_warning(inputs: Inputs) -> Iterator[str]:
    """A sentence if trials that success could rate have no score by this metric."""
    able = [trial for trial in inputs.trials if trial.outcome is not Outcome.INFRASTRUCTURE]
    if lost := len(able) - len(match_scores(able, inputs.metric)):
        yield f"{lost} of {len(able)} trials have no {inputs.metric} and are not rated."


def unanswered_warning(trials: Iterable[TrialRecord]) -> Iterator[str]:
    """A sentence if VLMs gave no answer in some trials, which have no cognition score then."""
    counts = Counter(trial.agent for trial in trials if trial.error_code == ErrorCode.NO_ANSWER)
    if counts:
        each = ", ".join(f"{agent} {count}" for agent, count in sorted(counts.items()))
        yield f"Trials in which the VLM gave no answer, and which have no cognition score: {each}."


def _trial_columns(trials: Sequence[TrialRecord], floor: float | None) -> dict[str, Any]:
    counts = {outcome: sum(trial.outcome is outcome for trial in trials) for outcome in Outcome}
    counted = [trial for trial in trials if trial.outcome is not Outcome.INFRASTRUCTURE]
    n, successes = len(counted), counts[Outcome.SUCCESS]
    wins, scenes = [trial.outcome is Outcome.SUCCESS for trial in counted], [trial.case.scene for trial in counted]
    execution = _distorted_mean(trials, "execution")
    above = None
    if execution is not None and floor is not None and floor < 100.0:
        above = (execution - floor) / (100.0 - floor)
    return {
        "trials": n,
        "successes": successes,
        "success": successes / n if n else None,
        "success_interval": mean_interval(wins, scenes) if n else None,
        "trial_scenes": len(set(scenes)),
        "execution_reference": mean(trial.execution for trial in trials if trial.case.is_reference),
        "execution_distorted": execution,
        "execution_above_floor": above,
        "decision": _distorted_mean(trials, "decision"),
        "cognition": _distorted_mean(trials, "cognition"),
        "emergency_stops": counts[Outcome.EMERGENCY_STOP],
        "invalid_actions": counts[Outcome.INVALID_ACTION],
        "infrastructure": counts[Outcome.INFRASTRUCTURE],
        "abstained": counts[Outcome.ABSTAINED],
    }


def _distorted_mean(trials: Iterable[TrialRecord], score: str) -> float | None:
    return mean(getattr(trial, score) for trial in trials if not trial.case.is_reference)


def _missing(trials: Sequence[TrialRecord]) -> str:
    if not trials:
        return "Registered, but nothing was scored."
    faults = sum(trial.outcome is Outcome.INFRASTRUCTURE for trial in trials)
    return f"None of {len(trials)} trials has a score; {faults} ended in an infrastructure fault."
