"""The computation of a snapshot from the content of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

import merton
from merton.errors import InputError
from merton.leaderboard.board import rounded
from merton.leaderboard.snapshot.caveats import (
    range_caveats,
    rank_caveats,
    reference_caveats,
    submission_caveats,
    withheld_caveats,
)
from merton.leaderboard.snapshot.contents import AgentRow, CaseRow, MethodCheck, Snapshot, Swap
from merton.leaderboard.snapshot.groups import group_boards
from merton.leaderboard.snapshot.inputs import Inputs
from merton.leaderboard.snapshot.rows import (
    Standings,
    agent_rows,
    case_rows,
    chance_floor,
    standings,
    unanswered_warning,
    unrated_warning,
)
from merton.progress import OnStep
from merton.rating import agi_elo, diagnostics, likelihood
from merton.rating.agi_elo import SEED, SHUFFLES
from merton.rating.checking import MatchTable
from merton.rating.predictions import MASTERY, Gap, Rated, gap_to_hardest, gap_to_share
from merton.results.recorded_world import pooled_sentences
from merton.statistics.means import DIGITS

SHARE = 0.99
"""Of the cases, to master beside the hardest one."""

LEAST_HELD_OUT = 50
"""With fewer matches a fifth of them is too few to judge a method."""


@dataclass(frozen=True)
class BothMethods:
    """The ratings by both methods.

    Attributes:
        likelihood: None where there is no fit, and where its ratings are withheld because the matches leave them open.
        refusal: why there is none, and what stands in its place, one sentence each; empty without any match.
        is_withheld: whether there was a fit.
    """

    agi_elo: agi_elo.Ratings
    likelihood: likelihood.Fit | None
    refusal: tuple[str, ...] = ()
    is_withheld: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to trust the ratings less, each sentence once."""
        fitted = self.likelihood.warnings if self.likelihood else ()
        return tuple(dict.fromkeys((*self.refusal, *fitted, *self.agi_elo.warnings)))

    @property
    def agents(self) -> Standings:
        """Ratings and ranks of the agents."""
        likelihood = standings(self.likelihood.agents if self.likelihood else {})
        return Standings(likelihood, standings(self.agi_elo.agents), self.is_withheld)

    @property
    def cases(self) -> Standings:
        """Ratings and ranks of the test cases."""
        return Standings(standings(self.likelihood.cases if self.likelihood else {}), standings(self.agi_elo.cases))


def compute(
    inputs: Inputs, name: str, schema_version: int, checks: bool = True, progress: OnStep = lambda text: None
) -> Snapshot:
    """The snapshot of these inputs; their order plays no part.

    Args:
        schema_version: of the record.
        checks: also test the methods on held-out matches, which takes as long as the rating itself.
        progress: called with a line of text at the start of each long step.

    Raises:
        InputError: a score is NaN or outside 0..1.
    """
    table = inputs.matches()
    rated = rate_both(table, progress)
    floor = chance_floor(inputs.trials)
    agents = agent_rows(inputs, table, rated.agents, _gaps(rated, progress), floor)
    cases = case_rows(inputs, table, rated.cases)
    snapshot = Snapshot(
        name=name,
        method=f"{_rule(inputs)} {_method(rated)}",
        merton_version=merton.__version__,
        schema_version=schema_version,
        inputs_sha256=inputs.sha256(),
        experiments=tuple(sorted({trial.experiment for trial in inputs.trials})),
        sources=tuple(sorted({item.source for item in inputs.scores})),
        agents=agents,
        cases=cases,
        matches=(),
        boards=group_boards(table, cases, [row.id for row in agents], inputs.metric),
        swaps=_swaps(rated.agi_elo),
        shuffles=SHUFFLES,
        seed=SEED,
        case_spread=rated.likelihood.case_spread if rated.likelihood else None,
        dispersion=rated.likelihood.dispersion if rated.likelihood else None,
        chance_floor=floor,
        warnings=(
            *rated.warnings,
            *range_caveats(table, rated.likelihood is not None),
            *unrated_warning(inputs),
            *pooled_sentences(inputs.experiments),
            *unanswered_warning(inputs.trials),
            *reference_caveats(inputs.trials),
            *rank_caveats(agents, inputs.metric),
            *submission_caveats(inputs),
        ),
        diagnostics=_checks(table, rated, progress) if checks and len(table.scores) else (),
        window=inputs.window,
        metric=inputs.metric,
        rated_by=inputs.rated_by,
    )
    return replace(rounded(snapshot), matches=_indexed(table, agents, cases))


