"""Pairs of agents, variance components and plans: laws, values by hand, and what simulations give."""

from __future__ import annotations

import math
import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.study import pairs
from merton.study.pairs import all_pairs, compare_agents, sign_flip_p
from merton.study.power import ExperimentSize, power, resolvable, scenes_needed
from merton.study.values import VALUES, success
from merton.study.variance import Components, components

QUICKSTART = Path(__file__).parents[3] / "config" / "experiments" / "quickstart.yaml"
SIMULATED = int(os.environ.get("MERTON_POWER_STUDIES", "0"))


def trial(agent: str, scene: int, view: int, won: bool) -> TrialRecord:
    case = TestCase("pick", scene, f"noise{view % 3}", 1 + view // 3)
    return TrialRecord("study", agent, case, Outcome.SUCCESS if won else Outcome.FAILURE, decision=0.5)


def simulated(scenes: int, views: int, difference: float, of_pair: float, seed: int) -> list[TrialRecord]:
    """Trials of two agents; scenes are .15 apart, and `of_pair` more for either agent."""
    draw = np.random.default_rng(seed)
    found = []
    own = draw.normal(0.0, 0.15, scenes)
    for agent, sign in (("a", 0.5), ("b", -0.5)):
        chance = np.clip(0.6 + sign * difference + own + draw.normal(0.0, of_pair, scenes), 0.0, 1.0)
        wins = draw.random((scenes, views)) < chance[:, None]
        found += [trial(agent, scene, view, bool(wins[scene, view])) for scene, view in np.ndindex(wins.shape)]
    return found


def test_sign_flips_are_those_of_every_sign() -> None:
    """By enumeration, and against scipy's permutation test of one sample for many scenes."""
    draw = np.random.default_rng(2)
    for n in (1, 2, 5, 8):
        sums = draw.normal(0.5, 1.0, n)
        every = [abs(np.dot(signs, sums)) >= abs(sums.sum()) * (1 - 1e-9) for signs in product((-1, 1), repeat=n)]
        assert sign_flip_p(sums) == pytest.approx(np.mean(every))
    assert sign_flip_p(np.ones(4)) == 2 / 2**4
    assert sign_flip_p(np.zeros(4)) == 1.0
    many = draw.normal(0.4, 1.0, 40)
    assert sign_flip_p(many) == pytest.approx(stats.ttest_1samp(many, 0.0).pvalue, abs=0.01)
    assert sign_flip_p(many) == sign_flip_p(many)


def test_sign_flips_do_not_depend_on_how_many_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = np.random.default_rng(3).normal(0.2, 1.0, 50)
    found = []
    for signs in (1, 777, 10**7):  # one row of 50 at once, 15 rows, all 20,000
        monkeypatch.setattr(pairs, "_AT_ONCE", signs)
        found.append(sign_flip_p(sums))
    assert 0.0 < found[0] < 0.2
    assert len(set(found)) == 1


def test_a_pair_by_hand() -> None:
    """Two scenes of two cases: a wins 2 of 2 and 1 of 2, b none; b's third scene and a's fault have no partner."""
    records = [trial("a", 0, 0, True), trial("a", 0, 1, True), trial("a", 1, 0, True), trial("a", 1, 1, False)]
    records += [trial("b", scene, view, False) for scene in range(3) for view in range(2)]
    fault = TestCase("pick", 2, "noise0", 1)
    records.append(TrialRecord("study", "a", fault, Outcome.INFRASTRUCTURE))
    found = compare_agents(records, "a", "b", success)
    assert (found.difference, found.scenes, found.trials, found.p) == (0.75, 2, 4, 0.5)
    assert found.interval[0] < 0.75 < found.interval[1] <= 1.0
    turned = compare_agents(reversed(records), "b", "a", success)
    assert turned.difference == -0.75
    assert turned.interval == pytest.approx((-found.interval[1], -found.interval[0]))
    one = compare_agents([item for item in records if item.case.seed == 0], "a", "b", success)
    assert (one.interval, one.is_resolved) == ((-1.0, 1.0), False)
    assert [(pair.one, pair.other) for pair in all_pairs(records, success)] == [("a", "b")]
    with pytest.raises(InputError, match="no scored test case in common"):
        compare_agents(records, "a", "nobody-else", success)


def test_agents_that_never_differ_are_equal_within_what_unseen_scenes_allow() -> None:
    records = [trial(agent, scene, 0, True) for agent in "ab" for scene in range(30)]
    found = compare_agents(records, "a", "b", success)
    assert (found.difference, found.p, found.is_resolved) == (0.0, 1.0, False)
    assert found.interval == pytest.approx((-0.1135, 0.1135), abs=1e-4)


def test_components_are_recovered() -> None:
    """Planted variances of 6 agents, 20 scenes, 5 distortions, 4 levels, mean of 8 runs; any order, same numbers."""
    planted = Components(0.02, 0.03, 0.01, 0.006, 0.008, 0.04)
    draw = np.random.default_rng(4)
    found = []
    for _ in range(8):
        shape = (6, 20, 5, 4)
        parts = {
            (0,): planted.agent,
            (1,): planted.scene,
            (0, 1): planted.agent_scene,
            (2,): planted.distortion,
            (3,): planted.level,
        }
        values = draw.normal(0.5, math.sqrt(planted.residual), shape)
        for axes, variance in parts.items():
            values = values + draw.normal(
                0.0, math.sqrt(variance), [size if axis in axes else 1 for axis, size in enumerate(shape)]
            )
        records = [
            TrialRecord("r", f"a{a}", TestCase("pick", s, f"d{d}", v + 1), Outcome.FAILURE, decision=values[a, s, d, v])
            for a, s, d, v in np.ndindex(shape)
        ]
        found.append(components(records, lambda record: record.decision))
    assert components(records[::-1], lambda record: record.decision) == found[-1]
    means = {name: np.mean([getattr(own, name) for own in found]) for name in vars(planted)}
    assert means["scene"] == pytest.approx(planted.scene, rel=0.35)
    assert means["agent_scene"] == pytest.approx(planted.agent_scene, rel=0.2)
    assert means["residual"] == pytest.approx(planted.residual, rel=0.05)
    assert means["agent"] == pytest.approx(planted.agent, rel=0.7)
    once = components([item for item in records if item.case.id.endswith("d0.1")], lambda record: record.decision)
    assert once is not None
    assert (once.residual, once.agent_scene > 0.02) == (0.0, True), "seen once, all scatter may be the scene's"
    assert components(records[:1], success) is None


def test_trials_of_few_scenes_weigh_little() -> None:
    parts = Components(0.0, 0.05, 0.05, 0.0, 0.0, 0.1)
    assert parts.independent_trials(132, 4) == pytest.approx(0.2 / (0.1 / 4 + 0.1 / 132))
    assert parts.independent_trials(30, 30) == pytest.approx(30.0)


def test_power_is_that_of_the_t_test_and_its_inverses_agree() -> None:
    """Origin: Cohen (1988), table 2.3.5 (paired, d = .5, n = 34, two-sided .05): power .81."""
    parts = Components(0.0, 0.0, 0.5, 0.0, 0.0, 0.0)  # a scene's difference has variance 1
    assert power(0.5, 34, parts, 1) == pytest.approx(0.81, abs=0.005)
    assert power(0.0, 12, parts, 1) == pytest.approx(0.05)
    parts = Components(0.0, 0.02, 0.03, 0.0, 0.0, 0.07)
    rising = [power(difference, 10, parts, 30) for difference in np.linspace(0.0, 1.0, 40)]
    assert rising == sorted(rising)
    assert rising[-1] == pytest.approx(1.0)
    needed = scenes_needed(0.1, parts, 30)
    assert needed is not None
    assert power(0.1, needed - 1, parts, 30) < 0.8 <= power(0.1, needed, parts, 30)
    least = resolvable(needed, parts, 30)
    assert least is not None
    assert power(least, needed, parts, 30) == pytest.approx(0.8, abs=1e-4)
    assert least <= 0.1
    assert resolvable(1, parts, 30) is None, "one scene resolves nothing"
    assert scenes_needed(1e-6, parts, 30) is None


@pytest.mark.parametrize(
    ("scenes", "views", "difference", "of_pair"), [(4, 30, 0.2, 0.1), (12, 30, 0.1, 0.1), (20, 6, 0.12, 0.1)]
)
def test_predicted_power_is_that_of_simulated_comparisons(
    scenes: int, views: int, difference: float, of_pair: float
) -> None:
    """Within 3 points, give or take 3 standard errors; MERTON_POWER_STUDIES=4000 makes these .02 (minutes)."""
    studies = SIMULATED or 60
    parts = Components(0.0, 0.15**2, of_pair**2, 0.0, 0.0, 0.24 - 0.15**2 - of_pair**2 - difference**2 / 4)
    found = [
        compare_agents(simulated(scenes, views, difference, of_pair, seed), "a", "b", success).is_resolved
        for seed in range(studies)
    ]
    predicted = power(difference, scenes, parts, views)
    error = 3.0 * math.sqrt(predicted * (1.0 - predicted) / studies)
    assert np.mean(found) == pytest.approx(predicted, abs=0.03 + error)


def test_a_design_counts_distorted_scenes_and_others() -> None:
    cases = [TestCase("pick", scene, "reference", 0) for scene in range(3)]
    cases += [TestCase("pick", 0, "jpeg", level) for level in (1, 2)]
    design = ExperimentSize.of(cases, 4)
    assert design == ExperimentSize(4, 20, 1, 2, 2)
    assert design.trials_with(1) == 20
    assert design.trials_with(5) == 4 * (5 * 3 + 2)
    with pytest.raises(InputError, match="distorts nothing"):
        ExperimentSize.of(cases[:3], 4)


def test_plan_on_the_command_line(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["plan", str(QUICKSTART)])
    assert shown.exit_code == 0, shown.output
    assert "4 agents, 12 scenes of 8 distorted trials" in shown.output
    assert "448 trials" in shown.output
    assert "assumed" in shown.output
    run = tmp_path / "run"
    with ResultStore(run / "results.sqlite") as store:
        store.record_all(simulated(8, 6, 0.2, 0.1, 0))
    measured = CliRunner().invoke(app, ["plan", str(QUICKSTART), "--from", str(run), "--points", "5"])
    assert measured.exit_code == 0, measured.output
    assert "5 points need" in measured.output
    assert f"of {run}" in " ".join(measured.output.split())
    assert list(VALUES) == ["success", "progress", "decision", "execution"]
