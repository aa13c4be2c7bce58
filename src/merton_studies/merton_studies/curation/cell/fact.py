"""Questions before they have words: facts of a scene with exact answers, and the truth that families read them from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from merton.config import Model
from merton_studies.curation.question import AnswerKind

if TYPE_CHECKING:
    from merton.simulation.tabletop import Pushed, Seen

VISIBLE_SHARE, VISIBLE_PIXELS = 0.75, 110
"""Ours: a thing counts as seen if so much of its silhouette, and so many pixels, are free."""
POINTED_SHARE = 0.9
"""A thing that is to be pointed at is hardly hidden, so that its outline is the region that shows it."""
ROBOT_SHARE = 0.015
"""The stands of the cameras, which belong to the robot, take less of a picture."""
LOOK_ALIKE = (
    ("cylinder", "peg", "spool", "mug", "cup", "bottle", "cone"),
    ("cube", "brick", "lid", "socket"),
    ("button", "knob"),
)
"""Kinds that may be taken for one another: no question depends on telling them apart, and two of one colour in a group
are not named unless "small" and "large" do it."""


class Fact(Model):
    """A question without words.

    Attributes:
        family: its kind, which has its own wordings.
        dimension: the capability that it needs, as in the taxonomy "a2eval".
        subject: what tells it from the other facts of its family in its scene.
        answer_kind, answer, also, choices, unit: as in `Question`; the choices in any order.
        words: for the fields of the wordings.
        pictures: file names in their order.
        balance: the class of the answer; families have all classes equally often as far as scenes allow.
    """

    family: str
    dimension: str
    subject: str
    answer_kind: AnswerKind
    answer: str
    also: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    unit: str = ""
    words: dict[str, str] = Field(default_factory=dict)
    pictures: tuple[str, ...]
    balance: str


@dataclass(frozen=True)
class Item:
    """A thing of a scene as it is after everything has come to rest; lengths in metres, in `base_link`.

    Attributes:
        name, color, kind, scale: as in `merton.simulation.varied`.
        low, high: least and greatest x, y, z (3,).
        upright: whether it stands; None if it leans.
        loose: neither a fixture nor a mat.
        on: name of the mat or thing that it stands on; "" is the table.
        inside: name of the bowl or socket that it is in, or "".
        opened: of a drawer, whether it is open; None of anything else.
        width_m, length_m: of a standing thing, along the axes of its own frame that lie flat, the narrower one first.
        beads: number of beads in a cup or bowl.
    """

    name: str
    color: str
    kind: str
    scale: float
    low: np.ndarray
    high: np.ndarray
    upright: bool | None
    loose: bool
    on: str = ""
    inside: str = ""
    opened: bool | None = None
    width_m: float = 0.0
    length_m: float = 0.0
    beads: int = 0

    @property
    def middle(self) -> np.ndarray:
        """Its middle (3,)."""
        return np.asarray((self.low + self.high) / 2)

    @property
    def height_m(self) -> float:
        """From its lowest point to its highest."""
        return float(self.high[2] - self.low[2])


@dataclass(frozen=True)
class Shot:
    """A picture of a scene.

    Attributes:
        file: its name.
        seen: the things in it by name.
        robot: the robot's share of it.
    """

    file: str
    seen: Mapping[str, Seen]
    robot: float

    @property
    def shows_robot(self) -> bool:
        """Whether a reader sees where the robot stands, and so what is near to it or on its left."""
        return self.robot >= ROBOT_SHARE

    def shows(self, name: str, share: float = VISIBLE_SHARE) -> bool:
        """Whether a thing is plainly to be seen."""
        seen = self.seen.get(name)
        return seen is not None and seen.shown >= share and seen.pixels >= VISIBLE_PIXELS


@dataclass(frozen=True)
class Push:
    """A push that was simulated: how far [m], where the robot's left is, at which height of the thing, and the end."""

    name: str
    left: bool
    distance_m: float
    at_three_quarters: bool
    ended: Pushed


@dataclass(frozen=True)
class Change:
    """A change between two pictures: "moved", "removed", "toppled", "opened", "closed" or "nothing", and its thing.

    `left_m` is the distance that the thing came towards the robot's left.
    """

    done: str
    name: str
    left_m: float
    before: Shot
    after: Shot


@dataclass(frozen=True)
class CellScene:
    """The truth about a scene, from which facts are read.

    Attributes:
        id: such as "test.7".
        items: name to thing.
        shots: pictures of it.
        pushes: simulated from it.
        change: with its two pictures, or None.
    """

    id: str
    items: Mapping[str, Item]
    shots: Sequence[Shot]
    pushes: Sequence[Push] = field(default_factory=tuple)
    change: Change | None = None

    @property
    def all_shots(self) -> list[Shot]:
        """The pictures, and those of the change."""
        return [*self.shots, *((self.change.before, self.change.after) if self.change else ())]

    def clear(self, name: str) -> bool:
        """Whether the name of a thing means no other thing, nor one that looks like it."""
        item = self.items[name]
        like = [other for other in self.items.values() if other.color == item.color and alike(other.kind, item.kind)]
        pair = len(name.split()) == 3
        return len(like) == (2 if pair else 1) and (not pair or like[0].kind == like[1].kind)

    def guests(self, name: str) -> list[Item]:
        """The things that stand on a thing or are in it."""
        return [item for item in self.items.values() if name in (item.on, item.inside)]

    def named(self, shot: Shot) -> list[Item]:
        """The things that a question about a picture may name: seen, and told from all others by their names."""
        found = []
        for item in self.items.values():
            twin = [other for other in self.items if other.split()[-2:] == item.name.split()[-2:]]
            if self.clear(item.name) and all(shot.shows(other) for other in twin):
                found.append(item)
        return found

    def alone(self, shot: Shot) -> list[Item]:
        """The things that are the only ones of their colour, and seen: they can be named by the colour alone."""
        colors = [item.color for item in self.items.values()]
        return [item for item in self.items.values() if colors.count(item.color) == 1 and shot.shows(item.name)]


def alike(kind: str, other: str) -> bool:
    """Whether two kinds of things may be taken for one another."""
    return kind == other or any(kind in group and other in group for group in LOOK_ALIKE)


def the(name: str) -> str:
    """A thing with its article."""
    return f"the {name}"


def yes_no(family: str, dimension: str, subject: str, truth: bool, words: dict[str, str], shot: Shot) -> Fact:
    """A fact that is so or not."""
    answer = "yes" if truth else "no"
    return Fact(
        family=family, dimension=dimension, subject=subject, answer_kind="yes_no", answer=answer, words=words,
        pictures=(shot.file,), balance=answer,
    )  # fmt: skip


def choice(
    family: str,
    dimension: str,
    subject: str,
    answer: str,
    choices: Iterable[str],
    words: dict[str, str],
    shot: Shot,
    balance: str | None = None,
) -> Fact:
    """A fact that is one of several."""
    return Fact(
        family=family, dimension=dimension, subject=subject, answer_kind="choice", answer=answer,
        choices=tuple(choices), words=words, pictures=(shot.file,), balance=answer if balance is None else balance,
    )  # fmt: skip


def number(
    family: str, subject: str, value: float, words: dict[str, str], shot: Shot, *, unit: str = "", balance: str
) -> Fact:
    """A fact that is a number, of QuantNum."""
    answer = f"{value:.3f}" if unit else str(int(value))
    return Fact(
        family=family, dimension="QuantNum", subject=subject, answer_kind="number", answer=answer, unit=unit,
        words=words, pictures=(shot.file,), balance=balance,
    )  # fmt: skip
