"""What a world gives is checked where it comes in: each wrong value by a sentence that names it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from point_world import Point

from merton.errors import InfrastructureError
from merton.world.geometry import from_rpy
from merton.worlds.boundary import Given, differences
from merton.worlds.description import WorldCamera, WorldDescription

CAMERA = WorldCamera(name="above", width_px=4, height_px=2)
TURNED = from_rpy((1, 2, 3), (0.1, 0.2, 0.3))
MIRRORED = np.diag([1.0, 1.0, -1.0, 1.0])
SHEARED = TURNED + np.eye(4)[::-1] * [1e-3, 0, 0, 0]

WRONG = {
    "colour of floats": (lambda own: own.picture(CAMERA, np.zeros((2, 4, 3))), "float64 (2, 4, 3)"),
    "colour on its side": (lambda own: own.picture(CAMERA, np.zeros((4, 2, 3), np.uint8)), "uint8 (4, 2, 3)"),
    "four channels": (lambda own: own.picture(CAMERA, np.zeros((2, 4, 4), np.uint8)), "uint8 (2, 4, 4)"),
    "no colour": (lambda own: own.picture(CAMERA, None), "nothing"),
    "a list of colours": (lambda own: own.picture(CAMERA, [[1]]), "type list"),
    "depth of doubles": (lambda own: own.depth(CAMERA, np.zeros((2, 4))), "float64 (2, 4)"),
    "depth below zero": (lambda own: own.depth(CAMERA, np.full((2, 4), -1, np.float32)), "no such depth"),
    "depth without end": (lambda own: own.depth(CAMERA, np.full((2, 4), np.inf, np.float32)), "no such depth"),
    "a mask of bytes": (lambda own: own.mask(CAMERA, np.zeros((2, 4), np.uint8)), "uint8 (2, 4)"),
    "a mirror": (lambda own: own.transform("base_from_tool", MIRRORED), "a matrix that is none"),
    "a shear": (lambda own: own.transform("base_from_tool", SHEARED), "a matrix that is none (off by 0.001)"),
    "a (3, 3)": (lambda own: own.transform("base_from_tool", np.eye(3)), "the shape (3, 3)"),
    "an infinite pose": (
        lambda own: own.transform("base_from_tool", np.full((4, 4), np.inf)),
        "from_tool[0, 0]",
    ),
    "a share of NaN": (lambda own: own.share("progress", float("nan")), "progress nan"),
    "a share that is true": (lambda own: own.share("progress", True), "type bool"),
    "too many points": (lambda own: own.path(np.zeros((3, 3)), 2), "float64 (3, 3)"),
    "points in a plane": (lambda own: own.path(np.zeros((2, 2)), 2), "float64 (2, 2)"),
    "the second point": (lambda own: own.path(np.array([[0, 0, 0], [0, 0, np.nan]]), 2), "nan in point[2] at row 7"),
    "a row of halves": (lambda own: own.whole("rows", 1.5, 3), "rows 1.5"),
    "rows that are true": (lambda own: own.whole("rows", True, 3), "rows True"),
    "more rows": (lambda own: own.whole("rows", 4, 3), "rows 4"),
    "success of 1": (lambda own: own.flag("success", 1), "type int"),
    "no instruction": (lambda own: own.text("the instruction", None), "nothing"),
}


@pytest.mark.parametrize(("check", "found"), [pytest.param(*case, id=name) for name, case in WRONG.items()])
def test_a_wrong_value_is_named(check: Callable[[Given], Any], found: str) -> None:
    with pytest.raises(InfrastructureError) as caught:
        check(Given("point", "task reach, scene 3", 7))
    assert str(caught.value).startswith("world 'point' gave ")
    assert found in str(caught.value)
    assert " at row 7 of task reach, scene 3: " in str(caught.value)


def test_what_is_right_is_taken_as_it_is() -> None:
    own = Given("point", "", 7)
    rounded = TURNED.astype(np.float32)  # a simulator of single precision
    assert np.array_equal(own.transform("base_from_tool", rounded), rounded)
    assert own.share("progress", 1 + 1e-9) == 1.0
    assert own.share("progress", 0) == 0.0
    assert own.path(np.zeros((0, 3)), 2).shape == (0, 3)
    assert own.path(np.ones((2, 3)), 2).tolist() == [[1, 1, 1], [1, 1, 1]]
    picture = np.zeros((2, 4, 3), np.uint8)
    assert own.picture(CAMERA, picture) is picture


def test_differences_are_named_with_the_versions_first() -> None:
    def described(**settings: Any) -> WorldDescription:
        return WorldDescription.model_validate_json(json.dumps(Point(**settings).describe()))

    one = described()
    assert differences(one, described()) == []
    changed = one.model_copy(
        update={
            "versions": {"point": "2.0", "renderer": "llvmpipe"},
            "cameras": (*one.cameras, CAMERA.model_copy(update={"name": "side"})),
            "tasks": one.tasks[:1],
        }
    )
    found = differences(one, changed)
    assert found[:3] == [
        "point 1.0 -> 2.0",
        f"numpy {np.__version__} -> absent",
        "renderer absent -> llvmpipe",
    ]
    assert "cameras.side.width_px absent -> 4" in found
    assert "tasks.touch.scenes 50 -> absent" in found
    assert not any(text.startswith(("action", "tasks.reach")) for text in found)
