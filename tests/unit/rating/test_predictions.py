"""Predictions and gaps from ratings."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merton.errors import InputError, UnknownNameError
from merton.rating.likelihood import Estimate, Fit
from merton.rating.metric import METRICS, linear, monotone, named, pdms
from merton.rating.predictions import (
    gap,
    gap_to_hardest,
    gap_to_share,
    long_tail,
    oracle,
    predicted_score,
    predicted_value,
)

RATINGS = st.floats(-3000, 6000)


def test_known_points_of_the_logistic() -> None:
    assert predicted_score(1500, 1500) == 0.5
    assert predicted_score(1900, 1500) == pytest.approx(10 / 11)
    assert predicted_score(1500, 1900) == pytest.approx(1 / 11)
    assert gap(1500, 1700, 0.5) == pytest.approx(200)
    assert gap(1500, 1700, 0.9) == pytest.approx(200 + 381.697, abs=1e-3)  # 400 log10 9
    assert gap(1500, 1700, 0.99) - gap(1500, 1700, 0.5) == pytest.approx(798.254, abs=1e-3)  # 400 log10 99


@given(RATINGS, RATINGS, st.floats(0.01, 0.99))
def test_closing_the_gap_gives_the_score_asked_for(agent: float, case: float, p: float) -> None:
    assert predicted_score(agent + gap(agent, case, p), case) == pytest.approx(p, abs=1e-9)


@given(RATINGS, RATINGS, st.floats(-1000, 1000))
def test_only_differences_count(agent: float, case: float, shift: float) -> None:
    assert predicted_score(agent + shift, case + shift) == pytest.approx(predicted_score(agent, case), abs=1e-9)
    assert predicted_score(agent, case) + predicted_score(case, agent) == pytest.approx(1.0)


TABLE_1 = [  # hardest case, best agent, score predicted, gaps at 50, 90 and 99 %
    ("ImageNet", 2389.7, 2035.0, 0.115, (354.7, 736.4, 1152.9)),
    ("COCO", 2132.7, 1745.5, 0.097, (387.2, 768.9, 1185.4)),
    ("MMLU", 2446.1, 2159.2, 0.161, (286.9, 668.6, 1085.1)),
    ("LiveCodeBench", 2263.3, 1939.7, 0.134, (323.6, 705.3, 1121.8)),
    ("Waymo", 2014.3, 1689.8, 0.134, (324.5, 706.2, 1122.8)),
    ("NAVSIM", 2273.0, 2040.5, 0.208, (232.5, 614.2, 1030.8)),
]


@pytest.mark.parametrize(("dataset", "hardest", "agent", "predicted", "gaps"), TABLE_1)
def test_table_1_of_the_paper(dataset: str, hardest: float, agent: float, predicted: float, gaps: tuple) -> None:
    """Origin: AGI-Elo, Table 1, as printed; its ratings are rounded to 0.1 each."""
    for p, printed in zip((0.5, 0.9, 0.99), gaps, strict=True):
        assert gap(agent, hardest, p) == pytest.approx(printed, abs=0.06), dataset
    assert predicted_score(agent, hardest) == pytest.approx(predicted, abs=0.001)


def test_far_apart_players_do_not_overflow() -> None:
    assert predicted_score(-2e5, 2e5) == 0.0
    assert predicted_score(1e6, -1e6) == 1.0
    with pytest.raises(InputError, match=r"agent's rating must lie within ±1e\+06"):
        predicted_score(1e300, -1e300)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_mastery_lies_strictly_between(p: float) -> None:
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        gap(1500, 1500, p)


def test_a_rating_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(InputError, match="case's rating must be finite"):
        predicted_score(1500, float("nan"))
    with pytest.raises(InputError, match="agent's rating must be finite"):
        gap(float("inf"), 1500, 0.5)


def test_scores_in_the_metric_of_the_task() -> None:
    assert predicted_value(1900, 1500, METRICS["execution"]) == pytest.approx(1000 / 11)
    assert predicted_value(1500, 1500, METRICS["cognition"]) == pytest.approx(2.5)
    assert named("decision").score(4.0) == pytest.approx(0.8)
    assert named("accuracy").value(0.3) == pytest.approx(0.3)
    with pytest.raises(
        UnknownNameError, match="choose one of: acc_at_1, accuracy, coco_ap, cognition, decision, execution, m"
    ):
        named("speed")


METRICS_TRIED = [
    *(metric for metric in METRICS.values() if not metric.only),
    linear("miss distance", 100.0, 0.0),
    monotone("duration", 60.0, 0.0, lambda seconds: math.exp(-seconds / 10)),
    monotone("share", 0.0, 1.0, lambda share: share**3),
]


@given(st.sampled_from(METRICS_TRIED), st.floats(0.0, 1.0))
def test_score_functions_are_inverted(metric, share: float) -> None:
    value = metric.worst + share * (metric.best - metric.worst)
    assert metric.score(metric.value(metric.score(value))) == pytest.approx(metric.score(value), abs=1e-9)
    assert 0.0 <= metric.score(value) <= 1.0
    assert min(metric.worst, metric.best) <= metric.value(share) <= max(metric.worst, metric.best)


@given(st.sampled_from(sorted(METRICS)), st.floats(0.0, 1.0))
def test_a_value_survives_its_score(name: str, share: float) -> None:
    metric = named(name)
    value = metric.best * (float(share > 0.5) if metric.only else share)
    assert metric.value(metric.score(value)) == pytest.approx(value, abs=1e-12)
    assert metric.value(share) == pytest.approx(metric.best * share, abs=1e-12)  # predicted, also between 0 and 1


def test_the_driver_score_is_navsims() -> None:
    """By hand from NC DAC (5 EP + 5 TTC + 2 C) / 12; NAVSIM's metrics page, version 1.1, has these weights."""
    assert pdms(1.0, 1.0, 1.0, 1.0, 1.0) == 1.0
    assert pdms(1.0, 1.0, 0.6, 1.0, 0.0) == pytest.approx((3.0 + 5.0) / 12.0)
    assert pdms(0.5, 1.0, 0.8, 0.0, 1.0) == pytest.approx(0.25)
    assert pdms(1.0, 0.0, 1.0, 1.0, 1.0) == pdms(0.0, 1.0, 1.0, 1.0, 1.0) == 0.0
    for wrong, sentence in (
        ((0.7, 1, 1, 1, 1), "NC must be one of 0, 0.5, 1, got 0.7"),
        ((1, 0.5, 1, 1, 1), "DAC must be one of 0, 1"),
        ((1, 1, 1.1, 1, 1), r"EP must be in 0\.\.1"),
        ((1, 1, float("nan"), 1, 1), "EP must be"),
        ((1, 1, 1, 0.5, 1), "TTC must be"),
        ((1, 1, 1, 1, 2), "C must be one of 0, 1, got 2"),
    ):
        with pytest.raises(InputError, match=sentence):
            pdms(*wrong)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: linear("x", 1.0, 1.0), "two different finite numbers"),
        (lambda: linear("x", 0.0, float("inf")), "two different finite numbers"),
        (lambda: monotone("x", 0.0, 2.0, lambda value: value), r"must stay in 0\.\.1"),
        (lambda: monotone("x", 0.0, 1.0, lambda value: float("nan")), r"must stay in 0\.\.1"),
        (lambda: monotone("x", 0.0, 1.0, lambda value: 0.5), "rise everywhere"),
        (lambda: monotone("x", 0.0, 1.0, lambda value: 1.0 - value), "rise everywhere"),
        (lambda: METRICS["execution"].score(101.0), r"execution must be in 0\.\.100"),
        (lambda: METRICS["pass_all"].score(0.5), "pass_all of a case must be 0 or 1, got 0.5"),
        (lambda: METRICS["mmlu"].score(0.25), "mmlu of a case must be 0 or 1"),
        (lambda: METRICS["pdms"].score(1.01), r"pdms must be in 0\.\.1"),
        (lambda: METRICS["execution"].score(float("nan")), r"execution must be in 0\.\.100"),
        (lambda: METRICS["execution"].value(1.1), r"match score must be in 0\.\.1"),
    ],
)
def test_score_functions_that_cannot_be_inverted_are_refused(build, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()


CASES = {f"case {i:03}": Estimate(1000.0 + 10.0 * i, 20.0, 5) for i in range(101)}


def test_the_long_tail_is_the_cases_predicted_below_the_threshold() -> None:
    tail = long_tail(1900.0, CASES, 50.0, METRICS["execution"])
    assert tail == tuple(f"case {i:03}" for i in range(100, 90, -1))  # rated above 1900
    assert long_tail(1900.0, CASES, 0.0, METRICS["execution"]) == ()
    assert set(long_tail(1900.0, CASES, 90.0, METRICS["execution"])) > set(tail)
    with pytest.raises(InputError, match="execution must be in"):
        long_tail(1900.0, CASES, 120.0, METRICS["execution"])


def fitted(*, spread: float = 250.0, freedom: float = 40.0, deviation: float = 15.0, with_spread: float = 0.0) -> Fit:
    agents = {
        "good": Estimate(1700.0, deviation, 50, with_spread=with_spread),
        "perfect": Estimate(2500.0, 80.0, 50, "only wins", half_width=None),
    }
    return Fit(agents, CASES, spread, freedom, 1.0, 100, ())


def test_the_gap_to_the_hardest_case_is_the_papers_and_has_no_interval() -> None:
    found = gap_to_hardest(1700.0, 2000.0, 0.9)
    assert (found.oracle, found.gap) == (oracle(2000.0, 0.9), gap(1700.0, 2000.0, 0.9))
    assert found.interval is None
    assert "do not tell which case is the hardest" in found.no_interval


def test_the_gap_to_a_share_of_the_cases_is_that_of_the_fitted_distribution() -> None:
    found = gap_to_share(fitted(), "good", 0.9, 0.99)
    assert found.oracle == pytest.approx(oracle(1500.0 + 2.3263479 * 250.0, 0.9), abs=1e-4)
    assert found.gap == pytest.approx(found.oracle - 1700.0)
    assert gap_to_share(fitted(), "good", 0.5, 0.5).gap == pytest.approx(-200.0)  # the mean case
    assert gap_to_share(fitted(), "good", 0.5, 0.01).gap == pytest.approx(-200.0 - 2.3263479 * 250.0, abs=1e-4)


def test_its_interval_holds_the_errors_of_the_agent_and_of_the_spread() -> None:
    def interval(**known: float) -> tuple[float, float]:
        gap_found = gap_to_share(fitted(**known), "good", 0.5, 0.99)
        assert gap_found.interval is not None
        return gap_found.interval[0] - gap_found.gap, gap_found.interval[1] - gap_found.gap

    assert interval(freedom=1e9) == pytest.approx((-1.959964 * 15.0, 1.959964 * 15.0), abs=0.1)  # the agent's own
    # chi-squared quantiles of 40 degrees of freedom: 24.433 and 59.342 (any table)
    alone = interval(deviation=0.0)
    target = 2.3263479 * 250.0
    assert alone == pytest.approx(
        (target * (math.sqrt(40 / 59.342) - 1), target * (math.sqrt(40 / 24.433) - 1)), abs=0.1
    )
    low, high = interval()
    assert (low, high) == pytest.approx((-math.hypot(alone[0], 29.4), math.hypot(alone[1], 29.4)), abs=0.1)
    assert interval(with_spread=0.5)[1] < high < interval(with_spread=-0.5)[1]  # errors of the same sign cancel


def test_a_gap_without_an_interval_says_why() -> None:
    few = gap_to_share(fitted(freedom=6.4), "good", 0.9, 0.99)
    assert few.interval is None
    assert "only as well as 6 cases" in few.no_interval
    bound = gap_to_share(fitted(), "perfect", 0.9, 0.99)
    assert bound.interval is None
    assert "is a bound" in bound.no_interval
    assert gap_to_share(fitted(), "good", 0.9, 0.99).no_interval == ""


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_a_share_of_no_or_all_cases_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="share of cases to master must lie strictly between"):
        gap_to_share(fitted(), "good", 0.9, share)
    with pytest.raises(UnknownNameError, match="choose one of: good, perfect"):
        gap_to_share(fitted(), "best", 0.9, 0.99)
