"""Matches per second of the rating methods, from 1e4 to 1e7 matches, and beside their peers; part of bench.py.

"from indices" means arrays of integers, "from names" a list of (agent, case, score) or what a peer takes instead.
Every study is 20 agents against as many cases as it takes. Peers are measured where they are installed; those in plain
Python on fewer matches, since their speed does not depend on how many there are.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from timing import cpu_seconds, seconds

from merton.rating import agi_elo, checking, glicko, likelihood
from merton.seeding import generator

AGENTS = 20
CURVE = (10_000, 100_000, 1_000_000, 10_000_000)
SHUFFLES = 4
PEER_CASES = 50_000
FEW = 20_000
"""Matches for peers in plain Python."""


class Study:
    """Simulated wins and losses of 20 agents on `n_cases` cases; skills and hardnesses scatter by 250 points."""

    def __init__(self, n_cases: int) -> None:
        draw = np.random.default_rng(0)
        skill, hardness = draw.normal(0, 250, AGENTS), draw.normal(0, 250, n_cases)
        self.won = draw.random((AGENTS, n_cases)) < 1 / (1 + 10 ** ((hardness - skill[:, None]) / 400))
        self.agents = np.repeat(np.arange(AGENTS), n_cases)
        self.cases = np.tile(np.arange(n_cases), AGENTS)
        self.scores = self.won.ravel().astype(float)
        self.n_cases = n_cases

    def shuffled(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Agents, cases and scores in a random order."""
        order = generator("bench").permutation(len(self.scores))
        return self.agents[order], self.cases[order], self.scores[order]


