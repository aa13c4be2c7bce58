"""The Decision score: a chunk against itself, against its opposite, and where the paper leaves values open."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from merton.decision.action import FRAMES, ActionChunk, checked_chunk
from merton.decision.score import DecisionScore, score
from merton.errors import InputError


def chunk(*deltas: tuple[float, ...], frame: str = "base_link") -> ActionChunk:
    return checked_chunk(list(deltas), 0.2, frame=frame)


def random_chunk(seed: int, frame: str = "base_link") -> ActionChunk:
    rng = np.random.default_rng(seed)
    return checked_chunk(np.c_[rng.normal(0, 0.03, (8, 6)), rng.uniform(0, 1, 8)], 0.2, frame=frame)


@pytest.mark.parametrize("frame", FRAMES)
def test_laws(frame: str) -> None:
    for seed in range(20):
        one, other = random_chunk(seed, frame), random_chunk(seed + 100, frame)
        itself, ahead, back = score(one, one), score(one, other), score(other, one)
        assert (itself.total, itself.position, itself.state) == (pytest.approx(1), 1, 1)
        assert vars(ahead) == pytest.approx(vars(back)), "no chunk is the better one"
        assert all(0 <= value <= 1 for value in vars(ahead).values())
        assert ahead.total == pytest.approx((ahead.position + ahead.rotation + ahead.state) / 3)


def test_only_where_a_chunk_ends_counts() -> None:
    once = chunk((0.06, 0, 0, 0, 0, 0.2, 1))
    twice = chunk((0.02, 0.01, 0, 0, 0, 0.1, 0), (0.04, -0.01, 0, 0, 0, 0.1, 1))
    assert score(once, twice).total == pytest.approx(1)


def test_values_by_hand() -> None:
    reference = chunk((0.1, 0, 0, 0.2, 0, 0, 1.0))
    candidate = chunk((0.1, 0.05, 0, 0, 0.1, 0, 0.25))
    # 5 cm of 50 cm apart, perpendicular rotations, states 0.75 apart.
    assert vars(score(reference, candidate)) == pytest.approx(
        {"position": 0.9, "rotation": 0.5, "state": 0.25, "total": 0.55}
    )
    assert score(reference, candidate, position_range_m=0.05).position == 0
    opposite = chunk((0.1, 0, 0, -0.4, 0, 0, 1.0))
    assert score(reference, opposite).rotation == pytest.approx(0)


def test_without_a_rotation_there_is_no_direction() -> None:
    still, turning = chunk((0, 0, 0, 0, 0, 1e-4, 1)), chunk((0, 0, 0, 0, 0, 0.1, 1))
    assert score(still, chunk((0, 0, 0, 0, 0, -1e-4, 1))).rotation == 1
    assert score(still, turning).rotation == score(turning, still).rotation == 0.5


def test_empty_chunks() -> None:
    empty = chunk()
    assert score(empty, empty) == DecisionScore(1, 1, 1, 1)
    moving = chunk((0.1, 0, 0, 0, 0, 0.1, 1))
    assert vars(score(moving, empty)) == pytest.approx({"position": 0.8, "rotation": 0.5, "state": 0, "total": 1.3 / 3})


def test_tool_frame_translations_follow_the_tool() -> None:
    quarter = np.pi / 2
    around = chunk((0.1, 0, 0, 0, 0, quarter, 1), (0.1, 0, 0, 0, 0, 0, 1), frame="tcp")  # forward, turn left, forward
    straight = chunk((0.1, 0.1, 0, 0, 0, quarter, 1), frame="tcp")
    assert score(around, straight).total == pytest.approx(1)


def test_rotations_are_composed_not_added() -> None:
    first, second = (0.3, 0.0, 0.0), (0.0, 0.4, 0.0)
    base = Rotation.from_rotvec(second) * Rotation.from_rotvec(first)
    apart = chunk((0, 0, 0, *first, 1), (0, 0, 0, *second, 1))
    assert score(apart, chunk((0, 0, 0, *base.as_rotvec(), 1))).rotation == pytest.approx(1, abs=1e-12)
    assert score(apart, chunk((0, 0, 0, 0.3, 0.4, 0, 1))).rotation < 1 - 1e-6


def test_wrong_comparisons_raise() -> None:
    with pytest.raises(InputError, match=r"base_link.*tcp"):
        score(chunk((0, 0, 0, 0, 0, 0, 1)), chunk((0, 0, 0, 0, 0, 0, 1), frame="tcp"))
    with pytest.raises(InputError, match="range"):
        score(chunk(), chunk(), position_range_m=0)
