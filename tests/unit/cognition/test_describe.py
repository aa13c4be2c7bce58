"""The rule-based VLM: its answers about drawn and rendered images, and the effect of a distortion."""

from __future__ import annotations

import re

import cv2
import numpy as np
import pytest

from merton.cognition.models.base import MODELS, question_for
from merton.cognition.models.describe import Describe
from merton.errors import InputError
from merton.models.blobs import LIT
from merton.perception.distortion import distort
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.world.observation import Image

# (x, y) [px] of the thirds of the table for camera "top"
LEFT, CENTER, RIGHT = 170, 211, 255
FAR, MIDDLE, NEAR = 90, 116, 135


def drawn(*things: tuple[str, int, int]) -> Image:
    """A grey image with things of about the size camera "top" sees: name, centre u, centre v."""
    image = np.full((240, 424, 3), 200, np.uint8)
    for name, u, v in things:
        color, shape = name.split()
        rgb = cv2.cvtColor(np.array([[LIT[color]]], np.uint8), cv2.COLOR_HSV2RGB)[0, 0].tolist()
        if shape == "cube":
            image[v - 5 : v + 5, u - 5 : u + 5] = rgb
        else:
            cv2.circle(image, (u, v), 12 if shape == "mat" else 5, rgb, cv2.FILLED)
    return image


def say(image: Image, instruction: str, **settings: int) -> str:
    return Describe().answer([image], question_for(instruction), **settings).text


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("reach above the red cube", "Red cube far left, beside blue cylinder; move hand above it."),
        ("push the red cube to the right", "Red cube far left, beside blue cylinder; close gripper, push right."),
        ("pick up the blue cylinder", "Blue cylinder middle center, beside green mat; lower gripper, close, lift."),
        (
            "place the blue cylinder on the green mat",
            "Blue cylinder middle center, beside green mat; grasp it, set on green mat near right.",
        ),
        (
            "place the red cube on the yellow mat",
            "Red cube far left, beside blue cylinder; grasp it, set on unseen yellow mat.",
        ),
        (
            "pick up the yellow cylinder",
            "No yellow cylinder visible, only red cube, green mat, blue cylinder; look again.",
        ),
    ],
)
def test_answers_to_a_drawn_table(instruction: str, expected: str) -> None:
    image = drawn(("red cube", LEFT, FAR), ("blue cylinder", CENTER, MIDDLE), ("green mat", RIGHT, NEAR))
    assert say(image, instruction) == expected


def test_it_says_what_it_sees_not_what_it_was_told() -> None:
    assert say(drawn(("red cylinder", LEFT, NEAR)), "pick up the red cube").startswith("Red cylinder near left;")


def test_nothing_there() -> None:
    assert say(drawn(), "pick up the red cube") == "No red cube visible; look again."


def test_a_question_without_a_task_gets_an_inventory() -> None:
    image = drawn(("red cube", LEFT, FAR), ("blue cylinder", CENTER, NEAR))
    assert Describe().answer([image], "What is there?").text == "Red cube far left, blue cylinder near center."
    assert Describe().answer([drawn()], "What is there?").text == "No object visible."


def test_no_more_words_than_allowed() -> None:
    image = drawn(("red cube", LEFT, FAR), ("blue cylinder", CENTER, NEAR))
    for limit in range(1, 13):
        text = say(image, "pick up the red cube", max_tokens=limit)
        assert len(text.split()) == min(limit, 11)
        assert re.fullmatch(r"[A-Z].*[a-z]\.", text)
    with pytest.raises(InputError):
        say(image, "pick up the red cube", max_tokens=0)
    with pytest.raises(InputError):
        Describe().answer([], question_for("pick up the red cube"))


def test_garbage_gets_an_answer() -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        assert say(rng.integers(0, 256, (240, 424, 3), np.uint8), "pick up the red cube")


def seen(cell: SimulatedCell, cameras: SceneCameras, task: str, seed: int) -> tuple[Image, str]:
    instruction = cell.reset(task, seed).command.instruction
    return cameras.render(task, seed, cell.qpos, "top").color, instruction


def test_rendered_scenes_in_words(cell: SimulatedCell, cameras: SceneCameras) -> None:
    """Golden: the answers to the first scenes, checked by eye on the pictures and against the scenes' numbers."""
    assert [say(*seen(cell, cameras, task, 0)) for task in ("reach", "push", "pick", "place")] == [
        "Blue cube middle right, beside yellow cube; move hand above it.",
        "Green cube far center, beside blue cube; close gripper, push right.",
        "Green cylinder far left, beside blue cylinder; lower gripper, close, lift.",
        "Blue cube near center, beside yellow cylinder; grasp it, set on red mat near right.",
    ]


def test_most_shapes_are_right(cell: SimulatedCell, cameras: SceneCameras) -> None:
    right = []
    for seed in range(30):
        image, instruction = seen(cell, cameras, "reach", seed)
        name = instruction.removeprefix("reach above the ")
        right.append(say(image, instruction).lower().startswith(name))
    assert np.mean(right) >= 0.9


def test_a_distortion_changes_the_answer(cell: SimulatedCell, cameras: SceneCameras) -> None:
    rng = np.random.default_rng(0)
    changed = dict.fromkeys(("lens_blur", "white_noise", "max_darken"), 0)
    for seed in range(10):
        image, instruction = seen(cell, cameras, "pick", seed)
        assert say(image, instruction) == say(image.copy(), instruction)
        for name in changed:
            changed[name] += say(distort(image, name, 5, rng), instruction) != say(image, instruction)
    assert min(changed.values()) >= 5


def test_it_is_in_the_catalogue() -> None:
    assert isinstance(MODELS["describe"].build(), Describe)