def ratings() -> dict[str, Any]:
    """Matches per second: one pass in the order given; passes with their shuffles, threads together; the fit; peers."""
    result: dict[str, Any] = {"load": os.getloadavg()[0], "curve": {}}
    for n in CURVE:
        study = Study(n // AGENTS)
        given = study.shuffled()
        packed = glicko.packed(study.agents, study.cases, study.scores)

        def update(matches: tuple[Any, ...] = given, n_cases: int = study.n_cases) -> Any:
            return glicko.update(*matches, n_agents=AGENTS, n_cases=n_cases)

        def passes(matches: NDArray[np.void] = packed, n_cases: int = study.n_cases) -> Any:
            """The passes that `rate` makes for its shuffles."""
            return agi_elo.shuffled_passes(matches, AGENTS, n_cases, 0, SHUFFLES)

        result["curve"][str(n)] = {
            "update_per_s": n / seconds(update, 3),
            "with_shuffle_per_s": SHUFFLES * n / seconds(passes, 3),
        }
    quickstart = [(f"a{i % 3}", f"c{i // 3}", (i * 7919 % 101) / 100) for i in range(372)]
    result["quickstart_20_shuffles_ms"] = 1e3 * seconds(lambda: agi_elo.rate(quickstart, 0), 3)
    result["quickstart_likelihood_ms"] = 1e3 * seconds(lambda: likelihood.fit(quickstart), 3)
    return result | from_names(Study(PEER_CASES))


def from_names(study: Study) -> dict[str, Any]:
    """A million matches from names on, and the peers, in processor time; the fit also by threads, in wall time."""
    agents, cases, scores = study.shuffled()
    named = [(f"a{a}", f"c{c}", s) for a, c, s in zip(agents.tolist(), cases.tolist(), scores.tolist(), strict=True)]
    n, sizes = len(named), {"n_agents": AGENTS, "n_cases": study.n_cases}

    def update() -> Any:
        return glicko.update(agents, cases, scores, **sizes)

    def named_update() -> Any:
        table = checking.as_table(named)
        return glicko.update(table.agents, table.cases, table.scores, **sizes)

    result: dict[str, Any] = {
        "update_from_indices_per_s": n / cpu_seconds(update, 5),
        "table_from_names_per_s": n / cpu_seconds(lambda: checking.as_table(named), 5),
        "update_from_names_per_s": n / cpu_seconds(named_update, 5),
    }
    table, cores = checking.as_table(named), sorted(os.sched_getaffinity(0))
    for threads in range(1, len(cores) + 1):
        os.sched_setaffinity(0, cores[:threads])  # the fit has as many threads as cores that it may use
        result[f"likelihood_{threads}_threads_per_s"] = n / seconds(lambda: likelihood.fit(table), 3)
    os.sched_setaffinity(0, cores)
    result["likelihood_from_names_per_s"] = n / seconds(lambda: likelihood.fit(named), 1)
    for name, peer in (("evalica", evalica), ("elote", elote), ("riix", riix), ("glicko2", glicko2), ("girth", girth)):
        try:
            result |= peer(study)
        except ImportError as error:
            result[f"{name}_per_s"] = f"skipped: {error}"
    for ours in ("from_indices", "from_names"):
        if f"evalica_{ours}_per_s" in result:
            theirs = result[f"evalica_{ours}_per_s"]
            result[f"update_{ours}_times_faster_than_evalica"] = result[f"update_{ours}_per_s"] / theirs
    return result


def evalica(study: Study) -> dict[str, float]:
    """Its Elo, in Rust: one pass in the order given, ratings without deviations, wins and losses only.

    "from indices" is its compiled function on numpy arrays, the fastest way in, which its documentation does not show.
    """
    import evalica as peer
    from evalica import _brzo

    agents, cases, scores = study.shuffled()
    one, other = [f"a{a}" for a in agents.tolist()], [f"c{c}" for c in cases.tolist()]
    winners = [peer.Winner.X if won else peer.Winner.Y for won in scores.tolist()]
    won = np.where(scores == 1.0, 1, 2).astype(np.uint8)
    left, right = agents.astype(np.uint64), (AGENTS + cases).astype(np.uint64)
    weights, n = np.ones(len(scores)), len(scores)

    def from_indices() -> Any:
        total = AGENTS + study.n_cases
        return _brzo.elo(left, right, won, weights, total, 1000.0, 10.0, 400.0, 4.0, 1.0, 0.5)

    return {
        "evalica_from_indices_per_s": n / cpu_seconds(from_indices, 5),
        "evalica_from_names_per_s": n / cpu_seconds(lambda: peer.elo(one, other, winners), 3),
    }


def elote(study: Study) -> dict[str, float]:
    """Its Glicko, all matches at one moment so that no deviation grows."""
    from elote import GlickoCompetitor

    now = datetime(2026, 1, 1)
    agents, cases, scores = (part[:FEW].tolist() for part in study.shuffled())

    def play() -> None:
        ours = [GlickoCompetitor(initial_time=now) for _ in range(AGENTS)]
        theirs = [GlickoCompetitor(initial_time=now) for _ in range(study.n_cases)]
        for agent, case, score in zip(agents, cases, scores, strict=True):
            one, other = ours[agent], theirs[case]
            (one.beat if score else one.lost_to)(other, match_time=now)

    return {"elote_per_s": FEW / seconds(play, 1)}


def riix(study: Study) -> dict[str, float]:
    """Its Glicko, one match after the other within one period."""
    from riix.models.glicko import Glicko

    agents, cases, scores = (part[:FEW] for part in study.shuffled())
    matchups = np.stack([agents, AGENTS + cases], axis=1)

    def play() -> None:
        rated = Glicko(list(range(AGENTS + study.n_cases)), c=0.0)
        rated.iterative_update(matchups, scores, 0)

    return {"riix_per_s": FEW / seconds(play, 1)}


def glicko2(study: Study) -> dict[str, float]:
    """Glicko-2, one opponent at a time, both sides from before the match."""
    from glicko2 import Player

    agents, cases, scores = (part[:FEW].tolist() for part in study.shuffled())

    def play() -> None:
        ours, theirs = [Player() for _ in range(AGENTS)], [Player() for _ in range(study.n_cases)]
        for agent, case, score in zip(agents, cases, scores, strict=True):
            one, other = ours[agent], theirs[case]
            before = one.rating, one.rd
            one.update_player([other.rating], [other.rd], [score])
            other.update_player([before[0]], [before[1]], [1.0 - score])

    return {"glicko2_per_s": FEW / seconds(play, 1)}


def girth(study: Study) -> dict[str, float]:
    """Its marginal fit of the same model; agents are what it calls items. It gives no standard errors and no cases."""
    from girth import onepl_mml

    won = study.won.astype(int)
    return {"girth_per_s": won.size / cpu_seconds(lambda: onepl_mml(won), 1)}
