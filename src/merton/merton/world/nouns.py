"""Names of things in instructions, and the thing on the table that a name means.

The name of a thing is "<color> <shape>", preceded by "small" or "large" where two of one colour and shape differ in
size. An instruction may also tell two such things apart by their place ("left red cube") or by a neighbour ("red cube
nearest to the blue mug"). Words of place are the robot's: left is +y of `base_link`, far is +x.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from merton.errors import InputError

COLORS = ("red", "green", "blue", "yellow")
SHAPES = ("cube", "cylinder")
"""The shapes of the objects in `plain` scenes."""
VARIED_SHAPES = ("ball", "mug", "bottle", "brick", "spool", "cone")
"""The further shapes of objects in the scenes of splits."""
SIZES = ("small", "large")
PLACES = {"left": (0.0, 1.0), "right": (0.0, -1.0), "near": (-1.0, 0.0), "far": (1.0, 0.0)}
"""Word to the direction (x, y) in `base_link` in which the thing stands further than its like."""
MIDDLES = ("center", "middle")
"""The words of answers for a place between left and right, and between near and far; no instruction has them."""


@dataclass(frozen=True)
class Noun:
    """A thing as an instruction names it.

    Attributes:
        color, shape: one of `COLORS`, and the kind of thing.
        size: one of `SIZES`, or None.
        place: one of `PLACES`, or None.
        landmark: name of the thing that it is next to, or None.
    """

    color: str
    shape: str
    size: str | None = None
    place: str | None = None
    landmark: str | None = None

    @property
    def name(self) -> str:
        """Its name, without place and landmark."""
        return " ".join(word for word in (self.size, self.color, self.shape) if word)

    @property
    def is_plain(self) -> bool:
        """Whether colour and shape are all that is said."""
        return self.size is None and self.place is None and self.landmark is None

    def __str__(self) -> str:
        words = f"{self.place} {self.name}" if self.place else self.name
        return f"{words} nearest to the {self.landmark}" if self.landmark else words


def pattern(shapes: Sequence[str]) -> str:
    """A regular expression without groups for the nouns of some shapes."""
    color = f"(?:{'|'.join(COLORS)})"
    word = f"(?:{'|'.join((*SIZES, *PLACES))})"
    return (
        f"(?:{word} )?{color} (?:{'|'.join(shapes)})(?: nearest to the {color} (?:{'|'.join(SHAPES + VARIED_SHAPES)}))?"
    )


_NOUN = re.compile(
    rf"(?:(?P<size>{'|'.join(SIZES)}) |(?P<place>{'|'.join(PLACES)}) )?(?P<color>{'|'.join(COLORS)}) (?P<shape>[a-z]+)"
    r"(?: nearest to the (?P<landmark>.+))?"
)


def noun(text: str) -> Noun:
    """The noun in `text`, such as "left red cube"; raises InputError if it is none."""
    if (match := _NOUN.fullmatch(text)) is None:
        raise InputError(
            f'cannot read {text!r} as a thing; it must be "<color> <shape>", with {", ".join((*SIZES, *PLACES))} '
            'before it or "nearest to the <color> <shape>" behind it'
        )
    return Noun(**match.groupdict())


def meant(text: str, places: Mapping[str, tuple[float, float]]) -> str:
    """The name of the thing that a noun means.

    Args:
        text: the noun, in the words of an instruction.
        places: names of the things on the table to x, y [m] in `base_link`.

    Raises:
        InputError: no such thing is there, or more than one.
    """
    if text in places:
        return text
    wanted = noun(text)
    like = [name for name in places if name.split()[-2:] == [wanted.color, wanted.shape]]
    if wanted.size:
        like = [name for name in like if name == wanted.name]
    if like and wanted.place:
        along = np.array(PLACES[wanted.place])
        like = [max(like, key=lambda name: float(along @ places[name]))]
    if like and wanted.landmark:
        here = np.array(places[meant(wanted.landmark, places)])
        like = [min(like, key=lambda name: float(np.hypot(*(here - places[name]))))]
    if len(like) == 1:
        return like[0]
    there = ", ".join(sorted(places)) or "none"
    raise InputError(f"{'no object' if not like else 'more than one object is meant by'} {text!r}; there are: {there}")
