"""BLEU, ROUGE-L and CIDEr against independent implementations, and their laws."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merton.cognition.text import Cider, bleu, rouge_l, words
from merton.errors import InputError

REFERENCES = [
    "move the arm above the red cube and close the gripper",
    "push the blue cylinder to the left side of the table",
    "pick up the green cube and place it on the mat",
    "the red cube is on the left of the table",
    "open the gripper",
]
CANDIDATES = [
    "move the arm to the red cube and close the gripper",
    "push the blue cube to the right",
    "pick up the green cube and place it on the mat",
    "a yellow cylinder stands alone",
    "open the the gripper slowly",
]
# nltk 3.10.4, sentence_bleu with SmoothingFunction().method3
BLEU_GOLDEN = [0.7016879391277372, 0.17359100558362855, 1.0, 0.0, 0.28117066259517454]
# pycocoevalcap 1.2, Rouge().calc_score
ROUGE_GOLDEN = [0.9090909090909091, 0.5341506129597198, 1.0, 0.0, 0.7854077253218884]
# pycocoevalcap 1.2, CiderScorer over the five pairs
CIDER_GOLDEN = [6.670953596651062, 2.392137473665545, 10.0, 0.0, 3.277622442998495]

SENTENCES = st.lists(st.sampled_from(["the", "a", "red", "cube", "left", "push", "table", "up"]), max_size=14).map(
    " ".join
)


@pytest.mark.parametrize("index", range(5))
def test_golden_values(index):
    pair = REFERENCES[index], CANDIDATES[index]
    assert bleu(*pair) == pytest.approx(BLEU_GOLDEN[index], abs=1e-12)
    assert rouge_l(*pair) == pytest.approx(ROUGE_GOLDEN[index], abs=1e-12)
    assert Cider(REFERENCES).score(*pair) == pytest.approx(CIDER_GOLDEN[index], abs=1e-9)


def test_words():
    assert words("Pick up the RED cube, then don't move: 0.5 m!") == [
        "pick",
        "up",
        "the",
        "red",
        "cube",
        "then",
        "don't",
        "move",
        "0.5",
        "m",
    ]
    assert words(" ... ") == []
    assert words("don\u2019t") == ["don't"]
    assert words("Stop.") == ["stop"]
    with pytest.raises(InputError, match="NoneType"):
        words(None)


@settings(max_examples=150, deadline=None)
@given(SENTENCES, SENTENCES)
def test_laws(reference, candidate):
    corpus = Cider([*REFERENCES, reference])
    for measure, maximum in ((bleu, 1), (rouge_l, 1), (corpus.score, 10)):
        assert 0 <= measure(reference, candidate) <= maximum
        assert measure(reference, candidate) <= measure(reference, reference) + 1e-9
        assert measure(reference.upper() + " !", candidate) == measure(reference, candidate)
    assert bleu(reference, reference) == rouge_l(reference, reference) == 1
    if not set(words(reference)) & set(words(candidate)) and (reference or candidate):
        assert bleu(reference, candidate) == rouge_l(reference, candidate) == 0


@settings(max_examples=150, deadline=None)
@given(SENTENCES, SENTENCES)
def test_rouge_follows_from_the_textbook_subsequence(reference, candidate):
    first, second = reference.split(), candidate.split()
    length = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            length[i + 1][j + 1] = length[i][j] + 1 if a == b else max(length[i][j + 1], length[i + 1][j])
    common = length[-1][-1]
    if common:
        precision, recall = common / len(second), common / len(first)
        assert rouge_l(reference, candidate) == pytest.approx(2.44 * precision * recall / (recall + 1.44 * precision))


def test_short_and_empty_answers():
    for text in ("yes", "pick up", "pick up it", ""):
        assert bleu(text, text) == rouge_l(text, text) == 1.0
    for measure in (bleu, rouge_l):
        assert measure("", "pick up") == measure("pick up", "") == 0.0
        assert measure("...", "!") == 1.0


def test_long_babble_is_scored_at_once():
    assert rouge_l("a b c " * 3000, "c a b d " * 3000) == pytest.approx(0.84, abs=0.1)


def test_cider_corpus():
    for corpus in ([], ["one answer only"], "not a list of answers"):
        with pytest.raises(InputError, match="at least two"):
            Cider(corpus)
    assert Cider(["pick up the cube"] * 3).score("pick up the cube", "pick up the cube") == 0.0
    rare = Cider(REFERENCES)
    # a rare word weighs more than one that is in every answer
    assert rare.score(REFERENCES[0], "gripper arm above") > rare.score(REFERENCES[0], "the the the")
    assert rare.score("unseen words of another study", "unseen words of another study") == pytest.approx(10)
