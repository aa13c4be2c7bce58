"""Pairs of agents, variance components and plans: laws, values by hand, and what simulations give."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import plan_power
import pytest
from scipy import stats
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.study import pairs
from merton.study.pairs import all_pairs, compare_agents, sign_flip_p
from merton.study.power import (
    ASSUMED,
    ASSUMED_RANGE,
    ExperimentSize,
    Quantity,
    SceneScatter,
    estimate_range,
    power,
    resolvable,
    scatter_of,
    scenes_needed,
)
from merton.study.values import VALUES, success
from merton.study.variance import (
    Components,
    PairedComponents,
    components,
    equal_agents,
    left_out_sentences,
    paired_components,
)

QUICKSTART = Path(__file__).parents[3] / "config" / "experiments" / "quickstart.yaml"
KINDS = ("reference", "jpeg")
CELLS = [(scene, view) for scene in range(12) for view in range(6)]
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
    assert components(records[:1], lambda record: record.decision) is None


def test_agents_without_variance_stay_out() -> None:
    """Two that never and always win change nothing, however many their trials; one is no pair to plan with."""
    records = simulated(12, 6, 0.2, 0.1, 0)
    floor = [trial(name, scene, view, name == "always") for name in ("always", "never") for scene, view in CELLS]
    assert equal_agents([*records, *floor], success) == ("always", "never")
    assert components([*records, *floor], success) == components(records, success)
    assert paired_components([*records, *floor], success) == paired_components(records, success)
    assert components(floor, success) is None
    assert paired_components([item for item in records if item.agent == "a"] + floor, success) is None
    assert left_out_sentences({"success": ("never", "always"), "decision": ("never",)}) == [
        "Left out, all distorted trials alike: never (success, decision).",
        "Left out, all distorted trials alike: always (success).",
    ]


def test_what_two_agents_share_in_a_case_is_no_residual() -> None:
    """Cases that are won or lost by both: nothing is left between agents, and a drop has the scenes' scatter alone."""
    draw = np.random.default_rng(6)
    won = draw.random((40, 6)) < draw.uniform(0.2, 0.8, (40, 1))
    records = [
        trial(agent, scene, view, bool(won[scene, view])) for agent in "ab" for scene, view in np.ndindex(won.shape)
    ]
    for record in list(records):
        clean = replace(record.case, distortion="reference", level=0)
        records.append(replace(record, case=clean, outcome=Outcome.SUCCESS))
    own = replace(records[0], agent="b", outcome=Outcome.FAILURE if won[0, 0] else Outcome.SUCCESS)
    found = paired_components([*records, own][1:], success)
    assert found is not None
    assert found.agent_scene + found.residual < 0.01
    assert found.undistorted_agent_scene == pytest.approx(0.0, abs=1e-9)
    assert found.scene == pytest.approx(np.var(won.mean(axis=1), ddof=1), rel=0.05)


def test_trials_of_few_scenes_weigh_little() -> None:
    parts = Components(0.0, 0.05, 0.05, 0.0, 0.0, 0.1)
    assert parts.independent_trials(132, 4) == pytest.approx(0.2 / (0.1 / 4 + 0.1 / 132))
    assert parts.independent_trials(30, 30) == pytest.approx(30.0)


def test_power_is_that_of_the_t_test_and_its_inverses_agree() -> None:
    """Origin: Cohen (1988), table 2.3.5 (paired, d = .5, n = 34, two-sided .05): power .81."""
    unit = SceneScatter(1.0, 1.0)
    assert power(0.5, 34, unit) == pytest.approx(0.81, abs=0.005)
    of_run = scatter_of(Quantity.DIFFERENCE, PairedComponents(0.03, 0.07, 0.02), 30)
    assert of_run is not None
    assert (of_run.scene, of_run.trial) == pytest.approx((2 * (0.03 + 0.07 / 30), 2 * (0.03 + 0.07)))
    rising = [power(difference, 10, of_run) for difference in np.linspace(0.0, 1.0, 40)]
    assert rising == sorted(rising)
    assert rising[-1] == pytest.approx(1.0, abs=1e-3)
    needed = scenes_needed(0.1, of_run)
    assert needed is not None
    assert power(0.1, needed - 1, of_run) < 0.8 <= power(0.1, needed, of_run)
    least = resolvable(needed, of_run)
    assert least is not None
    assert power(least, needed, of_run) == pytest.approx(0.8, abs=1e-4)
    assert least <= 0.1
    assert resolvable(1, of_run) is None, "one scene resolves nothing"
    assert scenes_needed(1e-6, of_run) is None


