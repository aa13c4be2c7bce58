"""Reading of text by the reference implementations, with code of their own (see `merton_studies.harness.reference`)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from merton_studies.harness.reference_negation import is_negated, words_and_marks

_CUES = ("answer", "option", "choice", "respuesta", "réponse", "antwort", "risposta", "resposta", "ответ", "정답", "답")
"""Words behind which an answer is looked for."""
_CHARACTER_CUES = (
    "正解",
    "答案",
    "答え",
    "回答",
    "解答",
    "选项",
    "选項",
    "選项",
    "選項",
    "选择",
    "选擇",
    "選择",
    "選擇",
)
_SHORT_CUES = ("选", "選")
_SAYS = ("is", "es", "est", "ist", "è", "é")
_CHARACTER_SAYS = "是为為は"
_LENGTHS = {
    "mm": ("毫米", "ミリ"),
    "cm": ("厘米", "公分", "センチ"),
    "km": ("公里", "千米", "キロ"),
    "m": ("公尺", "米", "メートル"),
    "in": ("英寸",),
    "ft": ("英尺",),
}
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029),
    (0x3038, 0x303B), (0x3041, 0x30FF), (0x3105, 0x312F), (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x1AFF0, 0x1B16F), (0x20000, 0x3FFFF),
)  # fmt: skip
_TRUE = ("yes", "yeah", "yep", "true", "네", "예")
_FALSE = ("no", "nope", "false", "아니요", "아니오")


def is_word(character: str) -> bool:
    """Whether a character belongs to a word; not of "", which stands for an end of the text."""
    return character.isalnum() or character == "_"


def form(text: str) -> str:
    """One form of what may be written in several: widths of letters, dashes, quotes, units, characters in a row."""
    text = unicodedata.normalize("NFKC", "".join(_fractions_apart(text)))
    for written, meant in (("\u2212", "-"), ("\u2010", "-"), ("\u2044", "/"), ("\u2019", "'")):
        text = text.replace(written, meant)
    text = "".join(_short_numbers(text))
    found = ""
    place = 0
    while place < len(text):
        unit, end = _unit_in_characters(text, place)
        if unit:
            found += f" {unit} "
        elif any(low <= ord(text[place]) <= high for low, high in _UNSPACED):
            end = place + 1
            while end < len(text) and _is_mark(text[end]):
                end += 1
            found += f" {text[place:end]} "
        else:
            found += text[place]
        place = end
    return found


def _fractions_apart(text: str) -> Iterator[str]:
    """The characters of a text, with a space between a digit and a fraction such as ½."""
    for place, character in enumerate(text):
        is_fraction = character in "¼½¾↉" or "⅐" <= character <= "⅞"
        if is_fraction and place and text[place - 1].isdecimal():
            yield " "
        yield character


_MOST_DIGITS = 300


def _short_numbers(text: str) -> Iterator[str]:
    """The pieces of a text, with a space for each number of more than `_MOST_DIGITS` digits, perhaps with commas."""
    place = 0
    while place < len(text):
        end, digits, most = place, 0, 0
        while end < len(text) and (text[end].isdecimal() or text[end] in ".,/"):
            if text[end].isdecimal():
                digits += 1
            elif text[end] != "," or not text[end - 1 : end].isdecimal():
                digits = 0
            most = max(most, digits)
            end += 1
        end = max(end, place + 1)
        yield text[place:end] if most <= _MOST_DIGITS else " "
        place = end


def _unit_in_characters(text: str, place: int) -> tuple[str, int]:
    if place and text[place - 1].isdecimal():
        start = place
        while text[start : start + 1].isspace():
            start += 1
        for unit, names in _LENGTHS.items():
            for name in names:
                if text.startswith(name, start):
                    return unit, start + len(name)
    return "", place + 1


def _is_mark(character: str) -> bool:
    return ord(character) < 0x10000 and unicodedata.category(character).startswith("M")


def tokens(text: str) -> list[str]:
    """Words and numbers of a text in small letters."""
    small = _ungrouped(form(text).casefold())
    found: list[str] = []
    place = 0
    while place < len(small):
        before = small[place - 1] if place else ""
        signed = place + (small[place] in "+-")
        is_free = not is_word(before) and before != "."
        starts = small[signed : signed + 1].isdecimal() or (
            small[signed : signed + 1] == "." and small[signed + 1 : signed + 2].isdecimal()
        )
        if is_free and starts:
            end = _end_of_decimal(small, signed)
            found.append(_as_written(small[place:end]))
        elif small[place].isdecimal():
            end = _end_of_decimal(small, place)
            found.append(_as_written(small[place:end]))
        elif small[place].isalnum():
            end = place + 1
            while end < len(small) and (_is_letter(small[end]) or _is_mark(small[end])):
                end += 1
            found.append(small[place:end])
        else:
            end = place + 1
        place = end
    return found


def _is_letter(character: str) -> bool:
    return character.isalnum() and not character.isdecimal()


def end_of_digits(text: str, place: int) -> int:
    """The end of a run of digits that begins at a place."""
    while place < len(text) and text[place].isdecimal():
        place += 1
    return place


def _end_of_decimal(text: str, place: int) -> int:
    """The end of a number without groups: digits, and a point with more of them."""
    end = end_of_digits(text, place)
    if text[end : end + 1] == "." and text[end + 1 : end + 2].isdecimal():
        end = end_of_digits(text, end + 1)
    return end


def _as_written(number: str) -> str:
    sign, size = ("-", number[1:]) if number[0] == "-" else ("", number.lstrip("+"))
    whole, point, decimals = size.partition(".")
    decimals = decimals.rstrip("0")
    return sign + (whole or "0") + (point + decimals if decimals else "")


def _ungrouped(text: str) -> str:
    """Without the commas between thousands."""
    found, place = "", 0
    while place < len(text):
        before = text[place - 1] if place else ""
        end = end_of_digits(text, place)
        found += text[place : max(end, place + 1)]
        if 1 <= end - place <= 3 and not is_word(before) and before not in (".", ","):
            group = end
            while text[group : group + 1] == "," and text[group + 1 : group + 4].isdecimal() and group + 4 <= len(text):
                group += 4
            is_whole = not text[group : group + 1].isdecimal() and not (
                text[group : group + 1] == "," and text[group + 1 : group + 2].isdecimal()
            )
            if group > end and is_whole:
                found, end = found + text[end:group].replace(",", ""), group
        place = max(end, place + 1)
    return found


def behind_cue(text: str) -> tuple[str, bool]:
    """The part of a text in `form` where its answer is looked for, and whether the text says that it is there.

    The part behind the last cue with an "is", ":" or "="; without such the part behind the last cue; else the text.
    Cues with no word behind them count for nothing.
    """
    said, open_cues = None, None
    place = 0
    while place < len(text):
        end = _end_of_cue(text, place)
        if not end:
            place += 1
            continue
        start = place
        place, says = _end_of_saying(text, end)
        if not is_negated(text[:start]) and any(map(is_word, text[place:])):
            said, open_cues = (text[place:], open_cues) if says else (said, text[place:])
    if said is not None:
        return said, True
    return (text, False) if open_cues is None else (open_cues, False)


def _end_of_cue(text: str, place: int) -> int:
    """The end of a cue that begins at a place, 0 for none."""
    before = text[place - 1] if place else ""
    for cue in _CUES:
        end = place + len(cue)
        if is_word(before) or text[place:end].lower() != cue:
            continue
        for ending in ("은", "는", "") if cue in ("정답", "답") else ("",):
            stop = end + len(ending)
            if text.startswith(ending, end) and not is_word(text[stop : stop + 1]):
                return stop
    for cue in (*_CHARACTER_CUES, *_SHORT_CUES):
        end = place
        for character in cue:
            end = _end_of_space(text, end) if end > place else end
            if text[end : end + 1] != character:
                break
            end += 1
        else:
            return end
    return 0


def _end_of_space(text: str, place: int) -> int:
    while text[place : place + 1].isspace():
        place += 1
    return place


def _end_of_saying(text: str, place: int) -> tuple[int, bool]:
    """The end of "is", ":" and "=" behind a cue, and whether there is any."""
    start = end = _end_of_space(text, place)
    for word in _SAYS:
        stop = start + len(word)
        if text[start:stop].lower() == word and not is_word(text[stop : stop + 1]) and not is_word(text[start - 1]):
            end = stop
    if text[start : start + 1] and text[start] in _CHARACTER_SAYS:
        end = start + 1
    says = end > start
    after = _end_of_space(text, end)
    if text[after : after + 1] in (":", "="):
        says, end = True, after + 1
    return _end_of_space(text, end), says


def paragraph(text: str) -> str:
    """The lines of a text before its first empty one."""
    lines: list[str] = []
    for line in text.strip().split("\n"):
        if not line.strip():
            break
        lines.append(line)
    return "\n".join(lines)


def truth(text: str) -> str:
    """ "yes", "no" or "" for neither: the first word decides, or the only one of the two that is there."""
    words = words_and_marks(behind_cue(form(text))[0].casefold())
    kept: list[str] = []
    for word in words:
        before = kept[-1] if kept else ""
        verdict = _verdict(word)
        if verdict and (count := _cannot_say(kept)):
            kept[-count:] = ["yes", "no"]
        elif verdict and (before == "not" or (before.endswith("n't") and len(before) > 3)):
            kept[-1] = "no" if verdict == "yes" else "yes"
        else:
            kept.append(word)
    said = tokens(" ".join(kept))
    joined = "".join(said)
    if joined.startswith(("是", "对", "對", "はい")):
        return "yes"
    if joined.startswith(("不", "否", "没", "沒", "いいえ")):
        return "no"
    verdicts = [verdict for word in said if (verdict := _verdict(word))]
    if not verdicts or (said[0] not in (*_TRUE, *_FALSE) and len(set(verdicts)) == 2):
        return ""
    return verdicts[0]


def _verdict(word: str) -> str:
    return "yes" if word in _TRUE else "no" if word in _FALSE else ""


def _cannot_say(kept: list[str]) -> int:
    """Number of words at the end of a row that say that neither is said, as "cannot say"; 0 for none."""
    if kept[-1:] != ["say"]:
        return 0
    if kept[-2:-1] and kept[-2] in ("cannot", "can't", "don't", "won't"):
        return 2
    return 3 if kept[-2:-1] == ["not"] and kept[-3:-2] and kept[-3] in ("can", "do", "does", "will", "would") else 0


def truth_of(right: str) -> str:
    """ "yes" or "no" of a right answer that is nothing but that; else ""."""
    words = tokens(right)
    return truth(right) if len(words) == 1 and words[0] in (*_TRUE, *_FALSE) else ""
