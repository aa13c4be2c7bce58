"""The condition that the next episode of an agent in a scene gets: balanced, paired, seeded, resumable."""

from __future__ import annotations

from functools import lru_cache

from merton.episodes.design import UNDISTORTED, Condition, Design
from merton.seeding import generator

Place = tuple[str, str, int]
"""Agent, task and scene."""


class Assignment:
    """The conditions that are given already, of every agent in every scene.

    The order of a scene's conditions follows from the design, its seed, the task and the scene's number alone: neither
    from the order in which a program visits scenes, nor from interruptions. The undistorted one is first. After it, in
    each pass over scenes that are numbered without gaps, every condition is given as often as any other, to within
    one: the orders of neighbouring scenes are one permutation, turned by all amounts in a row, and those in the order
    of van der Corput, so that the sums over several passes stay near each other, too.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self._taken: dict[Place, set[Condition]] = {}

    def order(self, task: str, scene: int) -> tuple[Condition, ...]:
        """All conditions of a scene in the order in which they are given."""
        conditions = self.design.conditions(task, scene)
        turned = turned_order(self.design.seed, task, scene, len(conditions))
        return (UNDISTORTED, *(conditions[number] for number in turned))

    def next(self, agent: str, task: str, scene: int) -> Condition | None:
        """The first condition of the scene that the agent has not been given; None if it has been given all."""
        taken = self._taken.get((agent, task, scene), set())
        return next((one for one in self.order(task, scene) if one not in taken), None)

    def take(self, agent: str, task: str, scene: int, condition: Condition) -> bool:
        """Mark a condition as given, from the beginning of its episode on; False if it was before."""
        taken = self._taken.setdefault((agent, task, scene), set())
        if condition in taken:
            return False
        taken.add(condition)
        return True

    def give_back(self, agent: str, task: str, scene: int, condition: Condition) -> None:
        """Let a condition be given again, whose episode was lost."""
        self._taken.get((agent, task, scene), set()).discard(condition)


def turned_order(seed: int, task: str, scene: int, count: int) -> list[int]:
    """The order of a scene's `count` conditions, as their numbers in the design."""
    if not count:
        return []
    permutation = generator("episodes", seed, task).permutation(count)
    turn = _turns(count)[scene % count]
    return [int(permutation[(turn + place) % count]) for place in range(count)]


@lru_cache(maxsize=64)
def _turns(count: int) -> tuple[int, ...]:
    """The numbers 0 .. count - 1, any first of them spread evenly: in the order of their bits read backwards."""
    bits = max(1, (count - 1).bit_length())
    mirrored = (int(f"{number:0{bits}b}"[::-1], 2) for number in range(1 << bits))
    return tuple(number for number in mirrored if number < count)
