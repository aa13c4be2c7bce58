"""Numbers with their units."""

from __future__ import annotations

import re
from fractions import Fraction

NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six"]
NUMBER_WORDS += ["seven", "eight", "nine", "ten", "eleven", "twelve"]
UNITS = {
    "nm": ("m", Fraction(1, 10**9)),
    "μm": ("m", Fraction(1, 10**6)),
    "mm": ("m", Fraction(1, 1000)),
    "cm": ("m", Fraction(1, 100)),
    "dm": ("m", Fraction(1, 10)),
    "m": ("m", Fraction(1)),
    "km": ("m", Fraction(1000)),
    "in": ("m", Fraction(254, 10000)),
    "ft": ("m", Fraction(3048, 10000)),
    "yd": ("m", Fraction(9144, 10000)),
    "mi": ("m", Fraction(1609344, 1000)),
    "mg": ("kg", Fraction(1, 10**6)),
    "g": ("kg", Fraction(1, 1000)),
    "oz": ("kg", Fraction(45359237, 16 * 10**8)),
    "lb": ("kg", Fraction(45359237, 10**8)),
    "kg": ("kg", Fraction(1)),
    "ms": ("s", Fraction(1, 1000)),
    "s": ("s", Fraction(1)),
    "min": ("s", Fraction(60)),
    "h": ("s", Fraction(3600)),
    "day": ("s", Fraction(86400)),
}
"""Unit to its quantity and its size in that quantity's base; an inch is 25.4 mm, a pound 453.59237 g by definition."""
PREFIXES = (("nano", "n"), ("micro", "μ"), ("milli", "m"), ("centi", "c"), ("deci", "d"), ("kilo", "k"))
UNIT_NAMES = {
    "inch": "in inches",
    "foot": "ft feet",
    "yard": "yd yds yards",
    "mile": "mi miles",
    "gram": "g grams",
    "kilogram": "kg kgs kilograms",
    "milligram": "mg mgs milligrams",
    "ounce": "oz ounces",
    "pound": "lb lbs pounds",
    "micron": "μm microns",
    "millisecond": "ms milliseconds msec msecs",
    "days": "day",
    "second": "s seconds sec secs",
    "minute": "min minutes mins",
    "hour": "h hours hr hrs",
} | {
    f"{prefix}met{ending}": f"{short}m {prefix}met{ending}s" + (f" {short}ms" if short else "")
    for prefix, short in (*PREFIXES, ("", ""))
    for ending in ("er", "re")
}
UNIT_OF = {unit: unit for unit in UNITS} | {
    name: names.split()[0] for one, names in UNIT_NAMES.items() for name in (one, *names.split())
}
DIGITS = r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:[.,]\d+)?(?:e[-+]?\d{1,2})?|[-+]?\.\d+"
FIRST_NUMBER = re.compile(rf"(?<![\w.])(?:{DIGITS})", re.IGNORECASE)
MORE = re.compile(rf"\s*(?:,|and\b)?\s*({DIGITS})", re.IGNORECASE)
UNIT = re.compile(r"\s*(?:([A-Za-zÉéμ]+)|(′′|''|[\"”])|(['′])(?![A-Za-z]))")
MEASURED = r"tall|long|wide|high|deep|thick|away|apart|and|or"


def number_of(digits: str) -> Fraction:
    """A number as it is written: 1,200 has a group of thousands, 0,25 a decimal comma."""
    if re.search(r",\d{3}(?!\d)", digits):
        digits = digits.replace(",", "")
    return Fraction(digits.replace(",", "."))


def number_at(text: str, digits: str, end: int) -> tuple[Fraction, int]:
    """The number whose digits end at a place, perhaps with a fraction as in 1/2 or 1 1/2, and its end."""
    whole = digits.lstrip("+-")
    over = re.match(r"(?:\s+(\d{1,6}))?\s?/\s?(\d{1,6})(?![\w/]|\.\d)", text[end:])
    if over and whole.isdecimal() and int(over[2]) and (not over[1] or int(over[1]) < int(over[2])):
        value = int(whole) + Fraction(int(over[1]), int(over[2])) if over[1] else Fraction(int(whole), int(over[2]))
        return (-value if digits[0] == "-" else value), end + over.end()
    return number_of(digits), end


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
    value, end = number_at(text, found[0], found.end())
    unit, place = unit_at(text, end)
    quoted = text[found.start() - 1 : found.start()] in ("'", '"', "“") and not text[place - 1].isalpha()
    if not unit or quoted:
        return value, "", end
    base, size = UNITS[unit]
    total = value * size
    while more := MORE.match(text, place):
        further, digits_end = number_at(text, more[1], more.end())
        smaller, end = unit_at(text, digits_end)
        if not smaller and unit == "ft" and text[place - 1] in "'′" and not re.match(r"\s*\w", text[digits_end:]):
            smaller, end = "in", digits_end  # 5'6
        if not smaller or UNITS[smaller][0] != base or UNITS[smaller][1] >= size:
            break
        size, place = UNITS[smaller][1], end
        total += further * size
    return total, base, place


def with_quantities(text: str) -> str:
    """A spaced text with every quantity in its base unit, small numbers in digits, and signs for degrees and percent
    as words: 350 cm is 3.5 m. A text that is one number has it in decimals: 1,5 and 3/2 are 1.5."""
    first = FIRST_NUMBER.search(text)
    if first and not text[: first.start()].strip():
        value, end = number_at(text, first[0], first.end())
        if re.fullmatch(r"[\s.]*", text[end:]) and Fraction(decimal(value)) == value:
            return decimal(value)
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
