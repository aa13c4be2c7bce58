"""Texts that are no answer: those without a word, and refusals. They have no score: a failure is never a score.

Two refusals share their words and would score 1, so that a model that never answers would be perfectly faithful. Ours:
a text is a refusal if every clause of it apologises, refuses, speaks of the model itself or asks for something, in the
English forms below; one clause about anything else, such as "the cup is left", makes it an answer. So "I cannot see the
image" is a refusal, and "I cannot see a red cup on the table" an answer. It errs towards answers: a refusal in other
words, or in another language, is scored by its words as before.
"""

from __future__ import annotations

import re
from functools import lru_cache

from merton.cognition.words import words

_SHORT = (
    (r"\bca(?:n't|nnot|n not|nt)\b", "cannot"),
    (r"\bwon't\b", "will not"),
    (r"n't\b", " not"),
    (r"\bi'm\b", "i am"),
    (r"\bwe're\b", "we are"),
    (r"\bi'd\b", "i would"),
    (r"\bi've\b", "i have"),
    (r"\bit's\b", "it is"),
    (r"\ba\.i\.", "ai"),
)
"""Spellings that are brought to one form, in this order."""
QUOTED = 120
"""Most characters of a refusal in the reason."""
_LONGEST = 1_000
"""Characters of a refusal; a longer text says something else too."""
_CLAUSE = re.compile(
    r"[.,;:!?\n\u2026\u2013\u2014()\"*]+|\s-\s|\b(?:but|however|therefore|so)\b(?!\s+sorry)"
    r"|\band\b(?=\s+(?:i|cannot)\b)"
)
"""The ends of a clause."""

_MODEL = r"an? (?:[\w-]+ ){0,4}?(?:ai|model|assistant|chatbot)(?: (?:model|assistant|chatbot))?"
_SEEMS = r"(?:it (?:seems|appears|looks) (?:that |like )?)?"
_WHO = (
    r"(?:(?:and )?(?:unfortunately |regrettably )?"
    rf"(?:{_SEEMS}|i am afraid (?:that )?)"
    rf"(?:as {_MODEL} )?(?:i|we) )?"
)
_HOW = r"(?:really |currently |simply |just |actually |still |unfortunately |directly |physically )*"
_NOT = (
    rf"(?:{_WHO}(?:cannot|could not|will not|am unable to|are unable to|am not able to|are not able to|must decline to"
    r"|have to decline to|decline to|refuse to|would rather not|do not have the (?:ability|capability|capacity) to"
    r"|lack the (?:ability|capability) to|am not (?:allowed|permitted|programmed|designed) to|unable to|not able to)"
    rf" {_HOW})"
)
_PICTURE = (
    r"(?:(?:the|this|that|these|those|any|an?|your|its|such) )?"
    r"(?:(?:attached|provided|given|uploaded|shared|actual) )?"
    r"(?:images?|pictures?|photos?|photographs?|screenshots?|attachments?|files?"
    r"|visual (?:content|information|inputs?|data))"
)
_AFTER_PICTURE = (
    r"(?: (?:(?:that )?you\b|provided|attached|uploaded|shared|directly|itself|here|at all|right now"
    r"|at (?:this|the) (?:time|moment)"
    r"|in this (?:conversation|chat|message|context)|(?:because|since|as) (?:i|we|no|none|there|you|an?)\b"
    r"|(?:or|and) (?:i|videos?|pictures?|photos?|files?|other|visual|cannot|am|do|view|see|process|interpret)\b).*)?"
)
_THAT = r"(?:this|that|it|your|the|these|those|such|any)"
_FORMS = (
    # apologies
    r"(?:(?:oh|hi|hello|well) )?(?:(?:i|we) (?:am|are) )?(?:(?:so|very|really|truly|deeply) )?sorry"
    r"(?: about (?:this|that)| for (?:this|that|the|any)\b.*| to say that)?",
    r"(?:(?:my|our|i|we|sincere|please accept my) )*apolog(?:y|ies|ise|ize)(?: for\b.*)?",
    r"unfortunately|regrettably|hello|hi|(?:thank you|thanks)(?: for\b.*)?",
    # the model about itself
    rf"(?:as|being|i am(?: just| only| merely)?) {_MODEL}(?: (?:developed|created|trained|made) by .*)?",
    # refusals of a request
    rf"{_NOT}(?:help|assist)(?: (?:you|with|in|on)\b.*)?",
    rf"{_NOT}(?:comply|answer|respond|reply)(?: (?:with|to|in|{_THAT})\b.*)?",
    rf"{_NOT}(?:continue|proceed|engage|participate)"
    r"(?: (?:with|in) (?:this|that|your|the|such) (?:request|conversation|discussion|topic|question)s?)?",
    rf"{_NOT}(?:do|discuss|fulfil|fulfill|complete|process|support|accommodate|handle)"
    rf"(?: {_THAT}(?: [\w-]+)? ?(?:request|question|topic|prompt|query)s?\b.*| (?:this|that))",
    rf"{_NOT}(?:provide|give|offer|generate|share)(?: you)?(?: (?:with|{_THAT}|an?))* ?"
    r"(?:this|that|answers?|responses?|replies|reply|assistance|help|information|guidance|instructions?|descriptions?)\b.*",
    rf"{_WHO}(?:must |have to |would like to |respectfully )?(?:decline|refuse)(?: {_THAT}(?: \w+)?)?",
    rf"{_WHO}(?:do not feel|am not) comfortable (?:answering|with|providing|doing)\b.*",
    r"it is not possible for me to (?:help|assist|answer|respond|comply)\b.*",
    r"(?:that|this) is (?:not something|something) i (?:can|cannot|could|am able to) (?:help|assist|do)\b.*",
    r"(?:this|that|your|the) (?:request|question|prompt|content)(?: [\w]+)? (?:violates|goes against|is against) .*",
    # refusals of the image
    rf"{_NOT}(?:see|view|process|analy[sz]e|interpret|access|display|open|examine|read|perceive|look at|load|describe)"
    rf"(?: (?:or|and) \w+)* {_PICTURE}{_AFTER_PICTURE}",
    rf"{_WHO}do not (?:see|have|have access to|receive|have the ability to see) {_PICTURE}{_AFTER_PICTURE}",
    rf"{_WHO}(?:do not have|lack) (?:the (?:ability|capability|capacity) to (?:see|view)|eyes|vision)"
    rf"(?: {_THAT} scene)?",
    rf"{_SEEMS}(?:there is|i see) no {_PICTURE}{_AFTER_PICTURE}|{_SEEMS}no {_PICTURE}(?: (?:was|is|has been))?"
    r"(?: (?:provided|attached|given|uploaded|available|shared))?",
    rf"{_PICTURE} (?:cannot|could not) be (?:displayed|loaded|opened|processed|viewed|accessed)",
    rf"{_PICTURE} (?:is|was|could|did|does|has)(?: been)? not (?:been )?(?:be )?"
    r"(?:available|load|loaded|provided|attached|visible to me|accessible)\b.*",
    # requests and offers
    r"(?:(?:could|can|would) you )?(?:please )?(?:kindly )?"
    r"(?:provide|upload|share|attach|resend|send|describe|rephrase|give me|tell me) "
    rf"(?:(?:me|us) )?(?:it|them|one|(?:with )?(?:more|further|additional|{_PICTURE}"
    r"|(?:an?|the|your) (?:\w+ )?(?:description|detail|question|request|text|information|context)s?))\b.*",
    r"(?:please )?try again(?: later)?",
    r"(?:please )?let me know (?:if|how)\b.*",
    r"if you (?:can|could|would|provide|describe|share|upload)\b.*",
    r"if you (?:have|need|want) (?:any|other|another|more|further|help|assistance|me|questions?)\b.*",
    r"(?:feel free|is there anything|how (?:can|may) i (?:help|assist)|what else can i)\b.*",
    r"(?:and )?i (?:will|would|can|could|am)(?: be)? (?:(?:happy|glad|here) to (?:help|assist|answer|try)"
    r"|do my best to (?:help|assist|answer))\b.*",
)
_EMPTY_CLAUSE = re.compile("|".join(f"(?:{form})" for form in _FORMS))
"""A clause that says nothing about a scene."""
_REFUSES = re.compile(
    r"\bsorry\b|apolog|cannot|\bnot\b|\bno\b|unable|decline|refuse|\bas an?\b|\bi am\b|violates|against|something i"
)
"""A word of those forms that a polite answer ("please provide ...") may lack."""


