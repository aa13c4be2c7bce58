"""Numbers and quantities in a text, by the reference implementation; with code of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from merton_studies.harness.reference_text import end_of_digits, is_word

NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_INCH = Fraction("0.0254")
_POUND = Fraction("0.45359237")
_SIZES = {
    "length": {
        "nm": Fraction("1e-9"), "μm": Fraction("1e-6"), "mm": Fraction("0.001"), "cm": Fraction("0.01"),
        "dm": Fraction("0.1"), "m": Fraction(1), "km": Fraction(1000),
        "in": _INCH, "ft": 12 * _INCH, "yd": 36 * _INCH, "mi": 5280 * 12 * _INCH,
    },
    "mass": {"mg": Fraction("1e-6"), "g": Fraction("0.001"), "kg": Fraction(1), "lb": _POUND, "oz": _POUND / 16},
    "time": {
        "ms": Fraction("0.001"), "s": Fraction(1), "min": Fraction(60), "h": Fraction(3600), "day": Fraction(86400),
    },
}  # fmt: skip
BASES = {"length": "m", "mass": "kg", "time": "s"}
_OTHER_NAMES = {
    "in": "inch inches", "ft": "foot feet", "yd": "yds yard yards", "mi": "mile miles", "g": "gram grams",
    "kg": "kgs kilogram kilograms", "s": "second seconds sec secs", "min": "minute minutes mins",
    "h": "hour hours hr hrs",
    "mg": "mgs milligram milligrams", "oz": "ounce ounces", "lb": "lbs pound pounds", "μm": "micron microns",
    "ms": "millisecond milliseconds msec msecs", "day": "days",
}  # fmt: skip
_PREFIXES = {"nano": "nm", "micro": "μm", "milli": "mm", "centi": "cm", "deci": "dm", "kilo": "km"}
_MEASURED = ("tall", "long", "wide", "high", "deep", "thick", "away", "apart", "and", "or")


@dataclass(frozen=True)
class Number:
    """A number in a text: its place, the end of its digits or its fraction, its value, and what it is with its units.

    Attributes:
        kind: "length", "mass", "time", or "" without a unit.
        total: in the base unit of the kind; the value without one.
        stop: the end of units and further numbers.
    """

    start: int
    end: int
    value: Fraction
    kind: str
    total: Fraction
    stop: int


def unit_of(name: str) -> tuple[str, Fraction] | None:
    """The kind and size of a unit by any of its names; None for another word."""
    if name[-2:] == "ms" and name[:-1] in _PREFIXES.values():
        return "length", _SIZES["length"][name[:-1]]
    for ending in ("meters", "metres", "meter", "metre"):
        prefix = name.removesuffix(ending)
        if prefix != name and prefix in ("", *_PREFIXES):
            return "length", _SIZES["length"][_PREFIXES.get(prefix, "m")]
    for kind, sizes in _SIZES.items():
        for unit, size in sizes.items():
            if name in (unit, *_OTHER_NAMES.get(unit, "").split()):
                return kind, size
    return None


def numbers(text: str) -> Iterator[Number]:
    """Every number in digits of a text in `form`, from left to right."""
    place = 0
    while place < len(text):
        before = text[place - 1] if place else ""
        found = None if is_word(before) or before == "." else digits_at(text, place)
        if found is None:
            place += 1
            continue
        value, end = found
        yield _with_units(text, place, value, end)
        place = end


def digits_at(text: str, start: int) -> tuple[Fraction, int] | None:
    """A number with its sign at a place, and its end."""
    first = start + (text[start : start + 1] in ("+", "-"))
    if text[first : first + 1].isdecimal():
        return _number_at(text, start, first)
    if text[first : first + 1] == "." and text[first + 1 : first + 2].isdecimal():
        end = end_of_digits(text, first + 1)
        return Fraction(text[start:end]), end
    return None


def _number_at(text: str, start: int, first: int) -> tuple[Fraction, int]:
    """A number that begins with a digit: groups of thousands, one decimal point or comma, an exponent."""
    end = end_of_digits(text, first)
    whole = text[start:end]
    if end - first <= 3:
        grouped = end
        while text[grouped : grouped + 1] == "," and len(group := text[grouped + 1 : grouped + 4]) == 3:
            if not group.isdecimal():
                break
            grouped += 4
        if grouped > end:
            whole, end = text[start:grouped].replace(",", ""), grouped
    if text[end : end + 1] in (".", ",") and text[end + 1 : end + 2].isdecimal():
        stop = end_of_digits(text, end + 1)
        behind_comma = text[end + 1 : stop]
        # a comma before three digits divides thousands
        divides = text[end] == "," and len(behind_comma) == 3
        whole, end = whole + ("" if divides else ".") + behind_comma, stop
    if text[end : end + 1] in ("e", "E"):
        sign = end + 1 + (text[end + 1 : end + 2] in ("+", "-") and bool(text[end + 1 : end + 2]))
        stop = min(end_of_digits(text, sign), sign + 2)
        if stop > sign:
            whole, end = whole + text[end:stop], stop
    return Fraction(whole), end


def _with_units(text: str, start: int, value: Fraction, end: int) -> Number:
    value, after = _divided(text, start, value, end)
    unit, stop, mark = _unit_at(text, after)
    is_quoted = mark and start > 0 and text[start - 1] in ("'", '"', "“")
    if unit is None or is_quoted:
        return Number(start, after, value, "", value, after)
    kind, size = unit
    total = value * size
    while True:
        more = _next_number(text, stop)
        if more is None:
            break
        further, digits_end = more
        smaller, next_stop, _ = _unit_at(text, digits_end)
        if smaller is None and size == 12 * _INCH and text[stop - 1] in "'′" and _ends(text[digits_end:]):
            smaller, next_stop = ("length", _INCH), digits_end
        if smaller is None or smaller[0] != kind or smaller[1] >= size:
            break
        size, stop = smaller[1], next_stop
        total += further * size
    return Number(start, after, value, kind, total, stop)


def _ends(rest: str) -> bool:
    return not is_word(rest.lstrip()[:1])


def _divided(text: str, start: int, value: Fraction, end: int) -> tuple[Fraction, int]:
    """A number with the fraction that it begins, as in 1/2, or that follows it, as in 1 1/2; and the end."""
    if not text[start + (text[start] in "+-") : end].isdecimal():
        return value, end
    over = _denominator(text, end)
    if over:
        return value / over[0], over[1]
    place = end + len(text[end:]) - len(text[end:].lstrip())
    stop = end_of_digits(text, place)
    over = _denominator(text, stop) if place > end and 1 <= stop - place <= 6 else None
    if over is None or int(text[place:stop]) >= over[0]:
        return value, end
    part = Fraction(int(text[place:stop]), over[0])
    return value + (-part if text[start] == "-" else part), over[1]


def _denominator(text: str, end: int) -> tuple[int, int] | None:
    """The number behind a "/" at a place, and its end."""
    place = end + text[end : end + 1].isspace()
    if text[place : place + 1] != "/":
        return None
    place += 1
    place += text[place : place + 1].isspace()
    stop = end_of_digits(text, place)
    after = text[stop : stop + 1]
    goes_on = is_word(after) or after == "/" or (after == "." and text[stop + 1 : stop + 2].isdecimal())
    if not 1 <= stop - place <= 6 or goes_on or not int(text[place:stop]):
        return None
    return int(text[place:stop]), stop


def _next_number(text: str, place: int) -> tuple[Fraction, int] | None:
    """A number that goes on with a quantity: behind space, perhaps a comma or "and"."""
    place += len(text[place:]) - len(text[place:].lstrip())
    if text[place : place + 1] == ",":
        place += 1
    elif text[place : place + 3].lower() == "and" and not is_word(text[place + 3 : place + 4]):
        place += 3
    place += len(text[place:]) - len(text[place:].lstrip())
    found = digits_at(text, place)
    return found and _divided(text, place, *found)


def _unit_at(text: str, place: int) -> tuple[tuple[str, Fraction] | None, int, bool]:
    """A unit at a place, its end, and whether it is a mark of feet or inches."""
    start = place + len(text[place:]) - len(text[place:].lstrip())
    end = start
    while end < len(text) and (_is_latin(text[end]) or text[end] in "éÉμ"):
        end += 1
    name = text[start:end].lower()
    if name:
        unit = unit_of(name)
        rest = text[end:].lstrip()
        if name == "in" and rest != text[end:] and is_word(rest[:1]) and not _is_measured(rest):
            unit = None
        return unit, end, False
    for mark in ("′′", "''", '"', "”"):
        if text.startswith(mark, start):
            return ("length", _INCH), start + len(mark), True
    if text[start : start + 1] in ("'", "′") and not _is_latin(text[start + 1 : start + 2]):
        return ("length", 12 * _INCH), start + 1, True
    return None, place, False


def _is_latin(character: str) -> bool:
    return character.isascii() and character.isalpha()


def _is_measured(rest: str) -> bool:
    return any(rest.startswith(word) and not is_word(rest[len(word) : len(word) + 1]) for word in _MEASURED)


def in_bases(text: str) -> str:
    """A text in `form` with quantities in base units, and number words, degrees and percent each in one form.

    One number alone is written in decimals.
    """
    first = next(numbers(text), None)
    if first and not text[: first.start].strip() and all(one.isspace() or one == "." for one in text[first.end :]):
        written = _decimal(first.value)
        if Fraction(written) == first.value:
            return written
    found, place = "", 0
    for number in numbers(text):
        if number.kind and number.start >= place:
            found += f"{text[place : number.start]} {_decimal(number.total)} {BASES[number.kind]} "
            place = number.stop
    found += text[place:]
    found = found.replace("%", " percent ").replace("°", " degrees ")
    pieces, word = "", ""
    for character in [*found, ""]:
        if is_word(character):
            word += character
            continue
        small = word.lower()
        pieces += (str(NUMBER_WORDS.index(small)) if small in NUMBER_WORDS else word) + character
        word = ""
    return pieces


def _decimal(value: Fraction) -> str:
    """In decimals, to a millionth."""
    return f"{float(value):.6f}" if abs(value) < 10**9 else str(round(value))
