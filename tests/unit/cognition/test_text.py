"""BLEU, ROUGE-L and CIDEr against independent implementations, and their laws."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden import make_text_pairs as golden
from merton.cognition.text import Cider, bleu, bleu_batch, corpus_version, rouge_l, rouge_l_batch, text_scores, words
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
    assert words("cafe\u0301") == words("caf\u00e9"), "the same letter in two pieces and in one"
    assert words("\ufb01ne \uff11") == ["fine", "1"]
    assert words("\u0130stanbul") == ["i\u0307stanbul"], "an accent that has no letter of its own takes no word apart"
    with pytest.raises(InputError, match="NoneType"):
        words(None)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("红色的杯子，在桌子上。", list("红色的杯子在桌子上")),
        ("カップを取る", list("カップを取る")),
        ("杯子 half-open 0.5米, don't", ["杯", "子", "half-open", "0.5", "米", "don't"]),
        ("\uff76\uff8c\uff9f", ["カ", "プ"]),  # half-width kana
        ("𠮟る", ["𠮟", "る"]),
        ("ที่นี่", ["ที่", "นี่"]),  # a consonant with the vowel and tone above it
        ("빨간 컵", ["빨간", "컵"]),
        ("लाल की", ["लाल", "की"]),
        ("مَرْحَبًا", ["مَرْحَبًا"]),
    ],
)
def test_words_of_scripts_without_spaces_and_with_signs(sentence, expected):
    assert words(sentence) == expected


@pytest.mark.parametrize(
    ("reference", "candidate"),
    [
        ("红色的杯子在桌子上", "红色的杯子在桌子左边"),
        ("把蓝色的方块推到桌子左边", "把红色的方块推到桌子的右边"),
        ("杯子在 table 上", "杯子在 table 左边"),
        ("机器人", "人"),
    ],
)
def test_han_is_scored_as_sacrebleu_scores_it(reference, candidate):
    metrics = pytest.importorskip("sacrebleu.metrics", reason="sacrebleu is not installed")
    peer = metrics.BLEU(tokenize="zh", effective_order=True).sentence_score(candidate, [reference]).score / 100
    assert bleu(reference, candidate) == pytest.approx(peer, abs=1e-9)
    assert 0 < rouge_l(reference, candidate) < 1


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


@pytest.fixture(scope="module")
def thousand() -> tuple[list[str], list[str]]:
    pairs, _, _ = golden.read()
    assert len(pairs) == 1000
    return [reference for reference, _ in pairs], [candidate for _, candidate in pairs]


def test_a_thousand_pairs_as_pycocoevalcap_scores_them(thousand):
    references, candidates = thousand
    _, rouge, cider = golden.read()
    assert len({round(value, 3) for value in cider}) > 300  # the file is no collection of zeros and tens
    np.testing.assert_allclose(rouge_l_batch(references, candidates), rouge, atol=1e-6, rtol=0)
    np.testing.assert_allclose(Cider(references).score_batch(references, candidates), cider, atol=1e-6, rtol=0)


def test_the_golden_file_is_what_pycocoevalcap_says_today():
    pytest.importorskip("pycocoevalcap", reason="pycocoevalcap is not installed; its recorded values are tested above")
    pairs, rouge, cider = golden.read()
    live_rouge, live_cider = golden.coco_scores(pairs)
    np.testing.assert_allclose(rouge, live_rouge, atol=1e-9, rtol=0)
    np.testing.assert_allclose(cider, live_cider, atol=1e-9, rtol=0)


def test_a_thousand_pairs_as_sacrebleu_scores_them(thousand):
    from sacrebleu.metrics.bleu import BLEU

    theirs = BLEU(tokenize="none", smooth_method="exp", effective_order=True)
    expected = [
        min(1.0, theirs.sentence_score(candidate, [reference]).score / 100)
        for reference, candidate in zip(*thousand, strict=True)
    ]
    # From Python 3.12 on, sacrebleu adds its logarithms with compensation.
    np.testing.assert_allclose(bleu_batch(*thousand), expected, atol=1e-15, rtol=1e-15)


def test_a_thousand_pairs_as_nltk_scores_them(thousand):
    translate = pytest.importorskip("nltk.translate.bleu_score", reason="nltk is not installed")
    smoothing = translate.SmoothingFunction().method3
    compared = 0
    for reference, candidate, ours in zip(*thousand, bleu_batch(*thousand), strict=True):
        if len(candidate.split()) >= 4:  # nltk has no effective order for shorter ones
            theirs = translate.sentence_bleu([reference.split()], candidate.split(), smoothing_function=smoothing)
            assert ours == pytest.approx(theirs, abs=1e-6), (reference, candidate)
            compared += 1
    assert compared > 800


@pytest.mark.parametrize("batch", [bleu_batch, rouge_l_batch, Cider(REFERENCES).score_batch], ids=lambda f: f.__name__)
def test_what_a_pair_scores_does_not_depend_on_its_batch(batch, thousand, monkeypatch):
    references, candidates = (list(texts[:150]) for texts in thousand)
    together = batch(references, candidates)
    alone = [float(batch([r], [c])[0]) for r, c in zip(references, candidates, strict=True)]
    assert together.tolist() == alone  # to the last bit
    order = random.Random(0).sample(range(150), 150)
    shuffled = batch([references[i] for i in order], [candidates[i] for i in order])
    assert shuffled.tolist() == [alone[i] for i in order]
    monkeypatch.setattr("merton.cognition.text.BATCH", 7)
    assert batch(references, candidates).tolist() == alone


def test_shared_work_changes_nothing(thousand):
    cider = Cider(thousand[0][:40])
    b, r, c, best = text_scores(*thousand, cider)
    assert b.tolist() == bleu_batch(*thousand).tolist()
    assert r.tolist() == rouge_l_batch(*thousand).tolist()
    assert c.tolist() == cider.score_batch(*thousand).tolist()
    assert best.tolist() == cider.score_batch(thousand[0], thousand[0]).tolist()
    assert text_scores(*thousand, None)[2].tolist() == [0.0] * 1000


def test_batches_of_nothing_and_of_unequal_length():
    for batch in (bleu_batch, rouge_l_batch, Cider(REFERENCES).score_batch):
        assert batch([], []).shape == (0,)
        with pytest.raises(InputError, match="2 and 1"):
            batch(["a", "b"], ["a"])
        with pytest.raises(InputError, match="a single text and 1"):
            batch("a", ["a"])
        with pytest.raises(InputError, match="int"):
            batch(["a"], [7])


def test_a_corpus_has_a_version():
    assert corpus_version(REFERENCES) == Cider(REFERENCES).version == Cider(reversed(REFERENCES)).version
    assert corpus_version(["Open the gripper."]) == corpus_version(["open the gripper"])
    others = (REFERENCES[1:], [*REFERENCES, REFERENCES[0]], ["open the", "gripper"], ["open", "the gripper"], [])
    assert len({corpus_version(other) for other in (REFERENCES, *others)}) == 6
    assert corpus_version(["open the gripper"]) == "b64edab1a7c44c4f"  # sha256 of the words
