"""The likelihood fit: recovers the ratings behind the scores, its intervals cover them, and its invariants hold."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping

import numpy as np
import pytest
from scipy.optimize import minimize

from merton.errors import InputError
from merton.rating import integration
from merton.rating.agi_elo import rate
from merton.rating.checking import Match, Q, table_of
from merton.rating.likelihood import MOST_CASE_SPREAD, WIDEST, Estimate, fit


def simulated(
    n_agents: int, n_cases: int, seed: int, *, partial: float | None = None, missing: float = 0.0
) -> tuple[np.ndarray, np.ndarray, list[Match]]:
    """Skills, hardnesses (250 Elo points apart) and matches; `partial`: scores between 0 and 1, more scatters less."""
    draw = np.random.default_rng(seed)
    skill, hardness = draw.normal(0, 250, n_agents), draw.normal(0, 250, n_cases)
    chance = 1 / (1 + 10 ** ((hardness - skill[:, None]) / 400))
    scores = (
        draw.random(chance.shape) < chance if partial is None else draw.beta(partial * chance, partial * (1 - chance))
    )
    keep = draw.random(chance.shape) >= missing
    return (
        skill,
        hardness,
        [(f"agent {a:02}", f"case {c:05}", float(scores[a, c])) for a, c in zip(*np.nonzero(keep), strict=True)],
    )


def error(found: list[float], truth: np.ndarray) -> float:
    """Root mean square error after both are centred, Elo points."""
    values = np.array(found)
    return float(np.sqrt(np.mean(((values - values.mean()) - (truth - truth.mean())) ** 2)))


def covered(truths: np.ndarray, found: Mapping[str, Estimate]) -> list[bool]:
    """Whether each 95 % interval holds the truth; `truths` in the order of the sorted names, around 1500."""
    intervals = [found[name].interval for name in sorted(found)]
    known = [(truth, interval) for truth, interval in zip(truths, intervals, strict=True) if interval is not None]
    return [low <= 1500 + truth <= high for truth, (low, high) in known]


def agent_means(ratings) -> list[float]:
    return [ratings.agents[name].mean for name in sorted(ratings.agents)]


@pytest.mark.parametrize(("partial", "missing"), [(None, 0.0), (10.0, 0.0), (None, 0.7)])
def test_skill_is_recovered_better_than_by_agi_elo(partial: float | None, missing: float) -> None:
    ours, theirs = [], []
    for seed in range(3):
        skill, _, played = simulated(10, 2000, seed, partial=partial, missing=missing)
        ours.append(error(agent_means(fit(played)), skill))
        theirs.append(error(agent_means(rate(played)), skill))
    assert np.mean(ours) < np.mean(theirs)
    assert np.mean(ours) < 12.0 + 20.0 * missing


def test_the_spread_of_cases_and_the_dispersion_are_recovered() -> None:
    coins = fit(simulated(10, 2000, 5)[2])
    assert coins.dispersion == 1.0
    assert coins.case_spread == pytest.approx(250.0, rel=0.08)
    # the variance of a beta distribution of concentration k is P (1 - P) / (k + 1)
    partial = fit(simulated(10, 2000, 5, partial=9.0)[2])
    assert partial.dispersion == pytest.approx(0.1, rel=0.1)
    assert partial.case_spread == pytest.approx(250.0, rel=0.08)


def test_intervals_cover_the_truth() -> None:
    """95 % intervals, over 20 studies of 6 agents and 300 cases; 120 agents and 6000 cases in all."""
    agents, cases = [], []
    for seed in range(20):
        skill, hardness, played = simulated(6, 300, 100 + seed)
        found = fit(played)
        agents += covered(skill, found.agents)
        cases += covered(hardness, found.cases)
    assert 0.89 <= np.mean(agents) <= 0.99
    assert 0.93 <= np.mean(cases) <= 0.97


@pytest.mark.parametrize(("n_agents", "n_cases", "partial"), [(2, 10, None), (3, 6, None), (4, 8, 9.0), (10, 30, 9.0)])
def test_small_studies_give_ratings_that_can_be_believed(n_agents: int, n_cases: int, partial: float | None) -> None:
    """60 studies each: no rating runs away with a spread that nothing tells, and 95 % intervals hold the truth.

    Without an assumption on the spread, two agents on ten cases came out at 1500 ± 11,600.
    """
    agents, cases = [], []
    for seed in range(60):
        skill, hardness, played = simulated(n_agents, n_cases, 300 + seed, partial=partial)
        found = fit(played)
        assert max(abs(item.mean - 1500) for item in found.agents.values()) < 1300
        agents += covered(skill, found.agents)
        cases += covered(hardness, found.cases)
    assert np.mean(agents) >= 0.88
    assert 0.94 <= np.mean(cases) <= 0.98


def test_it_is_the_maximum_of_the_marginal_likelihood() -> None:
    """Against a slow transcription: every case summed over a fixed fine grid, maximised without derivatives.

    With the assumption on the cases' spread: two more cases, one log-odd from the mean.
    """
    played = simulated(3, 60, 7)[2]
    names = sorted({agent for agent, _, _ in played})
    scores = np.array([[score for agent, _, score in played if agent == name] for name in names])
    grid = np.linspace(-8, 8, 801)

    def loss(parameters: np.ndarray) -> float:
        skill, spread = parameters[:3], np.exp(parameters[3])
        gap = skill[:, None] - spread * grid
        log_p = -np.log1p(np.exp(-gap))
        likelihood = np.exp(scores.T @ log_p + (1 - scores).T @ (log_p - gap))
        density = np.exp(-0.5 * grid**2) / np.sqrt(2 * np.pi) * (grid[1] - grid[0])
        assumed = 2 * (np.log(spread) + 0.5 / spread**2)
        return float(assumed - np.sum(np.log(likelihood @ density)))

    best = minimize(loss, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10, "maxiter": 4000})
    found = fit(played)
    assert agent_means(found) == pytest.approx(list(1500 + best.x[:3] / Q), abs=0.2)
    assert found.case_spread == pytest.approx(np.exp(best.x[3]) / Q, abs=0.5)


def test_a_spread_that_the_matches_leave_open_does_not_run_away() -> None:
    """Three agents that lose few of sixty matches: the extrapolated spread of the cases came to 1e209."""
    draw = np.random.default_rng([332, 3, 60])
    skill, hardness = draw.normal(400, 200, 3), draw.normal(0, 250, 60)
    won = draw.random((3, 60)) < 1 / (1 + 10 ** ((hardness - skill[:, None]) / 400))
    found = fit([(f"agent {a}", f"case {c:02}", float(won[a, c])) for a in range(3) for c in range(60)])
    assert found.case_spread < 5000.0
    assert all(np.isfinite(item.deviation) for item in found.agents.values())


@pytest.mark.parametrize("seed", [0, 2, 3, 5, 6])
def test_ratings_of_agents_that_agree_are_open(seed: int) -> None:
    """Two agents that do the same scenes, but for 2 % of trials: ratings of 3,000 to 7,000, or endless ones."""
    draw = np.random.default_rng(seed)
    won = np.repeat(draw.random(36) < 0.86, 3) != (draw.random((2, 108)) < 0.02)
    names = [f"{case:03}" for case in range(108)] * 2
    table = table_of(["a"] * 108 + ["b"] * 108, names, won.ravel().astype(float), {name: name[:-1] for name in names})
    fitted = fit(table)
    assert fitted.is_open
    assert all(np.isfinite([one.mean, one.deviation]).all() for one in fitted.agents.values())
    assert fitted.case_spread > MOST_CASE_SPREAD or max(fitted.agents[name].width for name in "ab") > WIDEST


def test_an_agent_with_few_matches_does_not_take_the_ratings_of_all() -> None:
    """It met three trials of two scenes: its interval says nothing, and a sentence says so."""
    draw = np.random.default_rng(4)
    hard = np.repeat(draw.normal(0, 250, 20), 3)
    matches = [
        (f"agent {place}", f"{case:02}", float(draw.random() < 1 / (1 + 10 ** ((one - 100 * place) / 400))))
        for place in range(5)
        for case, one in enumerate(hard)
    ]
    matches += [("scanty", "00", 1.0), ("scanty", "01", 1.0), ("scanty", "03", 0.0)]
    agents, cases, scores = zip(*matches, strict=True)
    fitted = fit(table_of(agents, cases, scores, {case: f"{int(case) // 3}" for case in cases}))
    assert fitted.wide == ["scanty"]
    assert not fitted.is_open
    assert any("wider than 2000 points for scanty" in text for text in fitted.warnings)


def test_a_spread_that_is_largely_assumed_has_a_sentence() -> None:
    few = fit(
        [(agent, f"{case}", float(won)) for case in range(12) for agent, won in (("a", case % 2), ("b", case > 5))]
    )
    assert few.spread_freedom < 3.0
    assert not few.is_open
    assert any("degrees of freedom): it is largely assumed" in text for text in few.warnings)
    many = fit([(agent, f"{case}", float(case % 7 > turn)) for turn, agent in enumerate("abcde") for case in range(84)])
    assert many.spread_freedom > 3.0
    assert not any("largely assumed" in text for text in many.warnings)


def test_storage_order_has_no_influence() -> None:
    played = simulated(4, 60, 1, partial=3.0)[2]
    shuffled = played[:]
    random.Random(3).shuffle(shuffled)
    assert fit(shuffled) == fit(played)


@pytest.mark.parametrize("partial", [None, 9.0])
def test_the_number_of_threads_and_the_blocks_change_no_bit(
    partial: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases are integrated out by several threads, but sums are taken in the order of the matches."""
    _, _, matches = simulated(6, 90, 3, partial=partial, missing=0.3)
    expected = fit(matches)
    monkeypatch.setattr(integration, "LEAST_MATCHES", 0)
    for cores, block in ((1, 10), (2, 1), (2, 50), (3, 200), (7, 10**6)):
        monkeypatch.setattr(integration, "BLOCK", block)
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        assert fit(matches) == expected


