"""The choice that a text names, by its letter or in its words."""

from __future__ import annotations

import re

from merton_studies.harness.templates.score_words import (
    FILLER,
    NEAR,
    NEGATES,
    cued,
    in_words,
    is_negated,
    plain,
    spaced,
)

LONE = re.compile(r"(?<![\w'])(?<!\w-)([A-Z])(?![\w'])(?!-\w)")
ITEM = r"(?:(?:option|choice|answer) )?[A-Z•]"
LISTED = re.compile(rf"(?<!\S){ITEM} (?:(?:, {ITEM} )+(?:, )?)?(?:and|or|nor|&) {ITEM} (?!(?:is|was) )")
"""Letters that are taken or rejected together: "A or B", "A, B and C"; not "A and B is wrong"."""
COMPARES = re.compile(rf"(?<!\S)(?:than|over) {FILLER}\Z")
IS = r"(?:[^\w\s] ){0,2}(?:is|are|was|were)"
CANNOT = r"(?:[^\w\s] ){0,2}(?:cannot|can't|can not) be "
WRONG = r"(?:(?:the |an? )?(?:wrong|incorrect|false)|impossible|(?:ruled out|eliminated|excluded)) "
REJECTED = re.compile(
    rf"{IS} {WRONG}|(?:[^\w\s] ){{0,2}}(?:must|can|could|should) be {WRONG}"
    rf"|(?:{IS}(?:n't| not) |{CANNOT})(?:(?:right|correct|true|possible|it|an option|the) |[^\w\s] |\Z)"
    r"|(?:[选選] [项項] )?(?:是 )?(?:不 [对對正是行可]|[错錯]) "
)
DENIED = re.compile(rf"(?:{IS}(?:n't| not) |{CANNOT})(?!{WRONG})")
CONCLUDES = re.compile(r"\b(?:so|therefore|thus|hence|choose|pick|select|go with)\b|所\s*以|因\s*此", re.IGNORECASE)
AFTER_LETTER = "is|was|because|since|as|and|or|but"
"""Before these a capital A is no article."""


def named_choice(choices: list[str], prediction: str) -> str | None:
    """The choice that a prediction names; None for none, or for several.

    In this order: a letter or one of the texts alone; the same behind "the answer is", or in the first or last line;
    the letter that `stated_letter` finds there, or behind "so" and the like, behind "the answer is" or else in the
    whole text; the one text that is mentioned, of which another may be a part; "A" directly behind "the answer is".
    Letters and texts that the prediction rejects count for nothing.
    """
    letters = {chr(65 + place): choice for place, choice in enumerate(choices)}
    plains = [plain(choice) for choice in choices]
    texts = {text: choice for text, choice in zip(plains, choices, strict=True) if text and plains.count(text) == 1}
    text = re.sub(r"(?<![^\W_])([A-Z])(?=[가-힣])", r"\1 ", spaced(prediction))  # Korean particles: B입니다
    rest, strict = cued(text)
    lines = [line for line in rest.splitlines() if line.strip()]
    for parts in ((text,), (rest,), (*lines[:1], *lines[-1:])):
        alone = {one for one in (named_alone(part, letters, texts) for part in parts) if one is not None}
        if len(alone) == 1:
            return alone.pop()
    for part in (rest,) if strict else (text, rest):
        for piece in (raised(part, part != text), concluded(part)):
            letter = stated_letter(piece, set(letters))
            if letter:
                return letters[letter]
    for part in (rest, text):
        mentioned = mentioned_texts(part, letters, texts)
        longest = max(mentioned, key=len, default="")
        if mentioned:
            return texts[longest] if all(f" {one} " in f" {longest} " for one in mentioned) else None
    first = re.match(r"\W*A(?![\w'])", rest)
    is_first = rest != text and first and not LONE.findall(rest)[1:] and not is_rejected("", rest[first.end() :])
    return letters["A"] if is_first else None


def concluded(part: str) -> str:
    """The part behind the last "so" and the like that is not negated, as in "I do not choose"."""
    said = [found.end() for found in CONCLUDES.finditer(part) if not is_negated(part[: found.start()])]
    return part[said[-1] :] if said else part


def mentioned_texts(part: str, letters: dict[str, str], texts: dict[str, str]) -> list[str]:
    """The texts of choices that a part mentions and does not reject; "cube" is not mentioned in "red cube"."""
    clauses = re.split(r"([,.;:!?](?!\w)|[。、\n])", part)
    marked = "".join(f" {plain(one)} " if place % 2 == 0 else f" {one} " for place, one in enumerate(clauses))
    marked = re.sub(" +", " ", re.sub(r"(\wn) t ", r"\1't ", f" {marked} ".replace("\n", ";")))
    names = {choice: letter for letter, choice in letters.items()}
    for one in sorted(texts, key=len, reverse=True):
        words = "(?: [,.;:!?。、])* ".join(map(re.escape, one.split()))
        marked = re.sub(rf"(?<= ){words}(?= )", names[texts[one]], marked)
    found = [one for one in LONE.finditer(marked) if not is_rejected(marked[: one.start()], marked[one.end() :])]
    kept = {letters[one[1]] for one in found if one[1] in letters}
    return [text for text, choice in texts.items() if choice in kept]


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
    near, text = in_words(before[-NEAR:]).lower(), in_words(behind[:NEAR])
    return bool(COMPARES.search(near) or DENIED.match(text)) or is_rejected(before, behind)


def is_rejected(before: str, behind: str) -> bool:
    """Whether the letter between two texts is rejected, alone or in a list: "not A or B", "A and B are wrong"."""
    text = f"{in_words(before[-NEAR:])}• {in_words(behind[:NEAR])}"
    place = text.index("•")
    spans = (one.span() for one in LISTED.finditer(text))
    start, end = next((span for span in spans if span[0] <= place < span[1]), (place, place + 2))
    return bool(NEGATES.search(text[:start].lower()) or REJECTED.match(text[end:]))


def leads(part: str, found: list[re.Match[str]]) -> bool:
    """Whether a text begins with the first of its letters, apart from what follows, and lists no choices."""
    first, second = found[:2]
    behind = part[first.end() :]
    if re.search(r"\w", part[: first.start()]) or not re.match(r"\s*(?:[^\w\s'&/+]|\n|(?:because|since|as)\b)", behind):
        return False
    if re.fullmatch(r"(?:[\W_]|\b(?:and|or)\b)*", part[first.end() : second.start()]):
        return False
    return not any(one[1] != first[1] and re.match(r"[.):]\s+\S", part[one.end() :]) for one in found)
