"""The choice that a text names, by its letter or in its words."""

from __future__ import annotations

import re

from merton.harness.templates.score_words import cued, plain, spaced

LONE = re.compile(r"(?<![\w'])(?<!\w-)([A-Z])(?![\w'])(?!-\w)")
REJECTS = re.compile(
    r"(?:(?:\b(?:not|nor|neither|than|except|over|instead of)|n't)\s+(?:(?:option|choice|answer)\s+)?"
    r"|不\s*[是选選]?\s*)\W?\Z",
    re.IGNORECASE,
)
REJECTED = re.compile(r"\W{0,2}\s*\b(?:is|are|was)(?:n't|\s+(?:not|wrong|incorrect|false))\b")
CONCLUDES = re.compile(r"\b(?:so|therefore|thus|hence|choose|pick|select|go with)\b|所\s*以|因\s*此", re.IGNORECASE)
AFTER_LETTER = "is|was|because|since|as|and|or|but"
"""Before these a capital A is no article."""


def named_choice(choices: list[str], prediction: str) -> str | None:
    """The choice that a prediction names; None for none, or for several.

    In this order: a letter or one of the texts alone; the same behind "the answer is", or in the first or last line;
    the letter that `stated_letter` finds there, or behind "so" and the like, behind "the answer is" or else in the
    whole text; the one text that is mentioned, of which another may be a part; "A" directly behind "the answer is".
    """
    letters = {chr(65 + place): choice for place, choice in enumerate(choices)}
    plains = [plain(choice) for choice in choices]
    texts = {text: choice for text, choice in zip(plains, choices, strict=True) if text and plains.count(text) == 1}
    text = spaced(prediction)
    rest, strict = cued(text)
    lines = [line for line in rest.splitlines() if line.strip()]
    for parts in ((text,), (rest,), (*lines[:1], *lines[-1:])):
        alone = {one for one in (named_alone(part, letters, texts) for part in parts) if one is not None}
        if len(alone) == 1:
            return alone.pop()
    for part in (rest,) if strict else (text, rest):
        for piece in (raised(part, part != text), CONCLUDES.split(part)[-1]):
            letter = stated_letter(piece, set(letters))
            if letter:
                return letters[letter]
    for part in (rest, text):
        mentioned = [one for one in texts if f" {one} " in f" {plain(part)} "]
        longest = max(mentioned, key=len, default="")
        if mentioned:
            return texts[longest] if all(f" {one} " in f" {longest} " for one in mentioned) else None
    return letters["A"] if rest != text and re.match(r"\W*A(?![\w'])", rest) and not LONE.findall(rest)[1:] else None


def named_alone(part: str, letters: dict[str, str], texts: dict[str, str]) -> str | None:
    """The choice of a text that is nothing but its letter or its words."""
    alone = re.fullmatch(r"[\W_]*([A-Za-z])[\W_]*", part)
    if alone and alone[1].upper() in letters:
        return letters[alone[1].upper()]
    return texts.get(plain(part))


def raised(part: str, behind: bool) -> str:
    """The part with small letters that stand for choices as capitals: "(b)", "b)" at the beginning, and "b" directly
    behind "the answer is"."""
    part = re.sub(r"\(([a-z])\)", lambda found: found[0].upper(), part)
    first = r"^(\W*[a-z])(?=[.):](?!\w))" + (r"|^(\W*[b-hj-z])(?![\w'])" if behind else "")
    return re.sub(first, lambda found: found[0].upper(), part)


def stated_letter(part: str, letters: set[str]) -> str | None:
    """The letter that a text states: the one that it begins with, or the only one, or the only one before ".", ")" or
    ":". An article, "I" before a word, and letters that are rejected ("not A", "A is wrong") are none."""
    found = [one for one in LONE.finditer(part) if one[1] in letters and not is_other(part, one)]
    names = {one[1] for one in found}
    if found and len(names) > 1 and leads(part, found):
        return found[0][1]
    marked = {one[1] for one in found if re.match(r"[.):](?=\s|$|\W)", part[one.end() :])}
    return next((several.pop() for several in (names, marked) if len(several) == 1), None)


def is_other(part: str, one: re.Match[str]) -> bool:
    """Whether a lone capital does not state a choice."""
    before, behind = part[: one.start()], part[one.end() :]
    word = re.match(r"\s+([a-z]\w*)", behind)
    if word and (one[1] == "I" or (one[1] == "A" and not re.fullmatch(AFTER_LETTER, word[1]))):
        return True
    return bool(REJECTS.search(before) or REJECTED.match(behind))


def leads(part: str, found: list[re.Match[str]]) -> bool:
    """Whether a text begins with the first of its letters, apart from what follows, and lists no choices."""
    first, second = found[:2]
    behind = part[first.end() :]
    if re.search(r"\w", part[: first.start()]) or not re.match(r"\s*(?:[^\w\s'&/+]|\n|(?:because|since|as)\b)", behind):
        return False
    if re.fullmatch(r"(?:[\W_]|\b(?:and|or)\b)*", part[first.end() : second.start()]):
        return False
    return not any(one[1] != first[1] and re.match(r"[.):]\s+\S", part[one.end() :]) for one in found)
