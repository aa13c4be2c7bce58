"""Pairs per second of the scores of text and of actions, beside peers; part of tools/bench/bench.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from rapidfuzz.distance import LCSseq
from sacrebleu.metrics.bleu import BLEU
from timing import cpu_seconds

from merton.cognition.score import score_batch as cognition_scores
from merton.cognition.text import Cider, bleu_batch, rouge_l_batch
from merton.decision.score import score_batch as decision_scores
from merton.world.action import checked_chunk

PAIRS = 10_000
FEW = 2000
"""Pairs for peers that take one pair a call."""


def text() -> dict[str, Any]:
    """Pairs per second: answers of 6 to 14 words through BLEU, ROUGE-L, CIDEr and all three; chunks of 8 deltas.

    All answers are different. "study" compares each of 200 reference answers with 50 others, as a study of distortions
    does; "distinct" uses each reference once. One thread, processor time. Peers take one pair a call: sacrebleu and
    bleuscore split texts as we do, rapidfuzz's longest common subsequence gets words and gives no score.
    """
    rng = np.random.default_rng(0)
    chunks = [checked_chunk(np.c_[rng.normal(0, 0.03, (8, 6)), rng.uniform(size=8)], 0.2) for _ in range(PAIRS)]
    result: dict[str, Any] = {"decision_per_s": PAIRS / cpu_seconds(lambda: decision_scores(chunks, chunks[::-1]), 3)}
    for name, distinct in (("study", 200), ("distinct", PAIRS)):
        references, candidates = answers(distinct, rng)
        cider = Cider(dict.fromkeys(references))
        measures = {
            "bleu": lambda r=references, c=candidates: bleu_batch(r, c),
            "rouge_l": lambda r=references, c=candidates: rouge_l_batch(r, c),
            "cider": lambda r=references, c=candidates, corpus=cider: corpus.score_batch(r, c),
            "all_three": lambda r=references, c=candidates, corpus=cider: cognition_scores(r, c, corpus),
        }
        result[name] = {f"{key}_per_s": PAIRS / cpu_seconds(measure, 3) for key, measure in measures.items()}
    some = list(zip(references[:FEW], candidates[:FEW], strict=True))
    return result | {f"{peer}_per_s": FEW / seconds for peer, seconds in peers(some).items()}


def answers(distinct: int, rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """`PAIRS` references, as many of them `distinct`, and for each a candidate with three of ten words exchanged."""
    vocabulary = [f"word{index}" for index in range(200)]
    pool = [list(rng.choice(vocabulary, size)) for size in rng.integers(6, 15, distinct)] * (PAIRS // distinct)
    others = [[word if rng.random() > 0.3 else str(rng.choice(vocabulary)) for word in words] for words in pool]
    return [" ".join(words) for words in pool], [" ".join(words) for words in others]


def peers(pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Processor time of each peer for all pairs [s]; a peer that is not installed is left out."""
    sacrebleu = BLEU(tokenize="none", effective_order=True)
    split = [(reference.split(), candidate.split()) for reference, candidate in pairs]
    result = {
        "sacrebleu": cpu_seconds(lambda: [sacrebleu.sentence_score(c, [r]) for r, c in pairs], 3),
        "rapidfuzz_lcs": cpu_seconds(lambda: [LCSseq.similarity(r, c) for r, c in split], 3),
    }
    try:
        import bleuscore
    except ImportError:
        return result
    return result | {
        "bleuscore": cpu_seconds(lambda: [bleuscore.compute([[r]], [c], smooth=True) for r, c in pairs], 3)
    }