def test_renaming_agents_renames_ratings() -> None:
    played = simulated(4, 80, 2)[2]
    new = {"agent 00": "z", "agent 01": "b", "agent 02": "q", "agent 03": "a"}
    plain, renamed = fit(played), fit([(new[agent], case, score) for agent, case, score in played])
    for old, name in new.items():
        assert renamed.agents[name].mean == pytest.approx(plain.agents[old].mean, abs=1e-6)
        assert renamed.agents[name].deviation == pytest.approx(plain.agents[old].deviation, abs=1e-6)


def test_turning_the_scores_around_turns_the_ratings_around() -> None:
    played = simulated(4, 80, 3, partial=4.0)[2]
    plain, turned = fit(played), fit([(agent, case, 1.0 - score) for agent, case, score in played])
    for name, estimate in plain.agents.items():
        assert turned.agents[name].mean - 1500 == pytest.approx(1500 - estimate.mean, abs=0.01)


def test_few_matches_or_equal_scores_are_no_certainty() -> None:
    played = simulated(4, 40, 3, partial=8.0)[2]
    case = [name for _, name, _ in played]
    known = fit([*played, ("once", case[0], 0.7), *(("flat", name, 0.6) for name in case[:3])]).agents
    usual = np.mean([known[name].deviation for name in known if name.startswith("agent")])
    assert known["once"].deviation > known["flat"].deviation > 1.5 * usual


