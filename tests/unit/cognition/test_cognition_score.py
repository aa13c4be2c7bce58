"""The Cognition score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merton.cognition.score import score, score_batch
from merton.cognition.text import Cider, bleu, rouge_l

CORPUS = ["pick up the red cube", "push the blue cube to the left", "open the gripper", "the arm is above the table"]
ANSWERS = st.lists(st.sampled_from(["the", "red", "cube", "left", "push", "arm", "is", "above"]), max_size=12).map(
    " ".join
)


@pytest.mark.parametrize("answer", [*CORPUS, "yes", "an answer the corpus does not know", "the"])
def test_identical_answers_score_one(answer):
    assert score(answer, answer, Cider(CORPUS)).total == 1.0


def test_identical_answers_score_one_where_cider_is_undefined():
    result = score("pick it up", "pick it up", Cider(["pick it up"] * 4))
    assert result.cider is None
    assert result.total == 1.0
    half = score("pick it up", "pick up", Cider(["pick it up"] * 4))
    assert half.total == pytest.approx((half.bleu + half.rouge_l) / 2)
    assert 0 < half.total < 1


def test_without_a_corpus_the_score_is_the_mean_of_bleu_and_rouge():
    result = score("pick up the red cube", "pick up the blue cube")
    assert result.cider is None
    assert result.total == (result.bleu + result.rouge_l) / 2
    assert score("pick up the red cube", "pick up the blue cube", None) == result


def test_unrelated_answers_score_zero():
    assert score("pick up the cube", "nothing visible here", Cider(CORPUS)).total == 0.0
    assert score("pick up the cube", "", Cider(CORPUS)).total == 0.0


def test_weights_of_the_paper():
    cider = Cider(CORPUS)
    reference, candidate = "pick up the red cube", "pick up the blue cube"
    result = score(reference, candidate, cider)
    assert result.bleu == bleu(reference, candidate)
    assert result.rouge_l == rouge_l(reference, candidate)
    # all n-grams of the reference are rare here, so the plain CIDEr is its own share of 10
    assert result.cider == pytest.approx(cider.score(reference, candidate))
    assert result.total == pytest.approx((result.bleu + result.rouge_l + 0.1 * result.cider) / 3)


def test_short_answers_are_normalised_by_their_own_maximum():
    cider = Cider(CORPUS)
    assert cider.score("open the gripper", "open the gripper") == pytest.approx(7.5)  # no 4-gram
    assert score("open the gripper", "open the gripper", cider).cider == 10.0


@settings(max_examples=100, deadline=None)
@given(ANSWERS, ANSWERS)
def test_scores_are_within_their_range(reference, candidate):
    result = score(reference, candidate, Cider(CORPUS))
    if result is None:
        assert reference == candidate == "", "two texts without a word"
        return
    assert 0.0 <= result.total <= 1.0
    assert result.cider is None or 0.0 <= result.cider <= 10.0


def test_a_batch_has_the_scores_of_its_pairs():
    cider = Cider(["pick it up", *CORPUS])
    references = [*CORPUS, "", "yes"]
    candidates = ["pick up the cube", "", "open the gripper", "the table", "", "no"]
    for measure in (cider, None, Cider(["pick it up"] * 3)):
        together = score_batch(references, candidates, measure)
        for index, pair in enumerate(zip(references, candidates, strict=True)):
            alone = score(*pair, measure)
            if alone is None:
                assert pair == ("", "")
                assert np.isnan(together.total[index])
                continue
            assert (alone.total, alone.bleu, alone.rouge_l) == (
                together.total[index],
                together.bleu[index],
                together.rouge_l[index],
            )
            assert np.isnan(together.cider[index]) if alone.cider is None else alone.cider == together.cider[index]
