"""Writes text_pairs.tsv beside this file: 1,000 invented pairs of answers with what pycocoevalcap 1.2 scores them.

pycocoevalcap brings 100 MB of Java archives that Merton has no use for, so it is no dependency of the tests: they read
its numbers from the file, and repeat the comparison live where the package is installed. To make the file again:

    pip install --no-deps --target build/coco pycocoevalcap==1.2
    PYTHONPATH=build/coco python tests/golden/make_text_pairs.py
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

FILE = Path(__file__).with_name("text_pairs.tsv")
NOUNS = [
    "cube",
    "cylinder",
    "block",
    "ball",
    "cup",
    "bottle",
    "drawer",
    "gripper",
    "arm",
    "table",
    "mat",
    "lid",
    "button",
    "handle",
    "plug",
]
ADJECTIVES = ["red", "green", "blue", "yellow", "round", "tall", "small", "half-open", "heavy", "dark"]
VERBS = [
    "pick",
    "push",
    "pull",
    "place",
    "press",
    "pour",
    "twist",
    "insert",
    "move",
    "cover",
    "grasp",
    "lift",
    "slide",
    "turn",
]
PLACES = ["left", "right", "front", "back", "middle", "edge", "corner", "top"]
FORMS = (
    "{v} the {a} {n} and {v} it on the {b} {m}",
    "the {a} {n} is at the {p} of the {m}",
    "{v} the {n}",
    "move the {m} above the {a} {n} then {v} it to the {p}",
    "there is a {a} {n} near the {p} behind the {b} {m} so {v} slowly for 0.5 m",
    "{a} {n} at the {p}",
)


def invented_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Answers and what a distorted image might have made of them: words lost, doubled, replaced, or another answer."""
    rng = random.Random(seed)

    def answer() -> list[str]:
        pools = {"v": VERBS, "a": ADJECTIVES, "b": ADJECTIVES, "n": NOUNS, "m": NOUNS, "p": PLACES}
        return rng.choice(FORMS).format(**{key: rng.choice(pool) for key, pool in pools.items()}).split()

    pairs = []
    for _ in range(count):
        reference, damage = answer(), rng.random()
        candidate = []
        for word in answer() if rng.random() < 0.1 else reference:
            draw = rng.random()
            if draw > 0.3 * damage:
                candidate.append(word if draw < 1 - 0.4 * damage else rng.choice(NOUNS + ADJECTIVES + VERBS))
            if rng.random() < 0.1 * damage:
                candidate.append(word)
        pairs.append((" ".join(reference), " ".join(candidate)))
    return pairs


def coco_scores(pairs: Sequence[tuple[str, str]]) -> tuple[list[float], list[float]]:
    """ROUGE-L and CIDEr of pycocoevalcap, the references being the corpus; raises ImportError without the package."""
    from pycocoevalcap.cider.cider_scorer import CiderScorer
    from pycocoevalcap.rouge.rouge import Rouge

    rouge, cider = Rouge(), CiderScorer(n=4, sigma=6.0)
    for reference, candidate in pairs:
        cider += (candidate, [reference])
    rouge_l = [float(rouge.calc_score([candidate], [reference])) for reference, candidate in pairs]
    return rouge_l, [float(score) for score in cider.compute_score()[1]]


def read() -> tuple[list[tuple[str, str]], list[float], list[float]]:
    """Pairs, ROUGE-L and CIDEr from the file."""
    rows = [line.split("\t") for line in FILE.read_text(encoding="utf-8").splitlines()[1:]]
    return [(row[0], row[1]) for row in rows], [float(row[2]) for row in rows], [float(row[3]) for row in rows]


if __name__ == "__main__":
    invented = invented_pairs(1000, 2026)
    lines = ["reference\tcandidate\trouge_l of pycocoevalcap 1.2\tcider of pycocoevalcap 1.2"]
    for pair, rouge_score, cider_score in zip(invented, *coco_scores(invented), strict=True):
        lines.append(f"{pair[0]}\t{pair[1]}\t{rouge_score:.12g}\t{cider_score:.12g}")
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
