"""MetaWorld as a world, in the environment that MERTON_METAWORLD_PYTHON names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from foreign_world import probe, python_of, run

from merton.worlds.description import WorldDescription

WORLD = "metaworld_world:MetaWorld"


def seen(code: str) -> Any:
    """What a few lines print, in which `world` is a MetaWorld with pictures of 64 px."""
    begin = "import json\nimport numpy as np\nimport metaworld_world\nworld = metaworld_world.MetaWorld(size_px=64)\n"
    return run(python_of("MERTON_METAWORLD_PYTHON"), "-c", begin + code)


def test_it_describes_all_fifty_tasks() -> None:
    described, known = seen(
        "from metaworld.policies import ENV_POLICY_MAP\nprint(json.dumps([world.describe(), sorted(ENV_POLICY_MAP)]))"
    )
    description = WorldDescription.model_validate_json(json.dumps(described))
    assert sorted(description.task_names) == known
    assert len(description.tasks) == len({task.instruction for task in description.tasks}) == 50
    assert description.camera_names == ("corner2", "corner4", "gripper_pov")
    assert {"metaworld", "mujoco", "renderer"} <= set(description.versions)


def test_a_scene_is_the_same_in_any_order_and_process_and_forks_are_exact() -> None:
    python = python_of("MERTON_METAWORLD_PYTHON")
    tasks = ["drawer-open-v3", "push-v3", "hammer-v3"]
    one, other = (probe(python, WORLD, tasks, 2, order) for order in (1, 2))
    assert one == other
    assert len({begun for begun, _, _ in one.values()}) == len(one) == 6


def test_pictures_are_upright() -> None:
    """Of a camera whose up points down, MuJoCo's own picture turned by half a turn, not mirrored."""
    same, up_m = seen(
        "import mujoco\n"
        "world.reset('button-press-v3', 0)\n"
        "env, found = world._bench.env, []\n"
        "for own, name in (('corner2', 'corner2'), ('gripper_pov', 'gripperPOV')):\n"
        "    world._bench.renderer.update_scene(env.data, camera=name)\n"
        "    raw = world._bench.renderer.render()\n"
        "    found.append(bool((world.look(own) == (raw[::-1, ::-1] if own == 'corner2' else raw)).all()))\n"
        "print(json.dumps([found, env.data.camera('corner2').xmat.reshape(3, 3)[2, 1]]))"
    )
    assert same == [True, True]
    assert up_m < 0


def test_a_row_moves_the_tool_and_does_not_turn_it() -> None:
    moved, turned, gripper = seen(
        "world.reset('reach-v3', 0)\n"
        "began = world.state()\n"
        "kept = world.save()\n"
        "for _ in range(10):\n"
        "    world.step(np.array([.005, 0, 0, 0, 0, 0, 1]))\n"
        "straight = world.state()\n"
        "world.load(kept)\n"
        "for _ in range(10):\n"
        "    world.step(np.array([.005, 0, 0, .3, .2, .1, 0]))\n"
        "bent = world.state()\n"
        "way = np.subtract(straight['point'], began['point'])\n"
        "same = np.abs(bent['base_from_tool'][:3, :3] - straight['base_from_tool'][:3, :3]).max()\n"
        "print(json.dumps([way.tolist(), same, [straight['gripper_open'], bent['gripper_open'], "
        "straight['rest_row'][6], bent['rest_row'][6]]]))"
    )
    assert 0.02 < moved[0] < 0.055
    assert abs(moved[1]) < 0.01
    assert turned < 0.05
    assert gripper[0] > gripper[1] + 0.1
    assert gripper[2:] == [1, 0]


@pytest.mark.parametrize("task", ["button-press-topdown-v3", "drawer-open-v3", "door-open-v3"])
def test_the_expert_does_its_task(task: str) -> None:
    rows, began, ended = seen(
        f"world.reset({task!r}, 3)\n"
        "began, rows = world.progress(), 0\n"
        "while not world.success():\n"
        "    world.step(world.expert())\n"
        "    rows += 1\n"
        "print(json.dumps([rows, began, world.progress()]))"
    )
    assert 20 < rows < 200
    assert (began, ended) == ((None, None) if task == "door-open-v3" else (0, 1))


def test_it_ends_at_metaworlds_own_step_limit() -> None:
    ends = seen(
        "world.reset('push-v3', 0)\n"
        "rest = world.state()['rest_row']\n"
        "ends = [world.step(rest) for _ in range(metaworld_world.ROWS)]\n"
        "print(json.dumps(ends))"
    )
    assert ends == [None] * 499 + ["step limit"]


def test_things_and_depth() -> None:
    shares, nearest_m, same = seen(
        "world.reset('coffee-button-v3', 1)\n"
        "before = world.look('corner4')\n"
        "things, depth = world.things('corner4'), world.depth('corner4')\n"
        "same = bool((world.look('corner4') == before).all())\n"
        "print(json.dumps([[float(things.mean()), str(things.dtype), str(depth.dtype)], float(depth.min()), same]))"
    )
    assert 0.03 < shares[0] < 0.2
    assert shares[1:] == ["bool", "float32"]
    assert 0.3 < nearest_m < 1
    assert same
