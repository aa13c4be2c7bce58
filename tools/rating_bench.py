"""Matches per second of the rating methods, from 1e4 to 1e7 matches, and beside their peers; part of tools/bench.py.

Every study is 20 agents against as many cases as it takes. Peers are measured where they are installed; those in plain
Python on fewer matches, since their speed does not depend on how many there are.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.rating import agi_elo, glicko, likelihood
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
            """What `rate` does for its shuffles."""
            return agi_elo.shuffled_passes(matches, AGENTS, n_cases, 0, SHUFFLES)

        result["curve"][str(n)] = {
            "update_per_s": n / seconds(update),
            "with_shuffle_per_s": SHUFFLES * n / seconds(passes),
        }
    quickstart = [(f"a{i % 3}", f"c{i // 3}", (i * 7919 % 101) / 100) for i in range(372)]
    result["quickstart_20_shuffles_ms"] = 1e3 * seconds(lambda: agi_elo.rate(quickstart, 0))
    result["quickstart_likelihood_ms"] = 1e3 * seconds(lambda: likelihood.fit(quickstart))

    study = Study(PEER_CASES)
    named = [(f"a{a}", f"c{c}", s) for a, c, s in zip(study.agents, study.cases, study.scores.tolist(), strict=True)]
    result["likelihood_per_s"] = len(named) / seconds(lambda: likelihood.fit(named), 1)
    for name, peer in (("elote", elote), ("riix", riix), ("glicko2", glicko2), ("girth", girth)):
        try:
            result[f"{name}_per_s"] = peer(study)
        except ImportError as error:
            result[f"{name}_per_s"] = f"skipped: {error}"
    return result


def seconds(work: Callable[[], Any], repetitions: int = 3) -> float:
    """Median time of one call [s], after one call to warm up."""
    work()
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def elote(study: Study) -> float:
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

    return FEW / seconds(play, 1)


def riix(study: Study) -> float:
    """Its Glicko, one match after the other within one period."""
    from riix.models.glicko import Glicko

    agents, cases, scores = (part[:FEW] for part in study.shuffled())
    matchups = np.stack([agents, AGENTS + cases], axis=1)

    def play() -> None:
        rated = Glicko(list(range(AGENTS + study.n_cases)), c=0.0)
        rated.iterative_update(matchups, scores, 0)

    return FEW / seconds(play, 1)


def glicko2(study: Study) -> float:
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

    return FEW / seconds(play, 1)


def girth(study: Study) -> float:
    """Its marginal fit of the same model; agents are what it calls items. It gives no standard errors and no cases."""
    from girth import onepl_mml

    won = study.won.astype(int)
    return won.size / seconds(lambda: onepl_mml(won), 1)
