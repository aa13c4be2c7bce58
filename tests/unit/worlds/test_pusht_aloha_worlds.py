"""PushT and ALOHA as worlds, in the environments that MERTON_PUSHT_PYTHON and MERTON_ALOHA_PYTHON name."""

from __future__ import annotations

import json

import pytest
from foreign_world import probe, python_of, run

from merton.worlds.description import WorldDescription

WORLDS = {
    "pusht": ("MERTON_PUSHT_PYTHON", "pusht_world:PushT", ["push-t"], 25),
    "aloha": ("MERTON_ALOHA_PYTHON", "aloha_world:Aloha", ["transfer-cube", "insertion"], 2),
}


@pytest.mark.parametrize("name", WORLDS)
def test_a_scene_is_the_same_in_any_order_and_process_and_forks_are_exact(name: str) -> None:
    """PushT's 21st scene begins with the disk on the T, where gym-pusht's own pictures differ between processes."""
    variable, world, tasks, scenes = WORLDS[name]
    one, other = (probe(python_of(variable), world, tasks, scenes, order) for order in (1, 2))
    assert one == other
    assert len({begun for begun, _, _ in one.values()}) == len(one) == len(tasks) * scenes


@pytest.mark.parametrize(
    ("name", "columns", "absent"),
    [("pusht", 2, {"joints_rad", "base_from_tool", "gripper_open"}), ("aloha", 14, {"base_from_tool", "point"})],
)
def test_what_a_robot_lacks_is_absent(name: str, columns: int, absent: set[str]) -> None:
    variable, world, tasks, _ = WORLDS[name]
    module, kind = world.split(":")
    described, keys, row, shape = run(
        python_of(variable),
        "-c",
        f"import json, {module}\n"
        f"world = {module}.{kind}()\n"
        f"about = world.describe()\n"
        f"world.reset({tasks[0]!r}, 0)\n"
        "state, picture = world.state(), world.look(about['cameras'][0]['name'])\n"
        "print(json.dumps([about, sorted(state), list(map(float, state['rest_row'])), picture.shape]))",
    )
    description = WorldDescription.model_validate_json(json.dumps(described))
    assert description.action.form == "rows"
    assert list(description.task_names) == tasks
    assert len(row) == len(description.action.columns) == columns
    assert not absent & set(keys)
    camera = description.cameras[0]
    assert shape == [camera.height_px, camera.width_px, 3]


def test_pusht_goes_where_a_row_says_and_says_how_much_is_covered() -> None:
    at, progress = run(
        python_of("MERTON_PUSHT_PYTHON"),
        "-c",
        "import json, numpy as np\n"
        "from pusht_world import PushT\n"
        "world = PushT()\n"
        "world.reset('push-t', 0)\n"
        "progress = [world.progress()]\n"
        "world.env.block.angle = np.pi / 4\n"
        "world.env.block.position = 256, 256\n"
        "progress.append(world.progress())\n"
        "for _ in range(15):\n"
        "    world.step(np.array([40., 60]))\n"
        "print(json.dumps([world.state()['point'], progress]))",
    )
    assert at == [pytest.approx(40, abs=1), pytest.approx(60, abs=1), 0]
    assert progress[0] < 0.5
    assert progress[1] == 1


def test_aloha_keeps_still_and_takes_its_grippers_as_shares() -> None:
    moved_rad, grippers = run(
        python_of("MERTON_ALOHA_PYTHON"),
        "-c",
        "import json, numpy as np\n"
        "from aloha_world import Aloha\n"
        "world = Aloha()\n"
        "world.reset('transfer-cube', 0)\n"
        "began = world.state()\n"
        "for _ in range(20):\n"
        "    world.step(began['rest_row'])\n"
        "moved = float(np.abs(world.state()['joints_rad'] - began['joints_rad']).max())\n"
        "opened = began['rest_row'].copy()\n"
        "opened[[6, 13]] = 1, 0\n"
        "for _ in range(50):\n"
        "    world.step(opened)\n"
        "print(json.dumps([moved, world.state()['extra']['agent_pos'][[6, 13]].tolist()]))",
    )
    assert moved_rad < 0.05
    assert grippers[0] > grippers[1] + 0.5
