"""Any text: the F1 measure of the words in common with the answer, as in SQuAD (Rajpurkar et al., EMNLP 2016)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any

from merton_studies.harness.templates.score_named import named_choice
from merton_studies.harness.templates.score_quantity import with_quantities
from merton_studies.harness.templates.score_truth import TRUTHS, said_truth
from merton_studies.harness.templates.score_words import after_answer, first_paragraph, plain, spaced


def score_free_text(case: dict[str, Any], prediction: str) -> float:
    """0..1; the best of the answer and those that are right too. The same words are 1, in any order.

    A right answer that is one letter is that of a choice listed in the question; one that is yes, no, true or false is
    read as such.
    """
    return max(likeness_of_texts(case["text"], right, prediction) for right in (case["answer"], *case["also"]))


def likeness_of_texts(question: str, right: str, said: str) -> float:
    """0..1 for one right answer; the better of the whole text, and of its part behind "the answer is" or before an
    empty line."""
    if re.fullmatch(r"\s*[A-Za-z]\s*", right):
        choices = listed_choices(question)
        place = ord(right.strip().upper()) - ord("A")
        return 1.0 if place < len(choices) and named_choice(choices, said) == choices[place] else 0.0
    if plain(right) in TRUTHS:
        return 1.0 if said_truth(said) == TRUTHS[plain(right)] else 0.0
    whole, wanted = spaced(said), spaced(right)
    parts = (whole, first_paragraph(after_answer(whole)))
    return max(max(word_f1(wanted, part), word_f1(with_quantities(wanted), with_quantities(part))) for part in parts)


SENTENCE_END = re.compile(r"(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMt)(?<!\bSt)[.!?]\s+(?=[A-Z])")


def listed_choices(question: str) -> list[str]:
    """The choices that a question lists by capital letters from A on; where it lists none, 26 without words.

    A sentence behind the last one, such as "Answer with the letter.", is no part of it.
    """
    question = unicodedata.normalize("NFKC", question)
    marks = list(re.finditer(r"(?<![\w'])([A-Z])\s?[.):、]\s*(?=\S)", question))
    runs = [marks[place:] for place, mark in enumerate(marks) if mark[1] == "A"]
    for run in reversed(runs):
        count = next((at for at, mark in enumerate(run) if mark[1] != chr(65 + at)), len(run))
        if count > 1:
            ends = [*(mark.start() for mark in run[1:count]), len(question)]
            pieces = [question[mark.end() : end].strip() for mark, end in zip(run, ends, strict=False)]
            lines = [piece.partition("\n")[0] for piece in pieces]
            if not any(SENTENCE_END.search(line) for line in lines[:-1]):  # else it is part of the choices
                lines[-1] = SENTENCE_END.split(lines[-1])[0]
            texts = [line.strip(" .,;(、") for line in lines]
            if len(set(texts)) == count:
                return texts
    return ["•" * place for place in range(1, 27)]


def word_f1(right: str, said: str) -> float:
    """2 x common words / all words, without articles unless there is nothing else; without any words, 0."""
    first, second = Counter(content(right)), Counter(content(said))
    total = sum(first.values()) + sum(second.values())
    return 2 * sum((first & second).values()) / total if total else 0.0


def content(text: str) -> list[str]:
    """The words of a spaced text without articles; with them where it has no others.

    An article stands before a word; "A" in the middle of a sentence is a name, unless the whole text is in capitals.
    """
    parts, place = [], 0
    for found in re.finditer(r"(?<![\w'])(?:a|an|the)(?=\s+\w)", text, re.IGNORECASE):
        before = text[: found.start()].rstrip()
        if found[0] != "A" or text.isupper() or not before or before[-1] in ".!?:;":
            parts.append(text[place : found.start()])
            place = found.end()
    return plain(" ".join([*parts, text[place:]])).split() or plain(text).split()
