"""The rule-based VLM: names objects found by colour segmentation, their places, and a plan."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from merton.cognition.models.base import Answer, VisionLanguageModel
from merton.errors import InputError
from merton.models.blobs import Blob, find_blobs
from merton.world.nouns import noun
from merton.world.observation import Image
from merton.world.tasks import COLORS, SHAPES, TASKS, Command, find

_COLUMNS = ((0.46, "left"), (0.54, "center"), (1.0, "right"))
_ROWS = ((0.44, "far"), (0.52, "middle"), (1.0, "near"))
"""End of a column or row of places, as a share of the image: there "top" sees the thirds of the area."""
_MAT_SIZE = 2.5
"""Least ratio of a mat's patch to the smallest one; a mat is four times as large as an object's top."""


class Describe(VisionLanguageModel):
    """Answers such as "Red cube near left, beside blue cylinder; lower gripper, close, lift.".

    To a question for an instruction: one of `merton.world.tasks` about the things that it sees, such as "Pick up the
    red cylinder.", whether it was told of a cylinder or of a cube.
    """

    name = "describe"

    def answer(self, images: Sequence[Image], question: str, max_tokens: int = 32) -> Answer:
        """Answer a question about the first image.

        Args:
            images: (height, width, 3) uint8 RGB, from above with the robot at the bottom; only the first is used.
            question: contains an instruction of `merton.world.tasks`; without one the answer lists the visible objects.
                With the word "instruction" the answer is one.
            max_tokens: most words in the answer, >= 1.

        Raises:
            InputError: no image, or no room for an answer.
        """
        started = time.perf_counter()
        if not images or max_tokens < 1:
            raise InputError("describe needs an image and room for at least one word")
        size = images[0].shape[:2]
        seen = {color: blobs[0] for color in COLORS if (blobs := find_blobs(images[0], color))}
        command = find(question)
        if command is None:
            text = _inventory(seen, size)
        elif "instruction" in question.lower():
            text = _instruction(command, seen)
        else:
            text = _advice(command, seen, size)
        text = " ".join(text.split()[:max_tokens]).rstrip(",;.") + "."
        return Answer(text[0].upper() + text[1:], time.perf_counter() - started)


def _inventory(seen: dict[str, Blob], size: tuple[int, int]) -> str:
    things = (f"{_name(blob, seen)} {_place(blob, size)}" for blob in seen.values())
    return ", ".join(things) or "no object visible"


def _advice(command: Command, seen: dict[str, Blob], size: tuple[int, int]) -> str:
    """About ten words: the object, its place, its neighbour, the plan."""
    color = noun(command.object).color
    plan = TASKS[command.verb].plan.format(direction=command.direction, target=_target(command, seen, size))
    if color not in seen:
        others = ", ".join(_name(blob, seen) for blob in seen.values())
        return f"no {command.object} visible{', only ' if others else ''}{others}; look again"
    blob = seen[color]
    beside = _nearest(blob, [other for other in seen.values() if other is not blob])
    neighbour = f", beside {_name(beside, seen)}" if beside else ""
    return f"{_object(command, seen)} {_place(blob, size)}{neighbour}; {plan}"


def _instruction(command: Command, seen: dict[str, Blob]) -> str:
    """The instruction about the things as they are seen, or which of them is not."""
    for thing in (command.object, command.target or command.object):
        if noun(thing).color not in seen:
            return f"no {thing} visible"
    return replace(command, object=_object(command, seen)).instruction


def _object(command: Command, seen: dict[str, Blob]) -> str:
    """Colour and shape of the object. Only the colour of one that is no cube or cylinder is found in the image."""
    said = noun(command.object)
    if said.shape not in SHAPES:
        return command.object
    color, shape = _name(seen[said.color], seen).split()
    return str(replace(said, color=color, shape=shape))


def _target(command: Command, seen: dict[str, Blob], size: tuple[int, int]) -> str:
    if command.target is None:
        return ""
    color = noun(command.target).color
    return f"{command.target} {_place(seen[color], size)}" if color in seen else f"unseen {command.target}"


def _name(blob: Blob, seen: dict[str, Blob]) -> str:
    """Colour and shape in the image, which may differ from the instruction."""
    smallest = min(other.area_px for other in seen.values())
    return f"{blob.color} {'mat' if blob.area_px > _MAT_SIZE * smallest else blob.shape}"


def _place(blob: Blob, size: tuple[int, int]) -> str:
    """The ninth of the objects' area that a blob is in."""
    u, v = blob.centroid_px
    row = next(word for end, word in _ROWS if v <= end * size[0])
    column = next(word for end, word in _COLUMNS if u <= end * size[1])
    return f"{row} {column}"


def _nearest(blob: Blob, others: list[Blob]) -> Blob | None:
    return min(
        others, key=lambda other: float(np.hypot(*np.subtract(other.centroid_px, blob.centroid_px))), default=None
    )
