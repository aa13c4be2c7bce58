"""The cell in Gazebo, without ROS: places of the objects, contacts, and the rule by which a contact stops the arm.

The world is `urdf/worlds/cell.sdf.xacro`. It holds every object and mat at once, under their names with `_` for the
space; those that a scene does not need wait on the room's floor, where no camera looks. Props are put into it for the
scenes that need them, see `merton.simulation.gazebo_props`.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from merton.errors import InputError
from merton.simulation.cell import Contact
from merton.simulation.model import FINGER_LINKS, MATS, OBJECTS, rest_height_m
from merton.simulation.props import BEADS, body_of, props_of
from merton.simulation.scene import Scene, make_plain_scene
from merton.simulation.success import Judged, judged
from merton.world.cell import CellConfig
from merton.world.geometry import Array, Matrix, transform
from merton.world.observation import SceneObject, SceneState
from merton.world.tasks import TASKS, Situation, prop_of

WORLD = "cell"
FRAME_PERIOD_S = 0.1
"""Simulated time stands, and the cameras take a frame, at multiples of this alone."""
TOUCH_S = 0.05
"""A touch not reported for this long has ended [s of simulated time]. Ours: 25 physics steps."""

LIFTED_M = 500.0
"""Of props that wait for their removal. Ours: ten seconds above the floor, much longer than the way home."""


@dataclass(frozen=True)
class Touch:
    """Two links that touch, by their names in the world, and the normal force between them [N], NaN if unknown."""

    link: str
    other: str
    force_n: float


def tasks_in_gazebo() -> tuple[str, ...]:
    """The tasks that Gazebo's world has the things for: all without beads."""
    return tuple(task for task in TASKS if BEADS not in props_of(task))


def gazebo_scene(task: str, seed: int) -> Scene:
    """As `make_scene`; raises InputError for a task of a split, or one that needs beads."""
    scene = make_plain_scene(task, seed, "the world of Gazebo")
    if BEADS in props_of(task):
        raise InputError(
            f"the world of Gazebo has no beads for the task {task!r}; "
            f"it has what these need: {', '.join(tasks_in_gazebo())}"
        )
    return scene


def without_mimics(robot_description: str) -> str:
    """A URDF whose joints follow no others.

    Gazebo's physics engine cannot make them do so, and says that in an error at every start; gz_ros2_control does, as
    the description of robot_state_publisher tells it.
    """
    robot = ElementTree.fromstring(robot_description)
    for joint in robot.findall("joint"):
        for mimic in joint.findall("mimic"):
            joint.remove(mimic)
    return ElementTree.tostring(robot, encoding="unicode")


def model_name(name: str) -> str:
    """Name of a thing of a scene in the world: "red cube" is red_cube, "red lid" is lid."""
    return body_of(name).replace(" ", "_")


def moving_models(scene: Scene | None = None) -> tuple[str, ...]:
    """The models whose poses Gazebo publishes: all objects, and the movable props of a scene."""
    props = () if scene is None else tuple(name for name in scene.props if not stays(name))
    return tuple(model_name(name) for name in (*OBJECTS, *props))


def stays(name: str) -> bool:
    """Whether a thing of a scene stays where it is put: a mat, or a fixed prop without a moving part."""
    prop = prop_of(body_of(name))
    return name in MATS if prop is None else not prop.moves


def parked(cell: CellConfig) -> dict[str, Matrix]:
    """Poses (4, 4) in `base_link` of objects and mats outside the scene: in rows behind the side camera."""
    places = {}
    for row, names in enumerate((OBJECTS[: len(MATS)], OBJECTS[len(MATS) :], MATS)):
        for index, name in enumerate(names):
            above_m = 0.0 if name in MATS else rest_height_m(name, cell)
            places[name] = transform((3.0 + 0.3 * index, -3.0 - 0.3 * row, cell.floor.z + above_m))
    return places


def lifted(props: Iterable[str]) -> dict[str, Matrix]:
    """Poses (4, 4) in `base_link` of the props that can be carried, in the air: they fall, and touch nothing."""
    free = [name for name in props if (prop := prop_of(body_of(name))) is not None and not prop.fixed]
    return {name: transform((0.0, 0.0, LIFTED_M + index)) for index, name in enumerate(free)}


def places(scene: Scene, cell: CellConfig) -> dict[str, Matrix]:
    """Poses (4, 4) of the things of a scene in `base_link`."""
    result = {
        name: transform((x, y, rest_height_m(name, cell)), Rotation.from_euler("z", yaw))
        for name, (x, y, yaw) in scene.placements.items()
    }
    return result | {name: transform((x, y, 0.0)) for name, (x, y) in scene.mats.items()}


def link_of(collision: str) -> str:
    """The link of a collision shape as Gazebo names it: cell::forearm_link::forearm_link_collision_1 is forearm_link.

    Raises InputError for a name without a link.
    """
    parts = collision.split("::")
    if len(parts) < 2:
        raise InputError(f"{collision!r} is not the name of a collision shape, model::link::shape")
    return parts[-2]


