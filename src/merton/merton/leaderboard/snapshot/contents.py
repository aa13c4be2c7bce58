"""The contents of a leaderboard's snapshot, as plain frozen values.

Scores of matches and means are 0..1 unless a name says otherwise; ratings and gaps are Elo points; intervals are
(low, high) at 95 %. A value that could not be measured is None and is shown as missing, never as a number. Floats are
rounded to six decimals, so that the last bits of another processor do not change a byte.
"""

from __future__ import annotations

from dataclasses import dataclass

from merton.leaderboard.board import Board
from merton.rating.diagnostics import Diagnostics, HeldOut
from merton.rating.predictions import Gap
from merton.results.metrics import DEFAULT_METRIC
from merton.results.records import FLOOR_AGENT, TestCase
from merton.statistics.intervals import Interval


@dataclass(frozen=True)
class Standing:
    """A player's rating by one method, and the place it gives.

    Attributes:
        rank: 1 for the highest rating; equal ratings share it. Of cases: 1 is the hardest.
        mean: the rating.
        deviation: standard error (likelihood) or rating deviation RD (AGI-Elo).
        interval: 95 % of `mean`; None by AGI-Elo, which has none that holds, of an agent's bound, and where one scene
            is all there is.
        flag: "only wins", "only losses" or empty: such a rating is a bound, no estimate.
        spread: AGI-Elo alone: standard deviation of the mean over the shuffles; None by likelihood.
        single_pass: AGI-Elo alone: the result of the paper's single pass in one random order; None by likelihood.
    """

    rank: int
    mean: float
    deviation: float
    interval: Interval | None
    flag: str = ""
    spread: float | None = None
    single_pass: float | None = None

    @property
    def bound_sign(self) -> str:
        """The sign before an agent's rating that is a bound: at least after only wins, at most after only losses."""
        return "≥" if self.flag == "only wins" else "≤"


@dataclass(frozen=True)
class MetricMean:
    """An agent's mean score by one metric, over all its trials that have one.

    Attributes:
        metric: of `merton.results.metrics`.
        mean: 0..1; None if no trial has a score.
        rank: its place among the agents by this mean; None without one.
        trials: number of trials.
        interval: 95 % of `mean`, clustered by scene; None without one.
        scenes: of these trials.
    """

    metric: str
    mean: float | None
    rank: int | None
    trials: int
    interval: Interval | None = None
    scenes: int = 0


@dataclass(frozen=True)
class Drop:
    """An agent's success undistorted and distorted, paired by task and scene (`merton.results.losses`).

    Attributes:
        undistorted, distorted: shares of successes, 0..1, over the same pairs.
        points: undistorted less distorted, -1..1.
        interval: 95 % of `points`, clustered by scene; (-1, 1) from one scene alone.
        trials, scenes: distorted trials that have an undistorted one, and their scenes.
    """

    undistorted: float
    distorted: float
    points: float
    interval: Interval
    trials: int
    scenes: int


@dataclass(frozen=True)
class AgentRow:
    """One agent's line. "distorted" means levels 1 to 5, "reference" level 0; both come from trials alone.

    Attributes:
        id: of the agent.
        version, weights_sha256, owner: as registered in the record; empty if unknown.
        rank: its place, by likelihood where there is such a rating, else by AGI-Elo; None if unrated.
        likelihood, agi_elo: ratings by both methods; None where there is none.
        matches: number of those it was rated from.
        score: mean score of its matches, 0..1.
        score_interval: of `score`, clustered by scene (`statistics.mean_interval`).
        trials: its trials that ended without an infrastructure fault; 0 for agents of an imported matrix.
        successes: trials that did the task.
        drop: its success undistorted and distorted, the first number of an agent; None without a pair of trials.
        no_drop: why there is no `drop`, a few words; empty if there is one.
        refused: that the gate let no delta of its trials pass (`results.refusals`), a sentence; empty if it did.
        success: successes / trials, over undistorted and distorted ones together; a detail, no agent's result.
        success_interval: of `success`, clustered by scene.
        execution_reference, execution_distorted: mean execution scores, 0..100.
        execution_above_floor: (execution_distorted - floor) / (100 - floor): 0 is doing nothing, 1 is perfect.
        decision, cognition: mean scores of distorted trials, 0..1.
        emergency_stops, invalid_actions, infrastructure, abstained: trials with that outcome.
        gaps: to scoring 50, 90 and 99 % on the hardest case, by the method that gives the rank, then, by likelihood
            alone, on one that 99 % of the cases are easier than (`Gap.quantile` 1 and 0.99); empty if unrated.
        missing: why it has no rank, one sentence; empty if it has one.
        submission: id of the submission its scores are from, which its manufacturer measured; empty if the host did.
        scenes: of its matches; the cases of an imported matrix have none.
        trial_scenes: of its `trials`.
        metrics: its trials by every metric that the record allows; empty without a trial.
        rank_range: the best and the worst place that its scores on the cases it shares with others allow, such as
            (1, 9): see `ranges.rank_ranges`; None if unrated, and of a single agent.
        is_withheld: whether its likelihood rating is withheld because the matches leave it open; `Snapshot.warnings`
            say why, and have the paired differences in its place.
    """

    id: str
    version: str
    weights_sha256: str
    owner: str
    rank: int | None
    likelihood: Standing | None
    agi_elo: Standing | None
    matches: int
    score: float | None
    score_interval: Interval | None
    trials: int
    successes: int
    success: float | None
    success_interval: Interval | None
    execution_reference: float | None
    execution_distorted: float | None
    execution_above_floor: float | None
    decision: float | None
    cognition: float | None
    emergency_stops: int
    invalid_actions: int
    infrastructure: int
    gaps: tuple[Gap, ...]
    missing: str = ""
    submission: str = ""
    scenes: int = 0
    trial_scenes: int = 0
    metrics: tuple[MetricMean, ...] = ()
    rank_range: tuple[int, int] | None = None
    abstained: int = 0
    is_withheld: bool = False
    drop: Drop | None = None
    no_drop: str = ""
    refused: str = ""

    @property
    def is_floor(self) -> bool:
        """Whether it is the agent that does nothing."""
        return self.id == FLOOR_AGENT

    @property
    def standing(self) -> Standing | None:
        """The rating that gives the rank."""
        return self.likelihood or self.agi_elo

    @property
    def share_under_distortion(self) -> float | None:
        """Share of the undistorted execution score that is left under distortion; None if unknown."""
        if self.execution_distorted is None or not self.execution_reference:
            return None
        return self.execution_distorted / self.execution_reference


