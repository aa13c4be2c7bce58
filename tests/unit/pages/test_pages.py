"""Words, pictures and templates that the report, the site and the server share."""

from __future__ import annotations

import jinja2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from merton.leaderboard.snapshot.contents import Standing
from merton.pages import words
from merton.pages.environment import environment
from merton.pages.svg import MOST_STEPS, SERIES_COLORS, marker, rating_domain, rating_scale, series_slots
from merton.statistics.intervals import Interval, interval_text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(1.005, 1, "1.0"), (-0.004, 2, "0.00"), (-1.63, 2, "−1.63"), (3, 0, "3"), (np.float64(0.5), 2, "0.50")],
)
def test_a_number_has_its_decimals_and_a_real_minus(value: float, digits: int, text: str) -> None:
    assert words.number(value, digits) == text


@pytest.mark.parametrize("value", [None, float("nan"), float("-inf"), "1", True, [1.0]])
def test_a_value_that_is_no_number_is_a_dash(value: object) -> None:
    assert words.number(value) == "–"


def test_times_are_shown_to_the_second_and_other_texts_as_they_are() -> None:
    assert words.moment("2026-05-03T12:30:45.123456Z") == "2026-05-03 12:30:45"
    assert words.date_and_time("2026-05-03T12:30:45Z") == "3 May 2026, 12:30 UTC"
    assert words.date_and_time("soon") == "soon"
    assert words.date_and_time(None) == "at an unknown time"


def test_nested_settings_are_rows_with_one_text_each() -> None:
    settings = {
        "seeds": {"kmeans": 0, "runs": (1, 2)},
        "limit": 0.1 + 0.2,
        "sources": [{"name": "a"}, {"name": "b"}, "c"],
        "none": {},
    }
    assert words.flat(settings) == [
        ("seeds · kmeans", "0"),
        ("seeds · runs", "1, 2"),
        ("limit", "0.3"),
        ("sources 1 · name", "a"),
        ("sources 2 · name", "b"),
        ("sources 3", "c"),
    ]


def test_an_interval_is_written_in_one_way() -> None:
    """On pages with a real minus, in terminals as Python writes numbers; zero has no sign."""
    interval = Interval(-0.104, 0.996)
    assert f"{interval:.2f}" == interval_text(interval) == "[-0.10, 1.00]"
    assert words.interval_words(interval) == "[−0.10, 1.00]"
    assert words.interval_words(interval, 0, 100) == "[−10, 100]"
    assert words.interval_words([-0.001, 0.25], 2, sign=True) == "[0.00, +0.25]"
    assert words.beside(interval, 1) == " <small>[−0.1, 1.0]</small>"
    assert words.beside(None) == ""
    nothing = Interval(float("nan"), float("nan"))
    assert interval_text(None) == interval_text(nothing) == words.interval_words(None) == "no interval"
    page = environment("merton.study").from_string("{{ ends | interval(1) }}{{ none | beside }}{{ ends | beside }}")
    assert page.render(ends=(0.25, 0.5)) == "[0.2, 0.5] <small>[0.25, 0.50]</small>"


def test_words_that_only_the_distorted_answer_has_are_marked() -> None:
    assert words.marked("a red cup", "a <b> cup left") == "a <mark>&lt;b&gt;</mark> cup <mark>left</mark>"


def test_the_domain_holds_intervals_and_bounds_only_where_there_is_nothing_else() -> None:
    ratings = [
        Standing(1, 1610.0, 1.0, (1590.0, 1630.0)),
        Standing(2, 1420.0, 1.0, (900.0, 2000.0), "only losses"),
        None,
    ]
    assert rating_domain(ratings) == (1500.0, 1700.0)
    assert rating_domain(ratings[1:]) == (1400.0, 1500.0)
    assert rating_domain(ratings, of_agents=False) == (900.0, 2000.0)
    assert rating_domain([]) == (0.0, 100.0)


@given(st.lists(st.floats(-3e4, 3e4).map(lambda mean: round(mean, 3)), min_size=1, max_size=9))
def test_a_scale_holds_every_rating_and_has_round_ticks(means: list[float]) -> None:
    scale = rating_scale(Standing(1, mean, 1.0, None) for mean in means)
    assert scale.low <= min(means) <= max(means) <= scale.high
    assert 1 <= scale.steps <= MOST_STEPS
    step = (scale.high - scale.low) / scale.steps
    assert f"{step:.0f}".rstrip("0") in ("1", "2", "25", "5")
    assert all(tick % step == 0.0 for tick in scale.ticks)


@pytest.mark.parametrize("package", ["merton.study", "merton.leaderboard.site", "merton.leaderboard.serve"])
def test_every_template_is_escaped_strict_and_has_the_shared_names(package: str) -> None:
    made = environment(package, figures=None)
    assert (
        made.from_string('{{ "<" }} {{ 0.5 | number }} {{ svg.swatch(0) }} {{ MISSING }}')
        .render()
        .startswith("&lt; 0.50 <svg")
    )
    assert "--paper" in made.get_template("palette.css.j2").module.light()  # type: ignore[attr-defined]
    with pytest.raises(jinja2.UndefinedError):
        made.from_string("{{ unknown }}").render()


def test_a_name_keeps_its_colour_whatever_stands_beside_it() -> None:
    alone = {name: series_slots([name])[name] for name in ("oracle", "glance", "twice", "hold")}
    assert alone == {"oracle": 2, "glance": 7, "twice": 4, "hold": 0}
    assert series_slots(reversed(alone)) == alone, "no two of these hash to one slot, and the order does not count"
    assert series_slots(["oracle", "blobs"]) == {"blobs": 2, "oracle": 3}, "both hash to 2; the next one is free"
    many = [f"agent-{number}" for number in range(3 * SERIES_COLORS + 1)]
    assert len(set(series_slots(many).values())) == len(many)
    assert series_slots([]) == {}


def test_colour_and_marker_together_tell_32_agents_apart() -> None:
    drawn = {(index % SERIES_COLORS, str(marker(index, 0.0, 0.0))) for index in range(4 * SERIES_COLORS)}
    assert len(drawn) == 4 * SERIES_COLORS


@pytest.mark.parametrize(
    ("value", "text", "with_sign"),
    [(0.0, "< .001", "< .001"), (0.0009, "< .001", "< .001"), (0.001, "0.001", "= 0.001"), (None, "–", "= –")],
)
def test_no_p_value_is_shown_as_0(value: float | None, text: str, with_sign: str) -> None:
    assert (words.p_value(value), words.p_value(value, sign=True)) == (text, with_sign)
