"""Pairs per second of the measures of text and of actions, beside peers; part of tools/bench.py."""

from __future__ import annotations

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from timing import seconds

from merton.cognition.score import score_batch as cognition_scores
from merton.cognition.text import Cider, bleu_batch, rouge_l_batch
from merton.decision.score import score_batch as decision_scores
from merton.world.action import checked_chunk


def text() -> dict[str, float]:
    """Pairs per second: answers of 6 to 14 words through BLEU, ROUGE-L and CIDEr together, chunks of 8 deltas.

    The answers are all different; each of 200 reference answers is compared with 50, as in a study of distortions.
    """
    rng = np.random.default_rng(0)
    vocabulary = [f"word{index}" for index in range(200)]
    pool = [list(rng.choice(vocabulary, size)) for size in rng.integers(6, 15, 200)]
    pairs = [(words, [w if rng.random() > 0.3 else str(rng.choice(vocabulary)) for w in words]) for words in pool * 50]
    references, candidates = [" ".join(one) for one, _ in pairs], [" ".join(other) for _, other in pairs]
    cider = Cider(dict.fromkeys(references))
    chunks = [checked_chunk(np.c_[rng.normal(0, 0.03, (8, 6)), rng.uniform(size=8)], 0.2) for _ in range(10_000)]
    n = len(pairs)
    result = {
        "bleu_per_s": n / seconds(lambda: bleu_batch(references, candidates), 3),
        "rouge_l_per_s": n / seconds(lambda: rouge_l_batch(references, candidates), 3),
        "cider_per_s": n / seconds(lambda: cider.score_batch(references, candidates), 3),
        "all_three_per_s": n / seconds(lambda: cognition_scores(references, candidates, cider), 3),
        "decision_per_s": n / seconds(lambda: decision_scores(chunks, chunks[::-1]), 3),
    }
    sacrebleu = BLEU(tokenize="none", effective_order=True)
    some = list(zip(references[:2000], candidates[:2000], strict=True))
    work = seconds(lambda: [sacrebleu.sentence_score(candidate, [reference]) for reference, candidate in some], 3)
    return result | {"sacrebleu_sentence_score_per_s": len(some) / work}
