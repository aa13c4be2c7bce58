"""Which choice a text names, by the reference implementation; with code of its own."""

from __future__ import annotations

from collections.abc import Sequence

from merton.harness.reference_text import behind_cue, form, is_word, tokens

_AFTER_A = ("is", "was", "because", "since", "as", "and", "or", "but")
_NEGATIONS = ("not", "nor", "neither", "than", "except", "over", "instead of")
_CONCLUSIONS = ("so", "therefore", "thus", "hence", "choose", "pick", "select", "go with")
_CHARACTER_CONCLUSIONS = ("所以", "因此")


def named(choices: Sequence[str], prediction: str) -> str | None:
    """The choice named, or None: alone, behind a cue or in the first or last line; by a letter; by a mention."""
    text = form(prediction)
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
        said = tokens(part)
        there = [name for name in by_text if _contains(said, name.split())]
        if there:
            longest = max(there, key=len)
            return by_text[longest] if all(_contains(longest.split(), name.split()) for name in there) else None
    starts_with_a = [character for character in rest if is_word(character)][:1] == ["A"]
    lone = [place for place in range(len(rest)) if _is_lone(rest, place)]
    first_is_lone = starts_with_a and _no_word_or_quote(rest[rest.index("A") + 1 :][:1])
    return choices[0] if rest != text and first_is_lone and len(lone) < 2 else None


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
    """The part behind the last "so" or the like."""
    best, place = 0, 0
    small = part.lower()
    while place < len(part):
        end = _end_of_conclusion(small, place)
        best, place = (end, end) if end else (best, place + 1)
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
    return _is_negated(part[:place].lower()) or _is_denied(after)


def _is_negated(before: str) -> bool:
    for tail in (before, before[:-1] if before and not is_word(before[-1]) else before):
        bare = tail.rstrip()
        if bare != tail:
            stems = [bare]
            for word in ("option", "choice", "answer"):
                stem = bare.removesuffix(word)
                if stem != bare and stem != stem.rstrip():
                    stems.append(stem.rstrip())
            for stem in stems:
                if stem.endswith("n't") or any(
                    stem.endswith(word) and not is_word(stem[: -len(word)][-1:]) for word in _NEGATIONS
                ):
                    return True
        if bare.endswith("不") or (bare[-1:] in ("是", "选", "選") and bare[:-1].rstrip().endswith("不")):
            return True
    return False


def _is_denied(after: str) -> bool:
    for skipped in range(3):
        if any(map(is_word, after[:skipped])):
            return False
        bare = after[skipped:].lstrip()
        for verb in ("is", "are", "was"):
            if not bare.startswith(verb):
                continue
            rest = bare[len(verb) :]
            if rest.startswith("n't") and not is_word(rest[3:4]):
                return True
            for word in ("not", "wrong", "incorrect", "false"):
                said = rest.lstrip()
                if said != rest and said.startswith(word) and not is_word(said[len(word) : len(word) + 1]):
                    return True
    return False


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