def rate_both(table: MatchTable, progress: OnStep = lambda text: None, joint: bool = False) -> BothMethods:
    """The ratings of a board: AGI-Elo of `SHUFFLES` orders, and by likelihood unless the matches leave those open.

    Where they do (`likelihood.Fit.is_open`), and where there is no fit, AGI-Elo alone gives the ranks. `joint` is as
    for `agi_elo.rate`; the likelihood has no order of matches and no such choice.
    """
    progress(
        f"rating {len(table.agent_ids)} agents on {len(table.case_ids)} cases: {len(table.scores)} matches, "
        f"{SHUFFLES} orders"
    )
    ratings = agi_elo.rate(table, SEED, SHUFFLES, joint)
    progress("fitting by maximum likelihood")
    try:
        fitted = likelihood.fit(table)
        if fitted.is_open:
            return BothMethods(ratings, None, tuple(withheld_caveats(table, fitted)), True)
        return BothMethods(ratings, fitted)
    except InputError as error:
        refusal = f"There is no likelihood rating, AGI-Elo alone gives the ranks: {error}."
        return BothMethods(ratings, None, (refusal,) if len(table.scores) else ())


def _gaps(rated: BothMethods, progress: OnStep) -> dict[str, tuple[Gap, ...]]:
    """The gaps to mastery by agent, by the method that gives the ranks; to a share of the cases by likelihood alone."""
    ratings = rated.likelihood or rated.agi_elo
    agents: Mapping[str, Rated] = ratings.agents
    cases: Mapping[str, Rated] = ratings.cases
    if not cases:
        return {}
    progress("gaps to mastery")
    hardest = max(case.mean for case in cases.values())
    return {
        name: (
            *(gap_to_hardest(rating.mean, hardest, p) for p in MASTERY),
            *(gap_to_share(rated.likelihood, name, p, SHARE) for p in MASTERY if rated.likelihood),
        )
        for name, rating in agents.items()
    }


def _rule(inputs: Inputs) -> str:
    return f"Rated by {inputs.rated_by}." if inputs.scores else f"Trials are rated by {inputs.metric}."


def _method(rated: BothMethods) -> str:
    elo = f"AGI-Elo, mean of {SHUFFLES} seeded orders (seed {SEED})"
    if rated.likelihood is not None:
        elo = f"maximum likelihood (one-parameter logistic, cases integrated out); beside it {elo}"
    return f"Ranks by {elo}. {agi_elo.NO_INTERVAL}"


def _indexed(
    table: MatchTable, agents: Sequence[AgentRow], cases: Sequence[CaseRow]
) -> tuple[tuple[int, int, float], ...]:
    """The matches as (index into agents, index into cases, score), sorted."""
    agent_place = {row.id: index for index, row in enumerate(agents)}
    case_place = {row.id: index for index, row in enumerate(cases)}
    agent = np.array([agent_place[name] for name in table.agent_ids], dtype=np.int64)[table.agents]
    case = np.array([case_place[name] for name in table.case_ids], dtype=np.int64)[table.cases]
    order = np.lexsort((table.scores, case, agent))
    return tuple(
        zip(agent[order].tolist(), case[order].tolist(), table.scores[order].round(DIGITS).tolist(), strict=True)
    )


def _swaps(ratings: agi_elo.Ratings) -> tuple[Swap, ...]:
    """Neighbours that change places in some of the orders of the matches."""
    order = sorted(ratings.agents, key=lambda name: (-round(ratings.agents[name].mean, DIGITS), name))
    found = []
    for upper, lower in pairwise(order):
        ahead = sum(b > a for a, b in zip(ratings.passes[upper], ratings.passes[lower], strict=True))
        if ahead:
            found.append(Swap(upper, lower, ahead / ratings.shuffles))
    return tuple(found)


def _checks(table: MatchTable, rated: BothMethods, progress: OnStep) -> tuple[MethodCheck, ...]:
    """Both methods against their own matches, and against held-out ones where there are enough."""
    found = []
    for name, ratings, rate in (
        ("likelihood", rated.likelihood, _by_likelihood),
        ("agi_elo", rated.agi_elo, _by_agi_elo),
    ):
        if ratings is None:
            continue
        progress(f"checking {name.replace('_', '-')} on matches held out")
        held_out = None
        if len(table.scores) >= LEAST_HELD_OUT:
            try:
                held_out = diagnostics.held_out(table, rate, SEED)
            except InputError:  # too few of them have two players that are left
                held_out = None
        found.append(MethodCheck(name, diagnostics.diagnose(ratings.agents, ratings.cases, table), held_out))
    return tuple(found)


def _by_likelihood(table: MatchTable) -> diagnostics.Ratings:
    fitted = likelihood.fit(table)
    return fitted.agents, fitted.cases


def _by_agi_elo(table: MatchTable) -> diagnostics.Ratings:
    ratings = agi_elo.rate(table, SEED, SHUFFLES)
    return ratings.agents, ratings.cases