def test_a_case_with_twice_the_matches_has_a_smaller_error() -> None:
    played = simulated(5, 40, 4)[2]
    once, twice = fit(played), fit(played + [match for match in played if match[1] == "case 00000"])
    assert twice.cases["case 00000"].deviation < once.cases["case 00000"].deviation
    assert twice.agents["agent 00"].matches == 41


def test_extremes_are_bounds_with_a_warning() -> None:
    _, _, played = simulated(3, 50, 5)
    won = [("zenith", case, 1.0) for case in sorted({case for _, case, _ in played})]
    lost = [("nadir", case, 0.0) for _, case, _ in won]
    found = fit([*played, *won, *lost])
    assert found.agents["zenith"].flag == "only wins"
    assert found.agents["nadir"].flag == "only losses"
    order = sorted(found.agents, key=lambda name: found.agents[name].mean)
    assert (order[0], order[-1]) == ("nadir", "zenith")
    assert all(
        np.isfinite([item.mean, item.deviation]).all() for item in (*found.agents.values(), *found.cases.values())
    )
    assert any(text.startswith("Full score on every case: zenith (1 of ") for text in found.warnings)
    assert all(np.isfinite(agent_means(fit([("a", "x", 1.0), ("b", "x", 0.0)]))))


def test_an_agent_without_a_loss_is_not_below_one_with_a_small_loss() -> None:
    """As in the quickstart: one agent loses less in all its matches together than half a point."""
    draw = np.random.default_rng(4)
    played = [(agent, f"c{c:03}", score) for c in range(120) for agent, score in (("all", 1.0), ("none", 0.0))]
    played += [("nearly", f"c{c:03}", 0.6 if c == 7 else 1.0) for c in range(120)]
    played += [("hardly", f"c{c:03}", 0.4 if c == 7 else 0.0) for c in range(120)]
    played += [("middling", f"c{c:03}", float(draw.beta(6, 2))) for c in range(120)]
    agents = fit(played).agents
    means = [agents[name].mean for name in ("all", "nearly", "middling", "hardly", "none")]
    assert means == sorted(means, reverse=True)
    assert all(upper - lower > 50.0 for upper, lower in itertools.pairwise(means))


