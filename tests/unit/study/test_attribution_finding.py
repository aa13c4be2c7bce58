"""The first sentence of an attribution: what is named, and what is not."""

from __future__ import annotations

from collections.abc import Mapping

from merton.statistics.intervals import Interval
from merton.study.attribution import UNSEEN, Attribution, Findings, Mean
from merton.study.attribution_finding import finding, unseeing_sentence


def of(
    agent: str, axis: str, loss: float, low: float, shares: Mapping[str, Mean], value: str = "success"
) -> Attribution:
    """96 trials in 12 scenes."""
    return Attribution(agent, axis, value, 96, 12, 10, 0, 20, sure(loss, low), shares, Mean(0.0, Interval(-0.1, 0.1)))


def sure(value: float, low: float) -> Mean:
    return Mean(value, Interval(low, 2 * value - low))


def said(*items: Attribution) -> str:
    return finding(Findings(items, (), ()))


def test_each_agent_has_its_loss_and_the_parts_that_bear_most_of_it() -> None:
    steps = of("twice", "steps", 0.27, 0.07, {"0": sure(-0.01, -0.06), "1": sure(0.28, 0.08)})
    cameras = of("twice", "cameras", 0.27, 0.07, {"wrist": sure(0.08, 0.01), "top": sure(0.19, 0.06), "side": UNSEEN})
    first = of("glance", "steps", 0.33, 0.15, {"0": sure(0.33, 0.15), "1": UNSEEN})
    assert said(cameras, steps, first) == (
        "glance loses 33 points [15, 51] of success (n\u00a0= 96 in 12 scenes), most of it at step 0 (100\u00a0%); "
        "twice loses 27 points [7, 47] of success (n\u00a0= 96 in 12 scenes), most of it at step 1 (100\u00a0%), "
        "the top camera (70\u00a0%)."
    )


def test_equal_parts_and_parts_within_chance_are_not_named() -> None:
    equal = of("a", "cameras", 0.4, 0.2, {"top": sure(0.2, 0.1), "side": sure(0.2, 0.1)})
    unsure = of("a", "steps", 0.4, 0.2, {"0": sure(0.35, -0.05), "1": sure(0.05, -0.1)})
    assert said(equal, unsure).endswith("and no single part bears most of it.")


def test_nothing_resolved_says_so_and_what_would_resolve_it() -> None:
    sentence = said(of("a", "steps", 0.1, -0.1, {"0": sure(0.1, -0.1), "1": UNSEEN}))
    assert sentence.startswith("No loss of success under distortion is resolved: a loses most, 10 points [−10, 30]")
    assert "more scenes" in sentence


def test_progress_alone_and_no_attribution_at_all_are_no_finding_of_success() -> None:
    none = said()
    assert none.startswith("No agent that looks at the images")
    assert said(of("a", "steps", 0.5, 0.4, {"0": sure(0.5, 0.4), "1": UNSEEN}, "progress")) == none


def test_agents_that_see_nothing_are_one_line() -> None:
    assert unseeing_sentence(("oracle", "hold")) == "Look at none of the distorted images: oracle, hold."
    assert unseeing_sentence(()) == ""