def normal_force_n(forces: Iterable[Sequence[float]], normals: Iterable[Sequence[float]]) -> float:
    """Sum over the points of a contact of the force along the normal [N]; NaN if no forces were reported.

    Args:
        forces: of each point [N]; the signs of force and normal do not matter.
        normals: unit normals of the same points; the whole force counts where they are missing.
    """
    points, directions = np.reshape(list(forces), (-1, 3)), np.reshape(list(normals), (-1, 3))
    if not len(points):
        return math.nan
    if len(points) != len(directions):
        return float(np.linalg.norm(points, axis=1).sum())
    return float(np.abs(np.einsum("ij,ij->i", points, directions)).sum())


class Touches:
    """The robot's contacts, and the rule by which they stop the arm, the same as in the embedded cell.

    Fingers may press on table and walls up to `simulation.pad_force_limit` of the cell, any other link not at all. A
    force that Gazebo does not report counts as none for the fingers, and as a touch for every other link.
    """

    def __init__(self, cell: CellConfig) -> None:
        self._limit_n = cell.simulation.pad_force_limit
        self._surroundings = {"table", *(f"wall_{wall.name}" for wall in cell.walls)}
        self._newest_ns: dict[tuple[str, str], int] = {}
        self._tolerated: set[tuple[str, str]] = set()
        self.contact: Contact | None = None

    @property
    def stopped(self) -> bool:
        """Whether a touch has stopped the arm."""
        return self.contact is not None

    def clear(self) -> None:
        """Forget all contacts, for a new trial."""
        self._newest_ns, self._tolerated, self.contact = {}, set(), None

    def release(self, stamp_ns: int) -> None:
        """Accept commands again; present contacts are tolerated until the links have parted."""
        self._tolerated = {pair for pair in self._newest_ns if self._is_current(pair, stamp_ns)}
        self.contact = None

    def update(self, touches: Iterable[Touch], stamp_ns: int) -> bool:
        """Take one report of one simulated instant [ns]; returns whether it stops the arm now."""
        forces: dict[tuple[str, str], float] = defaultdict(float)
        for touch in touches:
            forces[touch.link, touch.other] += touch.force_n
        self._tolerated = {pair for pair in self._tolerated if self._is_current(pair, stamp_ns)}
        self._newest_ns.update(dict.fromkeys(forces, stamp_ns))
        for pair, force_n in forces.items():
            link, other = pair
            harmless = force_n <= self._limit_n or math.isnan(force_n) if link in FINGER_LINKS else force_n == 0
            if other in self._surroundings and not harmless and pair not in self._tolerated and not self.stopped:
                self.contact = Contact(link, other, 0.0 if math.isnan(force_n) else force_n)
                return True
        return False

    def touching(self, name: str, stamp_ns: int) -> set[str]:
        """The robot's links that touch an object at a simulated instant [ns]."""
        model = model_name(name)
        return {link for link, other in self._newest_ns if other == model and self._is_current((link, other), stamp_ns)}

    def _is_current(self, pair: tuple[str, str], stamp_ns: int) -> bool:
        return pair in self._newest_ns and stamp_ns - self._newest_ns[pair] <= TOUCH_S * 1e9


class Judge:
    """The scene of a trial, its poses at the start, and the success and progress of its task.

    Attributes:
        poses: name of a model to its pose (4, 4) in `base_link`, as last reported.
    """

    def __init__(self, cell: CellConfig) -> None:
        self._cell = cell
        self._start: Mapping[str, Matrix] = {}
        self._start_tcp_m = np.zeros(3)
        self.scene: Scene | None = None
        self.poses: dict[str, Matrix] = {}

    def begin(self, scene: Scene, tcp_m: Array) -> None:
        """Begin a trial; the poses now, and the tool centre point at (3,) [m], are those of its start."""
        self.scene, self._start_tcp_m = scene, tcp_m
        # mats, sockets and bowls stay where they are put
        still = {name: pose for name, pose in places(scene, self._cell).items() if stays(name)}
        self.poses |= {model_name(name): pose for name, pose in still.items()}
        self._start = {name: self.poses[model_name(name)] for name in scene.placements}

    def scene_state(self) -> SceneState:
        """Poses of the things of the scene; none without a scene."""
        return SceneState(tuple(SceneObject(name, pose) for name, pose in self._now().items()))

    def judged(self, tcp_m: Array, touches: Touches, stamp_ns: int) -> Judged:
        """Success and progress of the task, with the tool centre point at (3,) [m], at a simulated instant [ns]."""
        if self.scene is None:
            return Judged(False, 0.0)
        situation = Situation(
            start=self._start,
            now=self._now(),
            beads=np.empty((0, 3)),
            start_tcp=self._start_tcp_m,
            tcp=tcp_m,
            touching=lambda name: touches.touching(name, stamp_ns),
        )
        return judged(self.scene.command, situation, self._cell)

    def _now(self) -> dict[str, Matrix]:
        names = () if self.scene is None else (*self.scene.placements, *self.scene.mats)
        return {name: self.poses[model_name(name)] for name in names}
