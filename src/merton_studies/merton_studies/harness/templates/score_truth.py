"""Yes and no."""

from __future__ import annotations

import re

from merton_studies.harness.templates.score_words import after_answer, in_words, plain, spaced

TRUTHS = {"yes": "yes", "yeah": "yes", "yep": "yes", "true": "yes", "no": "no", "nope": "no", "false": "no"}
CHARACTERS = {"是": "yes", "对": "yes", "對": "yes", "はい": "yes", "不": "no", "否": "no", "没": "no", "沒": "no"}
CHARACTERS |= {"いいえ": "no"}
TRUTHS |= {"네": "yes", "예": "yes", "아니요": "no", "아니오": "no"}
NEGATED = re.compile(
    r"(?<!\S)(?:(?P<unsaid>(?:cannot|can't|(?:can|do|does|will|would) not|don't|won't) say)|not|\w+n't) "
    rf"(?P<truth>{'|'.join(TRUTHS)}) "
)


def said_truth(text: str) -> str:
    """ "yes" or "no" if a text begins with it or another word for it, or has it and not the other; else "".

    "Not yes" is no, "I cannot say yes" is neither.
    """
    part = in_words(after_answer(spaced(text)).casefold())
    part = plain(NEGATED.sub(turned, part))
    for name, truth in CHARACTERS.items():
        if part.replace(" ", "").startswith(name):
            return truth
    words = part.split()
    said = [TRUTHS[word] for word in words if word in TRUTHS]
    return said[0] if said and (words[0] in TRUTHS or len(set(said)) == 1) else ""


def turned(found: re.Match[str]) -> str:
    """The truth that a negated word means; both where neither is said."""
    return "yes no " if found["unsaid"] else "no " if TRUTHS[found["truth"]] == "yes" else "yes "
