"""Numbers with their units."""

from __future__ import annotations

import re
from fractions import Fraction

NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six"]
NUMBER_WORDS += ["seven", "eight", "nine", "ten", "eleven", "twelve"]
UNITS = {
    "mm": ("m", Fraction(1, 1000)),
    "cm": ("m", Fraction(1, 100)),
    "m": ("m", Fraction(1)),
    "km": ("m", Fraction(1000)),
    "in": ("m", Fraction(254, 10000)),
    "ft": ("m", Fraction(3048, 10000)),
    "yd": ("m", Fraction(9144, 10000)),
    "mi": ("m", Fraction(1609344, 1000)),
    "g": ("kg", Fraction(1, 1000)),
    "kg": ("kg", Fraction(1)),
    "ms": ("s", Fraction(1, 1000)),
    "s": ("s", Fraction(1)),
    "min": ("s", Fraction(60)),
    "h": ("s", Fraction(3600)),
}
"""Unit to its quantity and its size in that quantity's base; an inch is 25.4 mm by definition."""
UNIT_NAMES = {
    "inch": "in inches",
    "foot": "ft feet",
    "yard": "yd yards",
    "mile": "mi miles",
    "gram": "g grams",
    "kilogram": "kg kilograms",
    "second": "s seconds sec secs",
    "minute": "min minutes mins",
    "hour": "h hours hr hrs",
} | {
    f"{prefix}met{ending}": f"{short}m {prefix}met{ending}s"
    for prefix, short in (("milli", "m"), ("centi", "c"), ("kilo", "k"), ("", ""))
    for ending in ("er", "re")
}
UNIT_OF = {unit: unit for unit in UNITS} | {
    name: names.split()[0] for one, names in UNIT_NAMES.items() for name in (one, *names.split())
}
DIGITS = r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:[.,]\d+)?(?:e[-+]?\d{1,2})?|[-+]?\.\d+"
FIRST_NUMBER = re.compile(rf"(?<![\w.])(?:{DIGITS})", re.IGNORECASE)
MORE = re.compile(rf"\s*(?:,|and\b)?\s*({DIGITS})", re.IGNORECASE)
UNIT = re.compile(r"\s*(?:([a-zé]+)|(′′|''|[\"”])|(['′])(?![a-z]))", re.IGNORECASE)
MEASURED = r"tall|long|wide|high|deep|thick|away|apart|and|or"


def number_of(digits: str) -> Fraction:
    """A number as it is written: 1,200 has a group of thousands, 0,25 a decimal comma."""
    if re.search(r",\d{3}(?!\d)", digits):
        digits = digits.replace(",", "")
    return Fraction(digits.replace(",", "."))


def number_at(text: str, found: re.Match[str]) -> tuple[Fraction, int]:
    """The number that was found, perhaps a fraction such as 1/2, and its end."""
    over = re.match(r"\s?/\s?(\d{1,6})(?![\w/.])", text[found.end() :])
    if over and found[0].isdecimal() and int(over[1]):
        return Fraction(int(found[0]), int(over[1])), found.end() + over.end()
    return number_of(found[0]), found.end()


def unit_at(text: str, place: int) -> tuple[str, int]:
    """The unit that stands at a place and its end; "" for none. "in" before a word is a preposition."""
    found = UNIT.match(text, place)
    if not found:
        return "", place
    unit = UNIT_OF.get(found[1].lower(), "") if found[1] else "in" if found[2] else "ft"
    if found[1] and found[1].lower() == "in" and re.match(rf"\s+(?!(?:{MEASURED})\b)\w", text[found.end() :]):
        unit = ""
    return unit, found.end() if unit else place


def quantity_at(text: str, found: re.Match[str]) -> tuple[Fraction, str, int]:
    """The number that was found with all of its units, as "5 ft 6 in": its value, the quantity's base or "", its end.

    Without a unit the value is the number.
    """
    value, end = number_at(text, found)
    unit, place = unit_at(text, end)
    quoted = text[found.start() - 1 : found.start()] in ("'", '"', "“") and not text[place - 1].isalpha()
    if not unit or quoted:
        return value, "", end
    base, size = UNITS[unit]
    total = value * size
    while more := MORE.match(text, place):
        smaller, end = unit_at(text, more.end())
        if not smaller and unit == "ft" and text[place - 1] in "'′" and not re.match(r"\s*\w", text[more.end() :]):
            smaller, end = "in", more.end()  # 5'6
        if not smaller or UNITS[smaller][0] != base or UNITS[smaller][1] >= size:
            break
        size, place = UNITS[smaller][1], end
        total += number_of(more[1]) * size
    return total, base, place


def with_quantities(text: str) -> str:
    """A spaced text with every quantity in its base unit, small numbers in digits, and signs for degrees and percent
    as words: 350 cm is 3.5 m."""
    parts, place = [], 0
    for found in FIRST_NUMBER.finditer(text):
        if found.start() < place:
            continue
        value, base, end = quantity_at(text, found)
        if base:
            parts += [text[place : found.start()], f" {decimal(value)} {base} "]
            place = end
    text = "".join([*parts, text[place:]]).replace("%", " percent ").replace("°", " degrees ")
    names = "|".join(NUMBER_WORDS)
    return re.sub(rf"\b(?:{names})\b", lambda word: str(NUMBER_WORDS.index(word[0].lower())), text, flags=re.IGNORECASE)


def decimal(value: Fraction) -> str:
    """A fraction in decimals, to a millionth."""
    return f"{float(value):.6f}" if abs(value) < 10**9 else str(round(value))
