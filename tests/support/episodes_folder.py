"""Makes a run of episodes that another program carried out, by its real writer, with invented results and pictures.

Two policies in two tasks of MetaWorld's names, under two distortions. `python tests/support/episodes_folder.py RUNS`
makes one below that folder.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.episodes.design import Condition, Design
from merton.episodes.run import EpisodesRun
from merton.seeding import generator

TASKS = {"drawer-open-v3": "open the drawer", "push-v3": "push the puck to the goal"}
AGENTS = {"act": 0.30, "diffusion": 0.55}
"""Policies to the success that they lose at level 5, invented."""
CAMERAS = {"corner2": (256, 256), "gripper_pov": (320, 120)}
"""Name to width and height [px]: not those of Merton's cell. All of the loss is the first one's."""
BROKEN = {("act", "push-v3", 3, "jpeg"), ("diffusion", "drawer-open-v3", 2, "max_darken")}
"""Agent, task, scene and distortion of the episodes that begin with another scene than the undistorted one."""
UNENDED = ("diffusion", "push-v3", 2, "jpeg")
LOST = ("act", "push-v3", 1, "reference")
DESIGN = Design(
    name="metaworld",
    description="Two policies of a lab in two tasks of MetaWorld.",
    seed=7,
    distortions=("jpeg", "max_darken"),
    levels=(5,),
)
SOURCE = {"protocol": "vla-eval", "upstream": "ws://127.0.0.1:8000", "harness": "vla-eval 0.8.0"}
STEPS = 2


def picture(task: str, scene: int, camera: str, salt: int = 0) -> NDArray[np.uint8]:
    """The undistorted picture of a scene; another `salt` is another scene of the same number."""
    width, height = CAMERAS[camera]
    rng = generator("picture", task, scene, camera, salt)
    image = np.full((height, width, 3), (170, 150, 120), np.uint8)
    for _ in range(5):
        x, y = int(rng.integers(20, width - 20)), int(rng.integers(20, height - 20))
        color = tuple(int(value) for value in rng.integers(30, 230, 3))
        cv2.rectangle(image, (x - 14, y - 12), (x + 14, y + 12), color, -1, cv2.LINE_AA)
    return image


def does_the_task(agents: Mapping[str, float], agent: str, task: str, scene: int, condition: Condition) -> bool:
    """The invented outcome: a hard scene is hard for all, and only the first camera's distortion costs success."""
    harmless = condition.is_reference or condition.part == f"cameras.{list(CAMERAS)[1]}"
    lost = 0.0 if harmless else agents[agent] * condition.level / 5.0
    return bool(generator("outcome", task, scene).random() < 0.9 - lost)


def play(
    run: EpisodesRun,
    agents: Mapping[str, float] = AGENTS,
    scenes: int = 10,
    most: int | None = None,
    planted: bool = True,
    salt: int = 0,
) -> int:
    """Let a program of no simulation carry out every condition of every scene; gives the number of episodes.

    Args:
        most: episodes after which it ends.
        planted: with broken pairs, an episode without an end and one that is lost at first.
        salt: of the pictures: another one has other scenes of the same numbers.
    """
    count, lost = 0, False
    for task, instruction in TASKS.items():
        for scene in range(scenes):
            for agent in agents:
                for _ in range(1 + len(run.design.conditions(task, scene))):
                    if count == most:
                        return count
                    count += 1
                    episode = run.begin(agent, task, scene, instruction=instruction)
                    condition = episode.condition
                    key = (agent, task, scene, condition.distortion)
                    if planted and key == LOST and not lost:
                        lost = True
                        episode.lost("the policy's server did not answer")
                        episode = run.begin(agent, task, scene, instruction=instruction)
                    own = salt + (1 if planted and key in BROKEN else 0)
                    clean = generator("rows", task, scene).normal(0.0, 0.02, 4)
                    shown = (
                        clean + generator(agent, task, scene, str(condition)).normal(0.0, 0.001, 4) * condition.level
                    )
                    for step in range(STEPS):
                        episode.show(step, {camera: picture(task, scene, camera, own) for camera in CAMERAS})
                        asked = clean if episode.asks_clean(step) else None
                        episode.decided(step, shown, asked, added_s=0.0008)
                    if planted and key == UNENDED and condition.part == "all":
                        episode.end(None, "the connection was closed after step 1")
                    else:
                        episode.end(does_the_task(agents, agent, task, scene, condition))
    return count


def make_episodes_run(
    runs: Path, name: str = "metaworld", agents: Mapping[str, float] = AGENTS, scenes: int = 4, design: Design = DESIGN
) -> Path:
    """Make a whole run below a folder, with everything that can go wrong planted; gives its path."""
    with EpisodesRun.create(runs, design, name, SOURCE) as run:
        play(run, agents, scenes)
        path = run.path
    return path


if __name__ == "__main__":
    print(make_episodes_run(Path(sys.argv[1])))