@lru_cache(maxsize=65_536)
def is_refusal(text: str) -> bool:
    """Whether a text refuses to answer, by the rule of this module; False for a text without a word.

    Case, punctuation and the form of an apostrophe do not count.
    """
    if len(text) > _LONGEST:
        return False
    plain = " ".join(text.lower().replace("\u2019", "'").split(" "))
    for short, whole in _SHORT:
        plain = re.sub(short, whole, plain)
    if not _REFUSES.search(plain):
        return False
    clauses = [" ".join(clause.split()) for clause in _CLAUSE.split(plain)]
    clauses = [clause for clause in clauses if clause.strip("'-_ ")]
    return bool(clauses) and all(_EMPTY_CLAUSE.fullmatch(clause) for clause in clauses)


def unanswered(reference: str | None, candidate: str | None) -> tuple[str, str]:
    """Why each of two answers is none, as a clause; "" for one that is an answer, and for None: there is no text.

    A refusal never is an answer. Two texts without a word are none, nor is one beside a refusal;
    one beside an answer is what the model had to say, and scores 0.

    Raises InputError if one is not text.
    """
    reasons = [None if text is None else _refusal(text) for text in (reference, candidate)]
    silent = [text is not None and not words(text) for text in (reference, candidate)]
    found = [
        "the answer has no word" if mine and (others or other) else reason or ""
        for reason, mine, others, other in zip(reasons, silent, reversed(silent), reversed(reasons), strict=True)
    ]
    return found[0], found[1]


def _refusal(text: str) -> str:
    """The reason, with the text on one line; "" for an answer."""
    if not isinstance(text, str) or not is_refusal(text):
        return ""
    line = " ".join(text.split())
    return f'the answer is a refusal: "{line if len(line) <= QUOTED else f"{line[: QUOTED - 1]}…"}"'
