"""How a snapshot is computed from what a record holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

import merton
from merton.errors import InputError
from merton.leaderboard import boards
from merton.leaderboard.snapshot.contents import AgentRow, CaseRow, Interval, MethodCheck, Snapshot, Standing, Swap
from merton.leaderboard.terminal import FLOOR_AGENT
from merton.rating import agi_elo, diagnostics, likelihood
from merton.rating.checking import Match, Played, played
from merton.rating.predictions import MASTERY, Gap, Rated, gap_to, target
from merton.results.records import AgentRecord, ForeignScore, Outcome, TrialRecord
from merton.results.statistics import mean, mean_interval, wilson

SEED = 0
SHUFFLES = 20
DIGITS = 6
"""Decimals that are kept of every float."""

QUANTILES = (1.0, 0.99)
LEAST_HELD_OUT = 50
"""Matches below which a fifth of them says nothing about a method."""

Progress = Callable[[str], None]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Inputs:
    """Everything a snapshot is computed from, in any order."""

    trials: Sequence[TrialRecord]
    scores: Sequence[ForeignScore] = ()
    agents: Sequence[AgentRecord] = ()
    submitted: Sequence[ForeignScore] = ()
    """Scores of submissions on the board, on cases of trials or imports; `source` is the submission's id."""
    window: str = ""


def compute(
    inputs: Inputs, name: str, schema_version: int, checks: bool = True, progress: Progress = lambda text: None
) -> Snapshot:
    """The snapshot of these inputs; their order has no influence.

    Args:
        inputs: trials and foreign scores; what has no score is listed and never rated.
        name: of the snapshot.
        schema_version: of the record.
        checks: also test the methods on held-out matches, which takes as long as the rating itself.
        progress: is told what takes a while, a line each.

    Raises:
        InputError: a score is NaN or outside 0..1.
    """
    matches = agi_elo.matches(inputs.trials) + [
        (item.agent, item.case, item.score) for item in (*inputs.scores, *inputs.submitted)
    ]
    game = played(matches)
    progress(
        f"rating {len(game.agent_ids)} agents on {len(game.case_ids)} cases: {len(matches)} matches, {SHUFFLES} orders"
    )
    ratings = agi_elo.rate(matches, SEED, SHUFFLES)
    fitted, refusal = _fitted(matches, progress)
    elo_agents, elo_cases = _standings(ratings.agents), _standings(ratings.cases)
    fit_agents = _standings(fitted.agents) if fitted else {}
    fit_cases = _standings(fitted.cases) if fitted else {}
    floor = _distorted_mean([trial for trial in inputs.trials if trial.agent == FLOOR_AGENT], "execution")
    gaps = _gaps(fitted or ratings, progress)
    counts = dict(zip(game.agent_ids, np.bincount(game.agents, minlength=len(game.agent_ids)).tolist(), strict=True))
    scores = {agent: _agent_score(game, index) for index, agent in enumerate(game.agent_ids)}
    by_agent: dict[str, list[TrialRecord]] = {}
    for trial in inputs.trials:
        by_agent.setdefault(trial.agent, []).append(trial)
    registered = {item.id: item for item in inputs.agents}
    submission_of = {item.agent: item.source for item in inputs.submitted}
    rows = []
    for agent in sorted(by_agent.keys() | set(game.agent_ids) | registered.keys()):
        elo, fit, who = elo_agents.get(agent), fit_agents.get(agent), registered.get(agent, AgentRecord(agent))
        rows.append(
            AgentRow(
                id=agent,
                version=who.version or "",
                weights_sha256=who.weights_sha256 or "",
                owner=who.owner or "",
                rank=(fit or elo).rank if fit or elo else None,  # type: ignore[union-attr]
                likelihood=fit,
                agi_elo=elo,
                matches=counts.get(agent, 0),
                score=scores[agent][0] if agent in scores else None,
                score_interval=scores[agent][1] if agent in scores else None,
                gaps=gaps.get(agent, ()),
                **_trial_columns(by_agent.get(agent, []), floor),
                missing="" if agent in scores else _missing(by_agent.get(agent, [])),
                submission=submission_of.get(agent, ""),
            )
        )
    rows.sort(key=lambda row: (row.rank is None, row.rank, row.id))
    case_rows = _case_rows(inputs, game, fit_cases, elo_cases)
    warnings = [*refusal, *(fitted.warnings if fitted else ()), *ratings.warnings]
    snapshot = Snapshot(
        name=name,
        method=_method(fitted is not None),
        merton_version=merton.__version__,
        schema_version=schema_version,
        inputs_sha256=inputs_sha256(inputs),
        experiments=tuple(sorted({trial.experiment for trial in inputs.trials})),
        sources=tuple(sorted({item.source for item in inputs.scores})),
        agents=tuple(rows),
        cases=case_rows,
        matches=(),
        boards=boards.build(matches, case_rows, [row.id for row in rows]),
        swaps=_swaps(ratings),
        shuffles=SHUFFLES,
        seed=SEED,
        case_spread=fitted.case_spread if fitted else None,
        dispersion=fitted.dispersion if fitted else None,
        chance_floor=floor,
        warnings=tuple(dict.fromkeys(warnings)),
        diagnostics=_checks(matches, ratings, fitted, checks, progress),
        window=inputs.window,
    )
    return replace(rounded(snapshot), matches=_indexed(game, rows, case_rows))


