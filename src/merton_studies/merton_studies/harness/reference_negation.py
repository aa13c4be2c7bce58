"""Rejections in a text, by the reference implementation; with code of its own: token by token, without patterns."""

from __future__ import annotations

from collections.abc import Sequence

_NEAR = 200
_DROPPED = "()[]{}<>\"'*`$“”"
_ENGLISH = "think believe say be it that this the is are was on in at to of a an choose pick select go with take"
_NOUNS = ("option", "choice", "answer")
_FILLERS = frozenset([*_ENGLISH.split(), *_NOUNS, "letter", *"是选選会會可能应该應"])
_NEGATIONS = [
    words.split()
    for words in (
        *("not", "cannot", "never", "nor", "neither", "except", "instead of", "rather than", "anything but"),
        *("everything but", "all but", "rule out", "rules out", "ruled out", "ruling out", "eliminate", "eliminates"),
        *("eliminated", "eliminating", "exclude", "excludes", "excluded", "excluding", "不", "非", "别", "排 除"),
    )
]
_COMPARISONS = [["than"], ["over"]]
_WRONG = ("wrong", "incorrect", "false")


def words_and_marks(text: str) -> list[str]:
    """Words, with inner apostrophes, and single marks; without brackets and quotes, a new line is ";"."""
    found: list[str] = []
    place = 0
    while place < len(text):
        end = place + 1
        if _in_word(text[place]):
            while end < len(text) and (
                _in_word(text[end]) or (text[end] == "'" and end + 1 < len(text) and _in_word(text[end + 1]))
            ):
                end += 1
            found.append(text[place:end])
        elif text[place] == "\n":
            found.append(";")
        elif not text[place].isspace() and text[place] not in _DROPPED:
            found.append(text[place])
        place = end
    return found


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def is_negated(before: str) -> bool:
    """Whether a text in `form` ends in a negation of what follows."""
    return _ends_in(words_and_marks(before[-_NEAR:]), _NEGATIONS, contracted=True)


def is_compared(before: str) -> bool:
    """Whether a text ends in "than", or "over"."""
    return _ends_in(words_and_marks(before[-_NEAR:]), _COMPARISONS, contracted=False)


def _ends_in(words: Sequence[str], negations: Sequence[list[str]], *, contracted: bool) -> bool:
    small = [word.lower() for word in words]
    while small:
        if any(small[-len(negation) :] == negation for negation in negations):
            return True
        if contracted and small[-1].endswith("n't") and len(small[-1]) > 3:
            return True
        if small.pop() not in _FILLERS:
            return False
    return False


def is_rejected(before: str, after: str) -> bool:
    """Whether what stands between two texts is rejected, alone or in a list of letters."""
    ahead, behind = words_and_marks(before[-_NEAR:]), words_and_marks(after[:_NEAR])
    words = [*ahead, "•", *behind]
    place = len(ahead)
    start, end = place, place + 1
    at = 0
    while at <= place:
        stop = _end_of_list(words, at)
        if stop > place:
            start, end = at, stop
        at = max(stop, at + 1)
    return _ends_in(words[:start], _NEGATIONS, contracted=True) or _is_wrong(words[end:])


def is_denied(after: str) -> bool:
    """Whether a text begins with "is not", "cannot be" or the like, but not "is not wrong"."""
    rest = _negative(_unmarked(words_and_marks(after[:_NEAR])))
    return rest is not None and not _says_wrong(rest)


def _end_of_list(words: Sequence[str], at: int) -> int:
    """The end of a list such as "A, B and C" that begins at a place; 0 for none, or if "is" or "was" follows."""
    end = _end_of_item(words, at)
    while end and words[end : end + 1] == [","] and (item := _end_of_item(words, end + 1)):
        end = item
        if words[end : end + 1] == [","] and words[end + 1 : end + 2] in (["and"], ["or"], ["nor"], ["&"]):
            end += 1
    if not end or words[end : end + 1] not in (["and"], ["or"], ["nor"], ["&"]):
        return 0
    stop = _end_of_item(words, end + 1)
    return 0 if words[stop : stop + 1] in (["is"], ["was"]) else stop


def _end_of_item(words: Sequence[str], at: int) -> int:
    at += words[at : at + 1] != [] and words[at] in _NOUNS
    letter = words[at] if at < len(words) else ""
    return at + 1 if letter == "•" or (len(letter) == 1 and "A" <= letter <= "Z") else 0


def _unmarked(words: Sequence[str]) -> Sequence[str]:
    """The words behind at most two marks."""
    for count in range(3):
        if words[count : count + 1] and _in_word(words[count][0]):
            return words[count:]
    return []


def _is_wrong(words: Sequence[str]) -> bool:
    return _is_wrong_in_characters(words) or _is_wrong_in_words(_unmarked(words))


def _is_wrong_in_words(words: Sequence[str]) -> bool:
    if list(words[:1]) in (["is"], ["are"], ["was"], ["were"]) and _says_wrong(words[1:]):
        return True
    if words[1:2] == ["be"] and words[0] in ("must", "can", "could", "should") and _says_wrong(words[2:]):
        return True
    rest = _negative(words)
    if rest is None:
        return False
    if not rest or not _in_word(rest[0][0]) or list(rest[:2]) == ["an", "option"]:
        return True
    return rest[0] in ("right", "correct", "true", "possible", "it", "the")


def _negative(words: Sequence[str]) -> Sequence[str] | None:
    """The words behind "is not", "cannot be" or the like; None if words do not begin so."""
    row = list(words)
    for verb in ("is", "are", "was", "were"):
        for opening in ([verb + "n't"], [verb, "not"]):
            if row[: len(opening)] == opening:
                return row[len(opening) :]
    for opening in (["cannot", "be"], ["can't", "be"], ["can", "not", "be"]):
        if row[: len(opening)] == opening:
            return row[len(opening) :]
    return None


def _says_wrong(words: Sequence[str]) -> bool:
    first = words[0] if words else ""
    if first in ("impossible", "eliminated", "excluded", *_WRONG) or list(words[:2]) == ["ruled", "out"]:
        return True
    return first in ("the", "a", "an") and len(words) > 1 and words[1] in _WRONG


def _is_wrong_in_characters(words: Sequence[str]) -> bool:
    row = list(words)
    if row[:1] in (["选"], ["選"]) and row[1:2] in (["项"], ["項"]):
        row = row[2:]
    row = row[row[:1] == ["是"] :]
    return row[:1] in (["错"], ["錯"]) or (row[:1] == ["不"] and "".join(row[1:2]) in tuple("对對正是行可"))