@pytest.mark.parametrize("cases", [12, 120])
def test_the_fit_converges_with_few_data_on_the_cases(cases: int) -> None:
    """Few agents with scores that hardly differ from case to case: plain EM needs some 500 steps."""
    draw = np.random.default_rng(cases)
    played = [
        (f"a{a}", f"c{c:03}", float(np.clip(level + draw.normal(0, 0.03), 0, 1)))
        for a, level in enumerate((0.95, 0.9, 0.7))
        for c in range(cases)
    ]
    assert not any("arrived" in warning for warning in fit(played).warnings)


def test_groups_that_never_met_have_a_warning() -> None:
    apart = fit([("a", "x", 0.5), ("a", "y", 0.6), ("b", "z", 0.5), ("b", "w", 0.2)])
    assert any("2 groups that never met" in text for text in apart.warnings)


@pytest.mark.parametrize("floor", [0.0, 0.25])
def test_a_guessing_floor_has_a_warning(floor: float) -> None:
    """Four choices to guess from, or none, three studies each: said every time, or never."""
    for seed in range(3):
        played, draw = simulated(20, 1000, 20 + seed)[2], np.random.default_rng(seed)
        guessed = [(agent, case, max(score, float(draw.random() < floor))) for agent, case, score in played]
        assert any("guessing floor" in text for text in fit(guessed).warnings) is bool(floor)


def test_identical_scores_are_no_reason_to_fail() -> None:
    same = fit([(agent, case, 0.5) for agent in "abc" for case in "uvwxyz"])
    assert agent_means(same) == pytest.approx([1500.0] * 3, abs=1e-3)
    assert any("how much cases differ is largely assumed" in text for text in same.warnings)
    assert not any("largely assumed" in text for text in fit(simulated(4, 40, 1)[2]).warnings)


@pytest.mark.parametrize("played", [[], [("a", "x", 0.5), ("a", "y", 0.1)]])
def test_fewer_than_two_agents_are_refused(played: list[Match]) -> None:
    with pytest.raises(InputError, match="2 to 4000 agents"):
        fit(played)


def test_bad_scores_are_refused() -> None:
    with pytest.raises(InputError, match="score of match 1"):
        fit([("a", "x", 0.5), ("b", "x", float("nan"))])


def in_scenes(n_scenes: int, seed: int, views: int = 20) -> tuple[np.ndarray, list[Match], dict[str, str]]:
    """Skills of 4 agents, matches on scenes that are seen through 20 views each, and the scene of every case."""
    draw = np.random.default_rng(seed)
    skill = draw.normal(0, 250, 4)
    hardness = np.add.outer(draw.normal(0, 200, n_scenes), draw.normal(0, 150, views))
    won = draw.random((4, n_scenes, views)) < 1 / (1 + 10 ** ((hardness - skill[:, None, None]) / 400))
    played = [(f"agent {a}", f"s{s:02}.{v}", float(won[a, s, v])) for a, s, v in np.ndindex(won.shape)]
    return skill, played, {case: case.split(".")[0] for _, case, _ in played}


def test_views_of_one_scene_are_one_piece_of_evidence() -> None:
    """The same matches with and without their scenes: the same ratings, and intervals as wide as scenes make them."""
    _, played, scene_of = in_scenes(8, 1)
    apart, together = fit(played), fit(table_of(*zip(*played, strict=True), scene_of))
    for name, own in together.agents.items():
        assert own.mean == pytest.approx(apart.agents[name].mean)
    widths = [np.mean([np.ptp(item.interval) for item in found.agents.values()]) for found in (apart, together)]
    assert widths[1] > 1.4 * widths[0]
    assert (apart.scenes, together.scenes) == (160, 8)
    assert any("8 scenes (160 test cases)" in text for text in together.warnings)
    alone = {case: case for _, case, _ in played}
    assert fit(table_of(*zip(*played, strict=True), alone)).agents == apart.agents, "a scene of one case is that case"


def test_intervals_from_few_scenes_cover_the_truth() -> None:
    """30 studies of 6 scenes: 120 agents. intervals, by scene and by case."""
    held: dict[str, list[bool]] = {"scene": [], "case": []}
    for seed in range(30):
        skill, played, scene_of = in_scenes(6, 100 + seed)
        for name, scenes in (("scene", scene_of), ("case", {})):
            held[name] += covered(skill, fit(table_of(*zip(*played, strict=True), scenes)).agents)
    assert 0.89 <= np.mean(held["scene"]) <= 0.99
    assert np.mean(held["case"]) < 0.8


def test_one_scene_gives_ratings_without_intervals() -> None:
    _, played, scene_of = in_scenes(1, 3)
    found = fit(table_of(*zip(*played, strict=True), scene_of))
    assert all(item.interval is None for item in (*found.agents.values(), *found.cases.values()))
    assert any("of one scene" in text for text in found.warnings)
