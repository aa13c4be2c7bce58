"""The first sentence of `merton rate`: leader, ties, bounds, and the share of the matches that settles the order."""

from __future__ import annotations

from merton.leaderboard.rate.finding import NOTHING, rate_finding
from merton.leaderboard.rate.tail import Beyond, LongTail
from merton.rating.convergence import Convergence, Spread
from merton.rating.predictions import Gap
from merton.statistics.intervals import Interval

GAPS = (Gap(0.5, 1.0, 2000.0, 300.0, None),)


def agent(name: str, rating: float, half: float | None, flag: str = "") -> Beyond:
    interval = None if half is None else Interval(rating - half, rating + half)
    return Beyond(name, rating, interval, flag, False, (0.25, 0.5, 0.9), GAPS)


def tail(*agents: Beyond) -> LongTail:
    target = Beyond("target 50 %", 2000.0, None, "", True, (0.0, 0.1, 0.2))
    return LongTail("likelihood", (("a", 1900.0), ("b", 1400.0)), (), (target, *agents), ())


def followed(*orders: tuple[float, float]) -> Convergence:
    """Two agents with these mean ratings at each share."""
    shares = tuple((place + 1) / len(orders) for place in range(len(orders)))
    points = [tuple(Spread(order[who], 0.0, 0.0, 0.0, 20) for order in orders) for who in range(2)]
    return Convergence("likelihood", shares, (1,) * len(orders), {}, {"a": points[0], "b": points[1]})


def test_the_best_is_named_and_never_a_target() -> None:
    assert rate_finding((tail(agent("x", 1700.0, 20.0), agent("y", 1600.0, 20.0)),)) == (
        "x is rated best, 1700 [1680, 1720]; 25\u00a0% of 2 cases are harder than it is strong."
    )


def test_agents_whose_intervals_meet_are_not_told_apart() -> None:
    text = rate_finding((tail(agent("x", 1700.0, 60.0), agent("y", 1690.0, 60.0), agent("z", 1650.0, 60.0)),))
    assert "not told apart from y and 1 other;" in text
    assert "not told apart from y;" in rate_finding((tail(agent("x", 1700.0, None), agent("y", 1700.0, None)),))
    assert "told apart" not in rate_finding((tail(agent("x", 1700.0, None)),)), "one agent"


def test_a_bound_is_called_one() -> None:
    assert "x is rated best, at least 1700;" in rate_finding((tail(agent("x", 1700.0, None, "only wins")),))


def test_the_order_settles_at_the_first_share_after_which_it_never_changes() -> None:
    settled = rate_finding((), (followed((1.0, 2.0), (2.0, 1.0), (3.0, 1.0), (3.0, 1.0)),))
    assert settled == "the order of the agents is the final one from 50\u00a0% of the matches on."
    assert "still changes" in rate_finding((), (followed((1.0, 2.0), (2.0, 1.0)),))


def test_nothing_to_rate_says_what_is_missing() -> None:
    assert rate_finding() == NOTHING
