"""The hardest distortion: named where types differ, with those that are not told apart; not named by luck."""

from __future__ import annotations

import numpy as np
from headline_claims import TYPES, _board, study

from merton.leaderboard.snapshot.contents import Snapshot
from merton.leaderboard.snapshot.store import of_trials
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.study.hardest import Hardest, hardest
from merton.study.headline import size


def board_of(*views: tuple[int, str, int, bool]) -> Snapshot:
    """A board of one agent's trials: scene, distortion, level, and whether it succeeded."""
    return _board(
        [
            TrialRecord("e", "a", TestCase("pick", seed, name, level), Outcome.SUCCESS if done else Outcome.FAILURE)
            for seed, name, level, done in views
        ]
    )


def test_equal_types_are_seldom_named_and_one_that_differs_is() -> None:
    """Thirty studies of six types that are equal, and ten in which the last is harder by two logits; seed 0."""
    equal = [hardest(_board(study([1.5], 12, TYPES["6 equal"], "equal", number))) for number in range(30)]
    assert sum(found is not None for found in equal) <= 4, "1 or 2 are to be expected"
    found = [hardest(_board(study([1.5], 30, [0.0] * 5 + [2.5], "one", number))) for number in range(10)]
    named = [item for item in found if item is not None]
    assert len(named) >= 7
    assert {item.name for item in named} == {"type06 5"}
    assert all(item.rivals < item.others == 5 for item in named)


def test_the_hardest_distortion_is_no_artefact_of_a_hard_scene() -> None:
    """Scene 0 is hard, and seen through webp alone; through the types that every scene was seen with, webp is easy."""
    easy = [(seed, name, 5, name != "jpeg") for seed in range(1, 9) for name in ("jpeg", "blur", "dark")]
    hard = [(0, name, 5, False) for name in ("jpeg", "blur", "dark", "webp")]
    assert hardest(board_of(*easy, *hard)) == Hardest("jpeg 5", 0, 2)


def test_levels_that_are_drawn_anew_leave_the_distortion_alone() -> None:
    views = [
        (seed, name, 1 + (seed + shift) % 5, name != "jpeg")
        for seed in range(10)
        for shift, name in enumerate(("jpeg", "blur", "dark"))
    ]
    assert hardest(board_of(*views)) == Hardest("jpeg", 0, 2)


def test_nothing_is_named_without_another_to_compare_or_without_scenes() -> None:
    assert hardest(board_of((0, "jpeg", 5, False), (1, "jpeg", 5, False))) is None, "a single type"
    assert hardest(board_of((0, "jpeg", 5, False), (0, "blur", 5, True))) is None, "a single scene"
    assert hardest(board_of((0, "jpeg", 5, False), (1, "blur", 5, True))) is None, "no scene in common"
    assert hardest(_board([])) is None
    alike = [(seed, name, 5, bool(seed % 2)) for seed in range(12) for name in ("jpeg", "blur", "dark")]
    assert hardest(board_of(*alike)) is None, "all equal"


def test_blind_agents_play_no_part() -> None:
    records = study([1.5], 12, [0.0] * 5 + [2.5], "blind")
    blind = [
        TrialRecord("study", "hold", record.case, Outcome.FAILURE, decision=1.0) for record in records
    ]  # fails alike, undistorted too
    assert hardest(_board(records + blind), {"hold"}) == hardest(_board(records))


def test_the_line_about_the_run_counts_those_that_are_not_told_apart() -> None:
    """Of four types two are as hard; the ratings of the board play no part."""
    rng = np.random.default_rng(0)
    records = []
    for seed in range(16):
        records.append(TrialRecord("e", "a", TestCase("pick", seed, "reference", 0), Outcome.SUCCESS))
        for name, chance in (("blur", 1.0), ("dark", 1.0), ("jpeg", 0.1), ("webp", 0.12)):
            outcome = Outcome.SUCCESS if rng.random() < chance else Outcome.FAILURE
            records.append(TrialRecord("e", "a", TestCase("pick", seed, name, 5), outcome))
    text = size(of_trials(records))
    assert text.startswith("1 agent, 80 trials in 16 scenes; hardest: ")
    assert text.endswith(" 5 (not told apart from 1 of 3 others)")