def inputs_sha256(inputs: Inputs) -> str:
    """SHA-256 over everything that counts, one canonical JSON line an item, sorted; wall times are left out."""
    lines = [
        *_lines("trial", inputs.trials),
        *_lines("score", inputs.scores),
        *_lines("agent", inputs.agents),
        *_lines("submitted", inputs.submitted),
    ]
    digest = hashlib.sha256()
    for line in sorted(lines):
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def rounded(value: Value) -> Value:
    """The value with every float in it rounded to `DIGITS`; -0.0 becomes 0.0."""
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0  # type: ignore[return-value]
    if isinstance(value, tuple):
        return tuple(rounded(item) for item in value)  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{item.name: rounded(getattr(value, item.name)) for item in fields(value)})
    return value


def _lines(kind: str, items: Iterable[Any]) -> Iterable[str]:
    for item in items:
        plain = asdict(item)
        plain.pop("wall_s", None)
        yield json.dumps([kind, plain], sort_keys=True, allow_nan=False)


def _fitted(matches: list[Match], progress: Progress) -> tuple[likelihood.Fit | None, tuple[str, ...]]:
    """The likelihood fit, or why there is none."""
    progress("fitting by maximum likelihood")
    try:
        return likelihood.fit(matches), ()
    except InputError as error:
        return None, (f"There is no likelihood rating, AGI-Elo alone gives the ranks: {error}.",) if matches else ()


def _method(is_fitted: bool) -> str:
    elo = f"AGI-Elo, mean of {SHUFFLES} seeded orders (seed {SEED})"
    if is_fitted:
        return f"Ranks by maximum likelihood (one-parameter logistic, cases integrated out); beside it {elo}."
    return f"Ranks by {elo}."


def _standings(ratings: Mapping[str, Any]) -> dict[str, Standing]:
    """Ratings of either method with their ranks; ratings that are shown as equal share one."""
    means = sorted((round(rating.mean, DIGITS) for rating in ratings.values()), reverse=True)
    rank: dict[float, int] = {}
    for place, value in enumerate(means, start=1):
        rank.setdefault(value, place)
    return {
        name: Standing(
            rank[round(rating.mean, DIGITS)],
            rating.mean,
            rating.deviation,
            rating.interval,
            rating.flag,
            getattr(rating, "spread", None),
            getattr(rating, "single_pass", None),
        )
        for name, rating in ratings.items()
    }


def _agent_score(game: Played, agent: int) -> tuple[float, Interval]:
    first, last = np.searchsorted(game.agents, [agent, agent + 1])
    return float(game.scores[first:last].mean()), mean_interval(game.scores[first:last], game.cases[first:last])


def _gaps(ratings: likelihood.Fit | agi_elo.Ratings, progress: Progress) -> dict[str, tuple[Gap, ...]]:
    agents: Mapping[str, Rated] = ratings.agents
    cases: Mapping[str, Rated] = ratings.cases
    if not cases:
        return {}
    progress("gaps to mastery")
    targets = [target(cases.values(), quantile) for quantile in QUANTILES]
    return {name: tuple(gap_to(rating, one, p) for one in targets for p in MASTERY) for name, rating in agents.items()}


def _trial_columns(trials: Sequence[TrialRecord], floor: float | None) -> dict[str, Any]:
    counts = {outcome: sum(trial.outcome is outcome for trial in trials) for outcome in Outcome}
    n, successes = len(trials) - counts[Outcome.INFRASTRUCTURE], counts[Outcome.SUCCESS]
    execution = _distorted_mean(trials, "execution")
    above = None
    if execution is not None and floor is not None and floor < 100.0:
        above = (execution - floor) / (100.0 - floor)
    return {
        "trials": n,
        "successes": successes,
        "success": successes / n if n else None,
        "success_interval": wilson(successes, n) if n else None,
        "execution_reference": mean(trial.execution for trial in trials if trial.case.is_reference),
        "execution_distorted": execution,
        "execution_above_floor": above,
        "decision": _distorted_mean(trials, "decision"),
        "cognition": _distorted_mean(trials, "cognition"),
        "emergency_stops": counts[Outcome.EMERGENCY_STOP],
        "invalid_actions": counts[Outcome.INVALID_ACTION],
        "infrastructure": counts[Outcome.INFRASTRUCTURE],
    }


