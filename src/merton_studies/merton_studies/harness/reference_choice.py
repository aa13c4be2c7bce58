"""The choice that a text names, by the reference implementation; with code of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from merton_studies.harness.reference_negation import is_compared, is_denied, is_negated, is_rejected
from merton_studies.harness.reference_text import behind_cue, form, is_word, tokens

_AFTER_A = ("is", "was", "because", "since", "as", "and", "or", "but")
_CONCLUSIONS = ("so", "therefore", "thus", "hence", "choose", "pick", "select", "go with")
_CHARACTER_CONCLUSIONS = ("所以", "因此")


def named(choices: Sequence[str], prediction: str) -> str | None:
    """The choice named, or None: alone, behind a cue or in the first or last line; by a letter; by a mention."""
    text = _apart(form(prediction))
    rest, says = behind_cue(text)
    lines = [line for line in rest.splitlines() if line.strip()]
    for parts in ([text], [rest], [*lines[:1], *lines[-1:]]):
        alone = {one for one in (_alone(choices, part) for part in parts) if one is not None}
        if len(alone) == 1:
            return alone.pop()
    for part in [rest] if says else [text, rest]:
        for piece in (_capitals(part, part != text), _conclusion(part)):
            letter = _stated(piece, len(choices))
            if letter:
                return choices[ord(letter) - ord("A")]
    by_text = _by_text(choices)
    for part in (rest, text):
        there = _mentioned(part, by_text)
        if there:
            longest = max(there, key=len)
            return by_text[longest] if all(_contains(longest.split(), name.split()) for name in there) else None
    starts_with_a = [character for character in rest if is_word(character)][:1] == ["A"]
    lone = [place for place in range(len(rest)) if _is_lone(rest, place)]
    first_is_lone = starts_with_a and _no_word_or_quote(rest[rest.index("A") + 1 :][:1])
    if rest == text or not first_is_lone or len(lone) > 1 or is_rejected("", rest[rest.index("A") + 1 :]):
        return None
    return choices[0]


def _apart(text: str) -> str:
    """With a space between a lone capital and a Korean particle."""
    found = ""
    for place, character in enumerate(text):
        found += character
        is_free = not place or not text[place - 1].isalnum()
        if "A" <= character <= "Z" and is_free and "가" <= text[place + 1 : place + 2] <= "힣":
            found += " "
    return found


def _mentioned(part: str, by_text: Mapping[str, str]) -> list[str]:
    """The texts of choices that a part mentions and does not reject; the longer one where one is in another."""
    row: list[str] = []
    clause = ""
    for place, character in enumerate(part):
        is_mark = character in "。、\n" or (character in ",.;:!?" and not is_word(part[place + 1 : place + 2]))
        if is_mark:
            row += [*tokens(clause), ";" if character == "\n" else character]
            clause = ""
        else:
            clause += character
    row += tokens(clause)
    letters = {name: f"\0{count}" for count, name in enumerate(by_text)}
    for name in sorted(by_text, key=len, reverse=True):
        row = _replaced(row, name.split(), letters[name])
    there = []
    for name, letter in letters.items():
        for place, word in enumerate(row):
            if word == letter and not is_rejected(_line(row[:place]), _line(row[place + 1 :])):
                there.append(name)
                break
    return there


def _replaced(row: Sequence[str], words: Sequence[str], letter: str) -> list[str]:
    """A row in which a letter stands for each run of words, with marks between them or not."""
    found: list[str] = []
    place = 0
    while place < len(row):
        end = place
        for count, word in enumerate(words):
            while count and end < len(row) and row[end] in tuple(",.;:!?。、"):
                end += 1
            if row[end : end + 1] != [word]:
                found.append(row[place])
                place += 1
                break
            end += 1
        else:
            found.append(letter)
            place = end
    return found


def _line(row: Sequence[str]) -> str:
    """The row as a text, in which a choice is a capital letter and "isn t" has its apostrophe."""
    found: list[str] = []
    for word in row:
        is_contracted = word == "t" and found and found[-1].endswith("n") and len(found[-1]) > 1
        if is_contracted:
            found[-1] += "'t"
        else:
            found.append("Z" if word.startswith("\0") else word)
    return " ".join(found)


def _by_text(choices: Sequence[str]) -> dict[str, str]:
    """Words to the choice that has them; without words that several have."""
    several: dict[str, list[str]] = {}
    for choice in choices:
        if tokens(choice):
            several.setdefault(" ".join(tokens(choice)), []).append(choice)
    return {text: found[0] for text, found in several.items() if len(found) == 1}


def _contains(row: Sequence[str], piece: Sequence[str]) -> bool:
    return any(list(row[start : start + len(piece)]) == list(piece) for start in range(len(row) - len(piece) + 1))


def _alone(choices: Sequence[str], part: str) -> str | None:
    letters = [character for character in part if character.isalnum()]
    if len(letters) == 1 and letters[0].isascii() and letters[0].isalpha():
        place = ord(letters[0].upper()) - ord("A")
        if place < len(choices):
            return choices[place]
    return _by_text(choices).get(" ".join(tokens(part)))


def _capitals(part: str, is_behind: bool) -> str:
    """Small letters that stand for choices as capitals."""
    found = list(part)
    for place in range(1, len(part) - 1):
        if part[place - 1] == "(" and part[place + 1] == ")" and "a" <= part[place] <= "z":
            found[place] = part[place].upper()
    first = next((place for place, character in enumerate(part) if is_word(character)), None)
    if first is not None and "a" <= found[first] <= "z":
        after = part[first + 1 : first + 3]
        is_marked = after[:1] in (".", ")", ":") and bool(after) and not is_word(after[1:])
        is_free = is_behind and part[first] not in "ai" and _no_word_or_quote(after[:1])
        if is_marked or is_free:
            found[first] = part[first].upper()
    return "".join(found)


def _no_word_or_quote(character: str) -> bool:
    return not is_word(character) and character != "'"


def _conclusion(part: str) -> str:
    """The part behind the last "so" or the like that is not negated."""
    best, place = 0, 0
    small = part.lower()
    while place < len(part):
        end = _end_of_conclusion(small, place)
        if end and not is_negated(part[:place]):
            best = end
        place = end or place + 1
    return part[best:]


def _end_of_conclusion(small: str, place: int) -> int:
    for word in _CONCLUSIONS:
        end = place + len(word)
        is_free = not (place and is_word(small[place - 1])) and not is_word(small[end : end + 1])
        if is_free and small.startswith(word, place):
            return end
    for pair in _CHARACTER_CONCLUSIONS:
        if small.startswith(pair[0], place):
            rest = small[place + 1 :]
            bare = rest.lstrip()
            if bare.startswith(pair[1]):
                return place + 2 + len(rest) - len(bare)
    return 0


def _is_lone(part: str, place: int) -> bool:
    """Whether a capital stands for itself, not in a word, nor before or behind a hyphen of one."""
    before, after = part[place - 1] if place else "", part[place + 1 : place + 2]
    hyphen_before = before == "-" and place > 1 and is_word(part[place - 2])
    hyphen_after = after == "-" and is_word(part[place + 2 : place + 3])
    is_free = _no_word_or_quote(before) and _no_word_or_quote(after)
    return "A" <= part[place] <= "Z" and is_free and not hyphen_before and not hyphen_after


def _stated(part: str, count: int) -> str:
    """The letter that a text states, or ""."""
    places = [place for place in range(len(part)) if _is_lone(part, place) and ord(part[place]) - ord("A") < count]
    places = [place for place in places if not _is_other(part, place)]
    letters = {part[place] for place in places}
    if len(letters) > 1 and _leads(part, places):
        return part[places[0]]
    marked = {part[place] for place in places if part[place + 1 : place + 2] in (".", ")", ":")
              and place + 1 < len(part) and not is_word(part[place + 2 : place + 3])}  # fmt: skip
    for several in (letters, marked):
        if len(several) == 1:
            return several.pop()
    return ""


def _is_other(part: str, place: int) -> bool:
    """Whether a lone capital is an article, "I", or rejected."""
    after = part[place + 1 :]
    bare = after.lstrip()
    if bare != after and "a" <= bare[:1] <= "z":
        word = ""
        for character in bare:
            if not is_word(character):
                break
            word += character
        if part[place] == "I" or (part[place] == "A" and word not in _AFTER_A):
            return True
    before = part[:place]
    return is_compared(before) or is_denied(after) or is_rejected(before, after)


def _leads(part: str, places: Sequence[int]) -> bool:
    """Whether a text begins with its first letter, sets it apart, and lists no choices."""
    first, second = places[:2]
    after = part[first + 1 :]
    bare = after.lstrip()
    reasons = [word for word in ("because", "since", "as") if bare.startswith(word)]
    is_apart = "\n" in after[: len(after) - len(bare)]
    is_apart |= bool(bare) and not is_word(bare[0]) and bare[0] not in "'&/+"
    is_apart |= any(not is_word(bare[len(word) : len(word) + 1]) for word in reasons)
    if any(map(is_word, part[:first])) or not is_apart:
        return False
    between = "".join(character if character.isalnum() else " " for character in part[first + 1 : second])
    if set(between.split()) <= {"and", "or"}:
        return False
    return not any(part[place] != part[first] and _opens(part[place + 1 :]) for place in places)


def _opens(after: str) -> bool:
    """Whether a letter is followed by a mark, a space and more, as in a list."""
    return after[:1] in (".", ")", ":") and after[1:2].isspace() and bool(after[1:].strip())
