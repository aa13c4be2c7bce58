"""Texts made comparable."""

from __future__ import annotations

import re
import unicodedata

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u30ff"
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001aff0-\U0001b16f"
    "\U00020000-\U0003ffff"
)
"""Characters of scripts that write no spaces between words: Thai, Lao, Myanmar, Khmer, Han, kana, Bopomofo."""
MARKS = "".join(chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code))[0] == "M")
GROUPED = re.compile(r"(?<![\w.,])([-+]?\d{1,3})((?:,\d{3})+)(?!\d|,\d)")
TOKEN = re.compile(rf"(?<![\w.])[-+]?(?:\d+(?:\.\d+)?|\.\d+)|\d+(?:\.\d+)?|[^\W\d_](?:[^\W\d_]|[{MARKS}])*")
CHARACTER_UNITS = {"毫米": "mm", "公分": "cm", "厘米": "cm", "公里": "km", "千米": "km", "英寸": "in", "英尺": "ft"}
CHARACTER_UNITS |= {"公尺": "m", "米": "m", "メートル": "m", "センチ": "cm", "ミリ": "mm", "キロ": "km"}

CUE = (
    r"\b(?:answer|option|choice|respuesta|réponse|antwort|risposta|resposta|ответ|정?답(?:은|는)?)\b"
    r"|正\s*解|答\s*案|答\s*え|[回解]\s*答|[选選]\s*[项項]|[选選]\s*[择擇]|[选選]"
)
CUED = re.compile(rf"(?:{CUE})\s*(?P<says>(?:\b(?:is|es|est|ist|è|é)\b|[是为為は])?\s*[:=]?)\s*", re.IGNORECASE)

SAID = re.compile(r"\w+(?:'\w+)*|\n|[^\w\s()\[\]{}<>\"'*`$“”]")
FILLER = (
    r"(?:(?:think|believe|say|be|it|that|this|the|is|are|was|on|in|at|to|of|an?|option|choice|answer|letter"
    r"|choose|pick|select|go|with|take|[是选選会會可能应應该該]) )*"
)
NEGATES = re.compile(
    r"(?<!\S)(?:not|cannot|never|nor|neither|except|instead of|rather than|(?:any|every)thing but|all but"
    rf"|rul(?:es?|ed|ing) out|(?:eliminat|exclud)(?:es?|ed|ing)|\w+n't|[不非别]|排 除) {FILLER}\Z"
)
"""The end of a text by `in_words`, in small letters, which says that what follows is not meant."""


def in_words(text: str) -> str:
    """The words and marks of a spaced text, a space behind each; without brackets and quotes, a new line is ";"."""
    return "".join(";" * (one == "\n") + one.strip() + " " for one in SAID.findall(text))


def is_negated(before: str) -> bool:
    """Whether a spaced text ends in a negation of what follows: "not", "I don't think it is", "I rule out"."""
    return bool(NEGATES.search(in_words(before[-NEAR:]).lower()))


NEAR = 200
"""Characters around a word that are searched for its negation."""


def spaced(text: str) -> str:
    """A text in one form: full-width letters as others, units of length in Latin letters, 1½ as 1 1/2, spaces between
    the characters of a script that has none; without numbers of more than 300 digits, which are none."""
    text = unicodedata.normalize("NFKC", re.sub(r"(?<=\d)(?=[¼-¾⅐-⅞↉])", " ", text)).translate(
        {0x2212: "-", 0x2010: "-", 0x2044: "/", 0x2019: "'"}
    )
    text = re.sub(r"[\d.,/]+", lambda run: " " if re.search(r"(?:\d,?){301}", run[0]) else run[0], text)
    names = "|".join(CHARACTER_UNITS)
    text = re.sub(rf"(?<=\d)\s*({names})", lambda found: f" {CHARACTER_UNITS[found[1]]} ", text)
    return re.sub(rf"([{UNSPACED}][{MARKS}]*)", r" \1 ", text)


def plain(text: str) -> str:
    """A text in small letters, with its words and numbers alone, a space between them; 1,200 is 1200, .50 is 0.5."""
    small = GROUPED.sub(lambda found: found[1] + found[2].replace(",", ""), spaced(text).casefold())
    return " ".join(plain_number(token) if token[-1].isdecimal() else token for token in TOKEN.findall(small))


def plain_number(digits: str) -> str:
    """Digits without a plus, without zeros behind the last one that counts, and with one before the point."""
    digits = re.sub(r"^(-?)\.", r"\g<1>0.", digits.removeprefix("+"))
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def after_answer(text: str) -> str:
    """The part of a spaced text behind the last "answer is", "answer:" or the like; else behind the last "answer",
    "option" or "choice" alone; the whole text where there is none."""
    return cued(text)[0]


def cued(text: str) -> tuple[str, bool]:
    """That part, and whether the text says that it is the answer; "not the answer: B" has none."""
    last = max((found.end() for found in re.finditer(r"\w", text)), default=0)
    said = [one for one in CUED.finditer(text) if one.end() < last and not is_negated(text[: one.start()])]
    strict = [found for found in said if found["says"].strip()]
    chosen = (strict or said)[-1:]
    return (text[chosen[0].end() :] if chosen else text), bool(strict)


def first_paragraph(text: str) -> str:
    """The part of a text before its first empty line with something before it."""
    return re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0]
