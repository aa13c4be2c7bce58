"""A choice: right is 1, all else 0, whether the letter or the text was given."""

from __future__ import annotations

import re
from typing import Any

from merton.harness.templates.score_words import after_answer, plain


def score_choice(case: dict[str, Any], prediction: str) -> float:
    """1 if the prediction names the right choice and no other."""
    named = named_choice(case["choices"], prediction)
    return 1.0 if named is not None and named in (case["answer"], *case["also"]) else 0.0


def named_choice(choices: list[str], prediction: str) -> str | None:
    """The choice that a prediction names; None for none, or for several.

    In this order: a letter alone, such as "B", "b)" or "(B)"; one of the texts alone; both again behind "the answer
    is"; one letter marked as such, as in "B. the red cube" or "I say (B)"; the one text that is mentioned, of which
    another may be a part.
    """
    letters = {chr(65 + place): choice for place, choice in enumerate(choices)}
    plains = [plain(choice) for choice in choices]
    texts = {text: choice for text, choice in zip(plains, choices, strict=True) if text and plains.count(text) == 1}
    for part in (prediction, after_answer(prediction)):
        alone = re.fullmatch(r"[\W_]*([A-Za-z])[\W_]*", part)
        if alone and alone[1].upper() in letters:
            return letters[alone[1].upper()]
        if plain(part) in texts:
            return texts[plain(part)]
    rest = after_answer(prediction)
    first = re.match(r"\W*([A-Z])(?![\w'])", rest) if rest != prediction else None
    marked = {first[1]} if first else set(re.findall(r"(?<![\w'])([A-Z])(?:[.):](?=\s|$|\W))", rest))
    if len(marked) == 1 and marked <= set(letters):
        return letters[marked.pop()]
    for part in (rest, prediction):
        mentioned = [text for text in texts if f" {text} " in f" {plain(part)} "]
        longest = max(mentioned, key=len, default="")
        if mentioned:
            return texts[longest] if all(f" {text} " in f" {longest} " for text in mentioned) else None
    return None
