"""The Decision score: of equal, of opposite and of random chunks, and where the paper leaves values open."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from merton.decision.score import Comparison, DecisionScore, Normalisation, compare, normalised, score, score_batch
from merton.errors import InputError
from merton.world.action import FRAMES, ActionChunk, checked_chunk


def chunk(*deltas: tuple[float, ...], frame: str = "base_link") -> ActionChunk:
    return checked_chunk(list(deltas), 0.2, frame=frame)


def random_chunk(seed: int, frame: str = "base_link") -> ActionChunk:
    rng = np.random.default_rng(seed)
    return checked_chunk(np.c_[rng.normal(0, 0.03, (8, 6)), rng.uniform(0, 1, 8)], 0.2, frame=frame)


@pytest.mark.parametrize("frame", FRAMES)
def test_the_score_is_symmetric_and_1_for_equal_chunks(frame: str) -> None:
    for seed in range(20):
        one, other = random_chunk(seed, frame), random_chunk(seed + 100, frame)
        itself, ahead, back = score(one, one), score(one, other), score(other, one)
        assert (itself.total, itself.position, itself.state) == (pytest.approx(1), 1, 1)
        assert vars(ahead) == pytest.approx(vars(back)), "no chunk is the better one"
        assert all(0 <= value <= 1 for value in vars(ahead).values())
        assert ahead.total == pytest.approx((ahead.position + ahead.rotation + ahead.state) / 3)


def test_only_the_end_of_a_chunk_counts() -> None:
    once = chunk((0.06, 0, 0, 0, 0, 0.2, 1))
    twice = chunk((0.02, 0.01, 0, 0, 0, 0.1, 0), (0.04, -0.01, 0, 0, 0, 0.1, 1))
    assert score(once, twice).total == pytest.approx(1)


def test_scores_computed_by_hand() -> None:
    reference = chunk((0.1, 0, 0, 0.2, 0, 0, 1.0))
    candidate = chunk((0.1, 0.05, 0, 0, 0.1, 0, 0.25))
    # 5 cm of 50 cm apart, perpendicular rotations, states 0.75 apart.
    assert vars(score(reference, candidate)) == pytest.approx(
        {"position": 0.9, "rotation": 0.5, "state": 0.25, "total": 0.55}
    )
    assert score(reference, candidate, position_range_m=0.05).position == 0
    opposite = chunk((0.1, 0, 0, -0.4, 0, 0, 1.0))
    assert score(reference, opposite).rotation == pytest.approx(0)


def test_a_chunk_without_rotation_has_no_direction() -> None:
    still, turning = chunk((0, 0, 0, 0, 0, 1e-4, 1)), chunk((0, 0, 0, 0, 0, 0.1, 1))
    assert score(still, chunk((0, 0, 0, 0, 0, -1e-4, 1))).rotation == 1
    assert score(still, turning).rotation == score(turning, still).rotation == 0.5


def test_scores_of_empty_chunks() -> None:
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


def test_chunks_in_different_frames_and_bad_ranges_are_refused() -> None:
    with pytest.raises(InputError, match=r"base_link.*tcp"):
        score(chunk((0, 0, 0, 0, 0, 0, 1)), chunk((0, 0, 0, 0, 0, 0, 1), frame="tcp"))
    with pytest.raises(InputError, match="range"):
        score(chunk(), chunk(), position_range_m=0)


def mixed_chunks(count: int, seed: int) -> list[ActionChunk]:
    """Chunks of 0 to 8 deltas, some without rotation, alternating between the two frames."""
    rng = np.random.default_rng(seed)
    chunks = []
    for index in range(count):
        deltas = np.c_[rng.normal(0, 0.05, (index % 9, 6)), rng.uniform(size=index % 9)]
        deltas[:, 3:6] *= index % 4 > 0
        chunks.append(checked_chunk(deltas, 0.2, frame=FRAMES[index % 2]))
    return chunks


def test_the_score_of_a_pair_does_not_depend_on_its_batch() -> None:
    references, candidates = mixed_chunks(120, 0), mixed_chunks(120, 1)[::-1]
    candidates = [checked_chunk(c.deltas, 0.2, frame=r.frame) for r, c in zip(references, candidates, strict=True)]
    together = score_batch(references, candidates)
    for index, (reference, candidate) in enumerate(zip(references, candidates, strict=True)):
        alone = score(reference, candidate)
        assert vars(alone) == {name: values[index] for name, values in vars(together).items()}, "to the last bit"
    assert {0.5, 1.0} < set(together.rotation.tolist())


def test_batches_may_be_empty_but_not_of_unequal_length() -> None:
    assert all(values.shape == (0,) for values in vars(score_batch([], [])).values())
    with pytest.raises(InputError, match="2 references and 1"):
        score_batch(mixed_chunks(2, 0), mixed_chunks(1, 0))
    with pytest.raises(InputError, match=r"base_link.*tcp"):
        compare(mixed_chunks(1, 0), mixed_chunks(2, 0)[1:])


def test_the_raw_comparison_by_hand() -> None:
    reference = chunk((0.1, 0, 0, 0.2, 0, 0, 1.0))
    candidates = [chunk((0.1, 0.05, 0, 0, 0.1, 0, 0.25)), chunk((0.1, 0, 0, -0.4, 0, 0, 1.0)), chunk()]
    raw = compare([reference] * 3, candidates)
    np.testing.assert_allclose(raw.distance_m, [0.05, 0, 0.1], atol=1e-12)
    np.testing.assert_allclose(raw.cosine, [0, -1, 0], atol=1e-12)  # the last has no direction
    np.testing.assert_allclose(raw.state_difference, [0.75, 0, 1])
    still = chunk((0, 0, 0, 0, 0, 0, 1))
    assert compare([still], [still]).cosine.tolist() == [1.0]  # nor have these two


def test_the_papers_normalisation_is_the_range_of_the_study() -> None:
    raw = Comparison(np.array([0.1, 0.2, 0.5]), np.array([1.0, 0.5, -0.5]), np.array([0.3, 0.3, 0.3]))
    study = Normalisation.of_study(raw)
    assert study == Normalisation((0.1, 0.5), (-0.5, 1.0), (0.3, 0.3))
    scores = normalised(raw, study)
    np.testing.assert_allclose(scores.position, [1, 0.75, 0])
    np.testing.assert_allclose(scores.rotation, [1, 2 / 3, 0])
    np.testing.assert_allclose(scores.state, 1)  # no range: nothing is told apart
    np.testing.assert_allclose(scores.total, (scores.position + scores.rotation + scores.state) / 3)
    # a pair from outside the study stays within 0..1
    outside = Comparison(np.array([0.0, 9.0]), np.array([1.0, -1.0]), np.array([0.0, 1.0]))
    assert all(((values >= 0) & (values <= 1)).all() for values in vars(normalised(outside, study)).values())


def test_the_fixed_normalisation_is_the_default() -> None:
    chunks = mixed_chunks(40, 3)
    raw = compare(chunks, chunks[2:] + chunks[:2])
    scores = score_batch(chunks, chunks[2:] + chunks[:2])
    np.testing.assert_allclose(scores.position, 1 - np.minimum(1, raw.distance_m / 0.5))
    np.testing.assert_allclose(scores.rotation, (1 + raw.cosine) / 2)
    np.testing.assert_allclose(scores.state, 1 - raw.state_difference)


def test_wrong_normalisations_are_refused() -> None:
    for wrong in ((1.0, 0.0), (0.0, np.inf), (np.nan, 1.0)):
        with pytest.raises(InputError, match="distance_m range"):
            Normalisation(distance_m=wrong)
    with pytest.raises(InputError, match="without a pair"):
        Normalisation.of_study(compare([], []))
