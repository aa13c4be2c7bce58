"""The part of the pictures that is distorted, and the subsets of its parts: one rule for trials and for episodes.

For one axis (stages, cameras, steps, regions) the parts are the players of a game whose value is the loss of a trial:
without any of them distorted it is the undistorted run, with all of them the trial itself (`merton.study.attribution`).
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Annotated, Any

from pydantic import Field

from merton.config import Model
from merton.experiment.fields import distinct

AXES = ("stages", "cameras", "steps", "regions")
WHOLE = "all"
"""The design in which every part is distorted: the experiment's own."""
LONGEST_NAME = 120
"""Of a design, in characters, before ranges stand in it: it is the id of an experiment in a record."""
MOST_PREFIXES = 16
"""Steps of a trial of which every prefix is a design of its own. Ours: they cost the square of their number."""
STEP_PARTS = 4
"""Parts of the axis "steps" by default: as many more double the trials."""


class Part(Model):
    """The part of a policy's pictures that is distorted.

    Attributes:
        cameras: cameras whose images are distorted; every camera if left out.
        steps: numbers of steps, from 0; every step if left out.
    """

    cameras: Annotated[tuple[str, ...], Field(min_length=1), distinct("camera")] | None = None
    steps: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1), distinct("step")] | None = None

    def holds(self, camera: str, step: int) -> bool:
        """Whether the picture of a camera at a step is distorted."""
        return is_covered(self.cameras, self.steps, camera, step)


def is_covered(cameras: Container[str] | None, steps: Container[int] | None, camera: str, step: int) -> bool:
    """Whether a camera and a step are in a part; None is every one."""
    return (cameras is None or camera in cameras) and (steps is None or step in steps)


@dataclass(frozen=True)
class Later:
    """All steps from one on, of a run whose number of steps is not known before."""

    first: int

    def __str__(self) -> str:
        return f"{self.first}.."


class Steps(Container[int]):
    """Numbers of steps, of which the last may stand for all later ones."""

    def __init__(self, values: Collection[int | Later]) -> None:
        self._single = frozenset(value for value in values if isinstance(value, int))
        self._first = min((value.first for value in values if isinstance(value, Later)), default=None)

    def __contains__(self, step: object) -> bool:
        return step in self._single or (self._first is not None and isinstance(step, int) and step >= self._first)


@dataclass(frozen=True)
class Game:
    """The parts of one axis, at least two, of which an agent can see at least one.

    Attributes:
        axis: of `AXES`.
        parts: name of a part to the values of the field `axis` of a `DistortedPart` that it is made of.
        designs: subset of the parts' names, never empty, to the name of the design in which those are distorted.
        unseen: names of further parts, at which the agent does not look: they stay distorted in every design.
    """

    axis: str
    parts: Mapping[str, tuple[Any, ...]]
    designs: Mapping[frozenset[str], str]
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dissection:
    """All that is run of an agent's distorted trials.

    Attributes:
        games: one for each axis that has more than one part, of which the agent sees at least one.
        prefixes: each distorted step, or of many the first of some, to the name of the design in which it, all up to
            the next of these and those before it are distorted.
        designs: name to the distorted part.
        looks: whether any distorted image has an effect on the agent.
    """

    games: tuple[Game, ...]
    prefixes: Mapping[int, str]
    designs: Mapping[str, Any]
    looks: bool = True

    @property
    def is_trivial(self) -> bool:
        """Whether there is nothing to share out."""
        return not self.games and not self.prefixes


def design_name(axis: str, values: Collection[Any], everything: Sequence[Any]) -> str:
    """Name of the design in which these values of an axis are distorted, such as "cameras.top+wrist", or `WHOLE`.

    A name that would be long has ranges of places among all values, from 0, such as "steps.0+3-219".
    """
    chosen = tuple(value for value in everything if value in values)
    if chosen == tuple(everything):
        return WHOLE
    name = f"{axis}.{'+'.join(map(str, chosen))}"
    if len(name) <= LONGEST_NAME:
        return name
    return f"{axis}.{'+'.join(_ranges([place for place, value in enumerate(everything) if value in values]))}"


def _ranges(places: Sequence[int]) -> Iterator[str]:
    """Numbers in rising order as "first-last" of those that follow one another."""
    for _, group in groupby(enumerate(places), key=lambda pair: pair[1] - pair[0]):
        first, *others = [place for _, place in group]
        yield f"{first}-{others[-1]}" if others else str(first)


def first_steps(steps: Sequence[int]) -> list[int]:
    """The numbers of first steps that are distorted to find where a trial is lost: each, or 1, 2, 4, ... of many."""
    if len(steps) <= MOST_PREFIXES:
        return list(range(1, len(steps) + 1))
    return [*(2**power for power in range(len(steps).bit_length()) if 2**power < len(steps)), len(steps)]


def subsets(parts: Collection[str]) -> list[frozenset[str]]:
    """Every subset of the parts but the empty one, small ones first."""
    return [frozenset(some) for size in range(len(parts)) for some in combinations(parts, size + 1)]


def parts_of_steps(steps: Sequence[Any], count: int) -> dict[str, tuple[Any, ...]]:
    """The parts of the axis "steps": single steps, and the rest of them in the last of at most `count` parts."""
    single = {str(step): (step,) for step in steps[: count - 1]}
    rest = tuple(steps[count - 1 :])
    if not rest:
        return single
    first, is_many = (rest[0].first, True) if isinstance(rest[0], Later) else (rest[0], len(rest) > 1)
    return single | {f"{first}{' and later' if is_many else ''}": rest}