@dataclass(frozen=True)
class CaseRow:
    """One test case with a match or a trial. `level` is None for cases of imported matrices and submissions.

    Attributes:
        id: such as "pick.0.gaussian_blur.3", or "<source>/<case>" for a foreign one.
        source: empty for trials, else where the scores came from.
        task, seed, distortion, level: of the case; empty or None for a foreign one.
        likelihood, agi_elo: its difficulty by both methods.
        matches: number of matches.
        score: the agents' mean score on it, 0..1.
        group: as in `merton.results.records.TestCase`.
    """

    id: str
    source: str
    task: str
    seed: int | None
    distortion: str
    level: int | None
    likelihood: Standing | None
    agi_elo: Standing | None
    matches: int
    score: float | None
    group: str = ""

    @property
    def unit(self) -> tuple[bool, str]:
        """The sampled unit it belongs to: (True, its scene), or of a foreign case (False, its own id)."""
        if self.level is None or self.seed is None:
            return False, self.id
        return True, TestCase(self.task, self.seed, self.distortion, self.level, self.group).scene

    @property
    def standing(self) -> Standing | None:
        """The rating by the method that ranks the agents."""
        return self.likelihood or self.agi_elo


@dataclass(frozen=True)
class Swap:
    """Two neighbours by AGI-Elo that change places in a share of the shuffles, so that their order is partly chance."""

    upper: str
    lower: str
    share: float


@dataclass(frozen=True)
class MethodCheck:
    """The quality of one method's ratings.

    Attributes:
        method: "likelihood" or "agi_elo".
        fidelity: the paper's Table 2 on the matches the ratings were made from.
        held_out: a fifth of the matches predicted by ratings made without them; None if there are too few.
    """

    method: str
    fidelity: Diagnostics
    held_out: HeldOut | None


@dataclass(frozen=True)
class Snapshot:
    """A leaderboard at one moment, a function of the record's content alone.

    Attributes:
        name: of the leaderboard.
        method: rule of the ranks, one sentence.
        merton_version, schema_version: of the code that took it, and of the record's schema.
        inputs_sha256: of everything in the record that counts, in any order; wall times are left out.
        experiments, sources: names of the experiments and of the imported matrices in it.
        window: day that began the window whose submissions are in it; empty if the record has none.
        agents: by rank; the unrated last, by id.
        cases: by id.
        matches: (index into agents, index into cases, score 0..1), sorted.
        boards: groups of cases side by side.
        swaps: neighbours whose order the shuffles of AGI-Elo disagree on, best first.
        shuffles, seed: of AGI-Elo.
        case_spread, dispersion: of the likelihood fit; None without one.
        chance_floor: mean execution score of doing nothing under distortion, 0..100.
        warnings: caveats for the reader, one sentence each.
        diagnostics: one check a method.
        metric: of `merton.results.metrics`, by which the trials are rated.
        rated_by: all scores that are rated, in words (`Inputs.rated_by`).
    """

    name: str
    method: str
    merton_version: str
    schema_version: int
    inputs_sha256: str
    experiments: tuple[str, ...]
    sources: tuple[str, ...]
    agents: tuple[AgentRow, ...]
    cases: tuple[CaseRow, ...]
    matches: tuple[tuple[int, int, float], ...]
    boards: tuple[Board, ...]
    swaps: tuple[Swap, ...]
    shuffles: int
    seed: int
    case_spread: float | None
    dispersion: float | None
    chance_floor: float | None
    warnings: tuple[str, ...]
    diagnostics: tuple[MethodCheck, ...]
    window: str = ""
    metric: str = DEFAULT_METRIC
    rated_by: str = ""

    @property
    def has_trials(self) -> bool:
        """Whether some agent has trials; else all scores are imported or submitted."""
        return any(row.trials or row.infrastructure for row in self.agents)

    @property
    def shows_drop(self) -> bool:
        """Whether the drop is a column: some agent has one, or has trials, so that its absence is worth a reason."""
        return any(row.drop or row.trials or row.infrastructure for row in self.agents)

    @property
    def shows_score(self) -> bool:
        """Whether the mean score is a column: where it is no success of trials, as that of imported cases."""
        return self.metric != DEFAULT_METRIC or any(row.matches and not row.drop for row in self.agents)
