"""The headline: the agent that loses most, the doubt about it, and those that are not told apart from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from headline_claims import study

from merton.leaderboard.snapshot.store import of_trials
from merton.results.losses import Loss, by_agent
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.statistics.intervals import Interval
from merton.study.headline import headline, most_sensitive
from merton.study.largest_drop import largest_drop


def trials(agent: str, lost: int, scenes: int = 24, first: int = 0) -> list[TrialRecord]:
    """Undistorted successes, and distorted trials of which those of the first `lost` scenes from `first` on fail."""
    found = []
    for seed in range(scenes):
        done = not first <= seed < first + lost
        found.append(TrialRecord("e", agent, TestCase("pick", seed, "reference", 0), Outcome.SUCCESS))
        outcome = Outcome.SUCCESS if done else Outcome.FAILURE
        found.append(TrialRecord("e", agent, TestCase("pick", seed, "jpeg", 5), outcome))
    return found


def said(records: list[TrialRecord], blind: tuple[str, ...] = (), planned: int | None = None) -> str:
    """The headline, with plain spaces and minus signs."""
    text = headline(of_trials(records), by_agent(records), planned=planned, blind=blind)
    return text.replace("\u00a0", " ").replace("−", "-")


def test_the_largest_of_two_is_paired_with_the_other_and_shrunken() -> None:
    text = said([*trials("a", 18), *trials("b", 4)])
    assert text.startswith("a loses most under distortion: its success falls from 100 to 25 % (75 points, ")
    assert text.endswith("]).")
    assert "; b is next (58 points less [" in text
    text = said([*trials("a", 12), *trials("b", 11)])
    assert "; b's drop is not told apart (4 points less [-" in text


def test_pairs_tell_apart_what_overlapping_intervals_do_not() -> None:
    """Both lose in the same scenes, and the first in ten more."""
    lost = by_agent([*trials("a", 28, 40), *trials("b", 18, 40)])
    assert lost["b"].interval[1] > lost["a"].interval[0]
    assert largest_drop(lost.values()).rivals == ()


def test_all_that_are_not_told_apart_are_named_or_counted() -> None:
    records = [record for number, name in enumerate("abcdef") for record in trials(name, 14 - number % 2)]
    records += trials("far", 0)
    assert "; the drops of c, e and 3 others are not told apart (c's 0 points less [" in said(records)
    assert [rival.agent for rival in largest_drop(by_agent(records).values()).rivals] == ["c", "e", "b", "d", "f"]


def test_a_peeker_is_named_and_blind_agents_are_not() -> None:
    """Of the first, all first chunks are the same; it loses nevertheless."""
    records = [replace(record, decision=1.0) for record in trials("peeker", 16)]
    fall = "peeker loses most under distortion: its success falls from 100 to 33 %."
    assert said(records) == fall
    assert said([*records, *trials("oracle", 0)], blind=("oracle",)) == fall
    lost = by_agent(records)
    assert most_sensitive(lost) == ["peeker"]
    assert most_sensitive(lost, blind=["peeker"]) == []
    assert said(records, blind=("peeker",)) == "No agent looks at the images."
    assert said(trials("calm", 0)) == "No agent has lost success under distortion."


def test_an_agent_that_never_does_the_task_has_no_success_to_lose() -> None:
    never = [replace(record, outcome=Outcome.FAILURE) for record in trials("never", 24)]
    nothing = "No agent that looks at the images does the task undistorted, so none has success to lose."
    assert said(never) == nothing
    assert said([*never, *trials("oracle", 0)], blind=("oracle",)) == nothing
    assert said([*never, *trials("calm", 0)]) == "No agent has lost success under distortion."


def test_doubt_about_the_loss_itself_is_said() -> None:
    fall = "a loses most under distortion: its success falls from 100 to 75 %"
    assert said(trials("a", 1, scenes=4)) == f"{fall}, which 4 scenes cannot tell from chance."
    assert said([*trials("a", 16), *trials("b", 4)], planned=99).startswith(
        "96 of 99 trials so far: a loses most under distortion, its success falls from 100 to 33 %"
    )


def test_agents_without_a_common_case_cannot_be_told_apart() -> None:
    far = [replace(record, case=replace(record.case, task="push")) for record in trials("b", 1)]
    top = largest_drop(by_agent([*trials("a", 20), *far]).values())
    assert [(rival.agent, rival.less, rival.interval) for rival in top.rivals] == [("b", None, None)]
    assert top.shrunken is None
    assert said([*trials("a", 20), *far]).endswith("; b's drop is not told apart (no test case in common).")


@pytest.mark.parametrize(("falls", "claims"), [([1.6] * 4, (0, 2)), ([3.0, 0.5, 0.5, 0.5], (7, 12))], ids=str)
def test_equal_agents_are_seldom_told_apart_and_different_ones_mostly(
    falls: list[float], claims: tuple[int, int]
) -> None:
    """Twelve studies in 30 scenes through six types: tools/studies/headline_claims.py has more of them."""
    alone = 0
    for number in range(12):
        top = largest_drop(by_agent(study(falls, 30, [0.0] * 6, "test", number)).values())
        alone += not top.rivals and top.first.agent == "agent0"
    assert claims[0] <= alone <= claims[1]


def test_the_shrunken_drop_is_between_the_mean_and_the_drop() -> None:
    """It keeps the share of the scatter that is no chance: nearly all of a large difference, none of a small one."""

    def shrunken(*lost: int) -> tuple[float, float, float]:
        found = by_agent([record for number, count in enumerate(lost) for record in trials(f"a{number}", count)])
        top = largest_drop(found.values())
        assert top.shrunken is not None
        return float(np.mean([loss.points for loss in found.values()])), top.shrunken, top.first.points

    mean, value, points = shrunken(12, 11)
    assert value == pytest.approx(mean)
    mean, value, points = shrunken(22, 1)
    assert mean < value < points
    assert value - mean > 0.8 * (points - mean)
    assert largest_drop([Loss("one", 1.0, 0.5, 0.5, Interval(0.2, 0.8), 8, 4)]).shrunken is None
