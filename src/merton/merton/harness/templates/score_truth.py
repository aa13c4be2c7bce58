"""Yes and no."""

from __future__ import annotations

import re

from merton.harness.templates.score_words import after_answer, plain, spaced

TRUTHS = {"yes": "yes", "yeah": "yes", "yep": "yes", "true": "yes", "no": "no", "nope": "no", "false": "no"}
CHARACTERS = {"是": "yes", "对": "yes", "對": "yes", "はい": "yes", "不": "no", "否": "no", "没": "no", "沒": "no"}
CHARACTERS |= {"いいえ": "no"}


def said_truth(text: str) -> str:
    """ "yes" or "no" if a text begins with it or another word for it, or has it and not the other; else ""."""
    part = plain(after_answer(spaced(text)))
    part = re.sub(r"\b(?:not|isn t) (true|false)\b", lambda found: "false" if found[1] == "true" else "true", part)
    for name, truth in CHARACTERS.items():
        if part.replace(" ", "").startswith(name):
            return truth
    words = part.split()
    said = [TRUTHS[word] for word in words if word in TRUTHS]
    return said[0] if said and (words[0] in TRUTHS or len(set(said)) == 1) else ""