def test_a_scatter_by_hand() -> None:
    """Undistorted trials do not average out; what a scene shares cancels between agents, and between both trials."""
    parts = PairedComponents(0.02, 0.12, 0.05, 0.15, 0.04, 0.01, 0.03)
    drop = 0.02 + 0.12 / 6 + 0.15 - 2 * 0.01
    found = [scatter_of(quantity, parts, 6) for quantity in Quantity]
    assert [one and one.scene for one in found] == pytest.approx([2 * 0.04, drop + 0.05 + 0.04 - 2 * 0.03, 2 * drop])
    assert scatter_of(Quantity.DROP, PairedComponents(0.02, 0.12, 0.05), 6) is None
    assert SceneScatter(0.2, 0.4).times(3.0, Quantity.DROP) == SceneScatter(0.5, 0.5)
    assert SceneScatter(0.3, 0.6).times(0.5, Quantity.DROP) == SceneScatter(0.15, 0.3)
    assert SceneScatter(0.6, 0.7).times(2.0, Quantity.DROP) == SceneScatter(0.6, 0.7), "an estimate above all bounds"


def test_an_estimate_of_few_scenes_may_be_far_off() -> None:
    """Origin: tables of chi square with 11 degrees of freedom, 3.816 and 21.920 (2.5 and 97.5 %)."""
    assert estimate_range(12, 2) == pytest.approx((11 / 21.920, 11 / 3.816), rel=1e-3)


@pytest.mark.parametrize("number", [0, 3, 6, 7])
def test_predicted_power_is_that_of_simulated_comparisons(number: int) -> None:
    """Within .1, give or take 3 standard errors; tools/studies/plan_power.py has the table of all designs."""
    design, studies = plan_power.DESIGNS[number], SIMULATED or 30
    large = plan_power.wins(design, 10_000, np.random.default_rng(1))
    parts = plan_power.measured((large[0][:, :300], large[1][:, :300]))
    runs = [plan_power.wins(design, design.scenes, np.random.default_rng(seed)) for seed in range(studies)]
    for quantity in Quantity:
        scatter = scatter_of(quantity, parts, design.views)
        assert scatter is not None
        size = float(plan_power.differences(quantity, large).mean())
        predicted = power(size, design.scenes, scatter)
        found = np.mean([plan_power.is_resolved(quantity, run) for run in runs])
        error = 3.0 * math.sqrt(predicted * (1.0 - predicted) / studies)
        assert found == pytest.approx(predicted, abs=0.1 + error), quantity


@pytest.mark.parametrize(("agent_scene", "residual"), [(0.048, 0.105), (0.016, 0.204), (0.016, 0.06), (0.008, 0.035)])
def test_the_range_holds_experiments_unlike_the_assumed_one(agent_scene: float, residual: float) -> None:
    """Agents that differ three times as much by scene, one view of coins, near the floor and near the ceiling."""
    scatter = scatter_of(Quantity.DIFFERENCE, ASSUMED["success"], 6)
    other = scatter_of(Quantity.DIFFERENCE, PairedComponents(agent_scene, residual, 0.02), 6)
    assert scatter is not None
    assert other is not None
    low, high = (scatter.times(factor, Quantity.DIFFERENCE) for factor in ASSUMED_RANGE)
    assert low.scene < other.scene < high.scene
    assert power(0.1, 60, high) < power(0.1, 60, other) < power(0.1, 60, low)


def test_a_design_counts_distorted_scenes_and_others() -> None:
    cases = [TestCase("pick", scene, "reference", 0) for scene in range(3)]
    cases += [TestCase("pick", 0, "jpeg", level) for level in (1, 2)]
    design = ExperimentSize.of(cases, 4)
    assert design == ExperimentSize(4, 20, 1, 2, 2.0, 1.0, 2)
    assert design.trials_with(1) == 20
    assert design.trials_with(5) == 4 * (5 * 3 + 2)
    shared = [TestCase(task, 0, kind, int(kind == "jpeg")) for task in ("test-pick", "test-push") for kind in KINDS]
    two = ExperimentSize.of(shared, 1)
    assert (two.scenes, two.references, two.trials_with(1), two.trials) == (1, 2.0, 4, 4)
    with pytest.raises(InputError, match="distorts nothing"):
        ExperimentSize.of(cases[:3], 4)


def test_plan_on_the_command_line(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["plan", str(QUICKSTART)])
    assert shown.exit_code == 0, shown.output
    assert "4 agents, 4 tasks x 4 scenes (12 different), 96 distorted trials each:" in shown.output
    assert [line for line in shown.output.splitlines() if line in {quantity.value for quantity in Quantity}] == [
        quantity.value for quantity in Quantity
    ]
    assert shown.output.count("success: 12 scenes resolve") == 3
    assert shown.output.count("decision: 12 scenes resolve") == 1, "undistorted trials have no decision score"
    assert "448 trials" in shown.output
    assert "assumed" in shown.output
    run = tmp_path / "run"
    with ResultStore(run / "results.sqlite") as store:
        floor = [trial("hold", scene, view, False) for scene in range(8) for view in range(6)]
        store.record_all([*simulated(8, 6, 0.2, 0.1, 0), *floor])
    measured = CliRunner().invoke(app, ["plan", str(QUICKSTART), "--from", str(run), "--points", "5"])
    assert measured.exit_code == 0, measured.output
    assert "5 points need" in measured.output
    assert f"of {run}, 8 scenes" in " ".join(measured.output.split())
    assert "alike: hold (success)." in measured.output
    assert list(VALUES) == ["success", "progress", "decision", "execution"]
