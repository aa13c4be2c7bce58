"""The rules of choice of `tools/gate_choice.py`: weights keep the number that is estimated, and its errors."""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np
import pytest

from merton.results.records import TestCase
from merton.statistics.sequential import Verdict

LIMIT = 0.05
"""The loss that is looked for, as in the tool."""


@pytest.fixture
def choice() -> ModuleType:
    return importlib.import_module("gate_choice")


def pool() -> tuple[list[TestCase], np.ndarray]:
    """240 scenes in which the agents differ at levels 4 and 5 alone, and nearly all are won."""
    cases = [TestCase(("pick", "push")[n % 2], n, "jpeg" if n % 6 else "reference", n % 6) for n in range(240)]
    found = np.ones((240, 2))
    for number, case in enumerate(cases):
        if case.level >= 4 and number % 5 < 2:
            found[number, number % 5] = 0.0
    return cases, found


def test_of_studies_whose_loss_is_the_limit_few_have_a_verdict_whatever_the_rule(choice: ModuleType) -> None:
    cases, found = pool()
    lost = choice.planted(cases, found, LIMIT, "levels")
    assert (lost * found.mean(axis=1)).mean() == pytest.approx(LIMIT)
    rules = choice.rules(choice.groups(cases), found, np.abs(found[:, 0] - found[:, 1]))
    for name in ("level learned", "recorded failures", "all known"):
        verdicts = [choice.study(found, lost, rules[name], 300, np.random.default_rng(seed))[1] for seed in range(40)]
        assert sum(verdict is not Verdict.UNRESOLVED for verdict in verdicts) <= 4, name


def test_known_levels_end_a_comparison_earlier_if_agents_differ_at_few_of_them(choice: ModuleType) -> None:
    cases, found = pool()
    by = choice.groups(cases)
    rules = choice.rules(by, found, np.abs(found[:, 0] - found[:, 1]))
    means = {}
    for name in ("drawn", "level known"):
        ends = [
            choice.study(found, np.zeros(240), rules[name], 2000, np.random.default_rng(seed)) for seed in range(40)
        ]
        assert {verdict for _, verdict in ends} == {Verdict.NOT_WORSE}
        means[name] = np.mean([scenes for scenes, _ in ends])
    assert means["level known"] < 0.8 * means["drawn"]
