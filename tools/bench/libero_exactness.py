"""Whether LIBERO as a hosted world is exact: resets, forks and pictures, by bytes. Runs in LIBERO's own environment.

    PYTHON tools/bench/libero_exactness.py resets ORDER_SEED COUNT TASK...   # one line of hashes a reset
    PYTHON tools/bench/libero_exactness.py check TASK...                     # forks, hard against soft, LIBERO's own

Two processes with other order seeds give the same set of lines of `resets`: compare them sorted.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("PYOPENGL_PLATFORM", "egl")
sys.path.insert(0, str(Path(__file__).parents[2] / "src/merton/merton/worlds/hosted"))

SIZE_PX = 256
CAMERAS = ("agentview", "wrist")


def state_bytes(world: Any) -> bytes:
    """All of MuJoCo's state of a world, and what a policy reads of it."""
    import mujoco

    room = world._room
    whole = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(room._model, whole))
    mujoco.mj_getState(room._model, room._data, state, whole)
    seen = np.concatenate([np.ravel(value) for value in world.state()["extra"].values()])
    return state.tobytes() + seen.tobytes() + room._model.body_pos.tobytes() + room._model.site_rgba.tobytes()


def pictures(world: Any) -> bytes:
    """The bytes of all cameras."""
    return b"".join(world.look(camera).tobytes() for camera in CAMERAS)


def digest(data: bytes) -> str:
    """Short, for reading."""
    return hashlib.sha256(data).hexdigest()[:12]


def rows(seed: int, count: int) -> np.ndarray:
    """Random rows of tool deltas that move the arm and the gripper."""
    draw = np.random.default_rng(seed)
    moves = draw.uniform(-1, 1, (count, 6)) * np.array([0.05] * 3 + [0.1] * 3)
    return np.column_stack((moves, draw.integers(0, 2, count)))


def follow(world: Any, of: np.ndarray) -> list[bytes]:
    """The state after each row, and with it the pictures after every fifth."""
    told = []
    for count, row in enumerate(of, 1):
        world.step(row)
        told.append(state_bytes(world) + (b"" if count % 5 else pictures(world)))
    return told


def same(one: list[bytes], other: list[bytes]) -> int:
    """The number of rows after which both are the same."""
    return sum(a == b for a, b in zip(one, other, strict=True))


def resets(world: Any, tasks: list[str], count: int, seed: int) -> None:
    """Reset in a drawn order, with random rows before each, and say what came of it."""
    order = [(task, scene % 10) for scene in range(-(-count // len(tasks))) for task in tasks][:count]
    random.Random(seed).shuffle(order)
    for turn, (task, scene) in enumerate(order):
        world.reset(task, scene)
        print(task, scene, digest(state_bytes(world)), digest(pictures(world)), flush=True)
        for row in rows(seed * 1000 + turn, random.Random(turn).randint(0, 5)):
            world.step(row)


def check(kind: type, task: str) -> None:
    """Forks, a soft against a hard reset, and LIBERO's own observations."""
    world = kind(SIZE_PX)
    world.reset(task, 3)
    first = state_bytes(world) + pictures(world)
    for row in rows(1, 10):
        world.step(row)
    snapshot = world.save()
    now = state_bytes(world) + pictures(world)
    straight = follow(world, rows(2, 25))
    world.reset(task, 4)
    follow(world, rows(3, 5))
    world.close()  # the snapshot outlives the simulation
    world.load(snapshot)
    print(task, "at load the same:", state_bytes(world) + pictures(world) == now)
    print(
        task,
        "25 rows after load, same:",
        same(straight, follow(world, rows(2, 25))),
    )
    world.reset(task, 3)
    print(task, "soft reset = hard reset:", state_bytes(world) + pictures(world) == first)
    fresh = kind(SIZE_PX)
    fresh.reset(task, 3)
    print(task, "in a new simulation the same:", state_bytes(fresh) + pictures(fresh) == first)
    for row in rows(1, 10):
        fresh.step(row)
    print(
        task,
        "a separate run = the fork:",
        same(straight, follow(fresh, rows(2, 25))),
    )
    against_stock(world, task)
    for each in (world, fresh):
        each.close()


def against_stock(world: Any, task: str) -> None:
    """LIBERO's own environment with its cameras on, as OpenVLA's evaluation seeds and steps it in its first trial."""
    import libero_actions
    from libero.libero.envs import OffScreenRenderEnv

    entry = world._tasks[task]
    with contextlib.redirect_stdout(io.StringIO()):
        stock = OffScreenRenderEnv(bddl_file_name=entry.bddl_path, camera_heights=SIZE_PX, camera_widths=SIZE_PX)
        stock.seed(0)
        stock.reset()
    observation = stock.set_init_state(world._room._states[5])
    for _ in range(10):
        observation, *_ = stock.step([0] * 6 + [-1])
    world.reset(task, 5)
    worst, other = 0.0, 0
    for row in [None, *rows(4, 20)]:
        if row is not None:
            world.step(row)
            stock.sim._render_context_offscreen.gl_ctx.make_current()
            observation, *_ = stock.step(libero_actions.native(row))
        state = world.state()
        for name in ("robot0_eef_pos", "robot0_eef_quat", "robot0_gripper_qpos"):
            worst = max(worst, float(np.abs(observation[name] - state["extra"][name]).max()))
        for camera, name in (("agentview", "agentview_image"), ("wrist", "robot0_eye_in_hand_image")):
            other += int((observation[name][::-1, ::-1] != world.look(camera)).sum())
    print(task, "21 observations of LIBERO's own: largest difference", worst, "other bytes of pictures", other)
    stock.close()


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of_resets = commands.add_parser("resets")
    of_resets.add_argument("order_seed", type=int)
    of_resets.add_argument("count", type=int)
    of_check = commands.add_parser("check")
    for each in (of_resets, of_check):
        each.add_argument("tasks", nargs="+")
    arguments = parser.parse_args()
    from libero_world import Libero

    if arguments.command == "resets":
        resets(Libero(SIZE_PX), arguments.tasks, arguments.count, arguments.order_seed)
    for task in arguments.tasks if arguments.command == "check" else ():
        check(Libero, task)


if __name__ == "__main__":
    main()
