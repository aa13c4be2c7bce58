"""Means, intervals, ranks and safe text: by hand and against published tables."""

from __future__ import annotations

import pytest

from merton.results.statistics import mean, mean_interval, ranks, wilson
from merton.results.text import formatted, one_line, printable


def test_missing_values_are_no_part_of_a_mean() -> None:
    assert mean([1.0, None, 2.0]) == 1.5
    assert mean([None]) is None


def test_wilson_interval() -> None:
    """Origin: Newcombe (1998), Table I: 81/263: .2553 to .3662; 15/148: .0624 to .1605; 0/20: 0 to .1611."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(20, 20)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)


def test_mean_interval() -> None:
    """By hand: scores .4 .5 .6, sd .1, a coin's .5, t(2) 4.3027: Wilson's with z .86053; cases count, not matches."""
    assert mean_interval([0.4, 0.5, 0.6], [0, 1, 2]) == pytest.approx(wilson(1.5, 3, 0.860531), abs=1e-6)
    assert mean_interval([0.4, 0.6, 0.4, 0.6], [0, 1, 0, 1]) == pytest.approx(mean_interval([0.4, 0.6], [0, 1]))
    coins = [1.0] * 15 + [0.0] * 133
    assert mean_interval(coins, range(148)) == pytest.approx(wilson(15, 148))  # right-or-wrong scores are coins
    assert mean_interval([0.0, 0.5, 1.0], [0, 1, 2]) == pytest.approx(wilson(1.5, 3))  # and no others are worse
    assert mean_interval([1.0] * 20, range(20)) == pytest.approx(wilson(20, 20))  # no spread is no certainty
    assert mean_interval([0.3], [7]) == pytest.approx(wilson(0.3, 1))


def test_equal_values_share_a_rank_and_missing_ones_have_none() -> None:
    assert ranks([0.5, None, 0.7, 0.5, 0.1]) == [2, None, 1, 2, 4]
    assert ranks([0.3, 0.1 + 0.2, 0.300001]) == [2, 2, 1], "two ways to the same mean share a place"
    assert ranks([]) == []


def test_text_is_cut_and_stays_on_one_line() -> None:
    assert printable("ok") == "ok"
    assert printable("x" * 81) == "x" * 79 + "…"
    assert printable("\x1b[31m\u202e") == "\ufffd[31m\ufffd"
    assert one_line(" a\n b\t") == "a b"
    assert (formatted(None), formatted(1.234)) == ("–", "1.23")