def _distorted_mean(trials: Iterable[TrialRecord], score: str) -> float | None:
    return mean(getattr(trial, score) for trial in trials if not trial.case.is_reference)


def _missing(trials: Sequence[TrialRecord]) -> str:
    if not trials:
        return "Registered, but nothing was scored."
    faults = sum(trial.outcome is Outcome.INFRASTRUCTURE for trial in trials)
    return f"None of {len(trials)} trials has an execution score; {faults} ended in an infrastructure fault."


def _case_rows(
    inputs: Inputs, game: Played, fitted: Mapping[str, Standing], elo: Mapping[str, Standing]
) -> tuple[CaseRow, ...]:
    count = np.bincount(game.cases, minlength=len(game.case_ids))
    # Sorted before they are summed: the last bit of a sum depends on the order.
    order = np.lexsort((game.scores, game.cases))
    total = np.add.reduceat(game.scores[order], np.cumsum(count) - count) if len(count) else np.zeros(0)
    shares = {case: (int(count[i]), float(total[i] / count[i])) for i, case in enumerate(game.case_ids)}
    known = {trial.case.id: trial.case for trial in inputs.trials}
    sources = {item.case: item.source for item in inputs.scores}
    rows = []
    for name in sorted(known.keys() | set(game.case_ids)):
        case, (n, score) = known.get(name), shares.get(name, (0, None))
        rows.append(
            CaseRow(
                name,
                sources.get(name, "") if case is None else "",
                case.task if case else "",
                case.seed if case else None,
                case.distortion if case else "",
                case.level if case else None,
                fitted.get(name),
                elo.get(name),
                n,
                score,
            )
        )
    return tuple(rows)


def _indexed(game: Played, agents: Sequence[AgentRow], cases: Sequence[CaseRow]) -> tuple[tuple[int, int, float], ...]:
    agent_place = {row.id: index for index, row in enumerate(agents)}
    case_place = {row.id: index for index, row in enumerate(cases)}
    agent = np.array([agent_place[name] for name in game.agent_ids], dtype=np.int64)[game.agents]
    case = np.array([case_place[name] for name in game.case_ids], dtype=np.int64)[game.cases]
    order = np.lexsort((game.scores, case, agent))
    return tuple(
        zip(agent[order].tolist(), case[order].tolist(), game.scores[order].round(DIGITS).tolist(), strict=True)
    )


def _swaps(ratings: agi_elo.Ratings) -> tuple[Swap, ...]:
    order = sorted(ratings.agents, key=lambda name: (-round(ratings.agents[name].mean, DIGITS), name))
    found = []
    for upper, lower in pairwise(order):
        ahead = sum(b > a for a, b in zip(ratings.passes[upper], ratings.passes[lower], strict=True))
        if ahead:
            found.append(Swap(upper, lower, ahead / ratings.shuffles))
    return tuple(found)


def _checks(
    matches: list[Match], ratings: agi_elo.Ratings, fitted: likelihood.Fit | None, checks: bool, progress: Progress
) -> tuple[MethodCheck, ...]:
    if not checks or not matches:
        return ()
    methods: list[tuple[str, Any, Callable[[list[Match]], diagnostics.Ratings]]] = []
    if fitted is not None:
        methods.append(("likelihood", fitted, _by_likelihood))
    methods.append(("agi_elo", ratings, _by_agi_elo))
    found = []
    for name, rated, rate in methods:
        progress(f"checking {name.replace('_', '-')} on matches held out")
        held_out = None
        if len(matches) >= LEAST_HELD_OUT:
            try:
                held_out = diagnostics.held_out(matches, rate, SEED)
            except InputError:  # too few of them meet a player that is left
                held_out = None
        found.append(MethodCheck(name, diagnostics.diagnose(rated.agents, rated.cases, matches), held_out))
    return tuple(found)


def _by_likelihood(matches: list[Match]) -> diagnostics.Ratings:
    fitted = likelihood.fit(matches)
    return fitted.agents, fitted.cases


def _by_agi_elo(matches: list[Match]) -> diagnostics.Ratings:
    ratings = agi_elo.rate(matches, SEED, SHUFFLES)
    return ratings.agents, ratings.cases
