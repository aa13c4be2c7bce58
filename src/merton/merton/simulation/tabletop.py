"""A varied scene that is rearranged, pushed and looked at, with the truth about all of it: the source of questions.

There is no robot program here. Things are put in other states (lying, on a mat, in the bowl; a drawer open), physics
let them come to rest, and what is said about them afterwards is read from the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import needing
from merton.simulation import props
from merton.simulation.cameras import SceneCameras, Survey
from merton.simulation.model import TIMESTEP_S, body_pose, build_model
from merton.simulation.varied import Layout, Thing, make_layout
from merton.simulation.varied_model import body_of
from merton.world.cell import load_cell
from merton.world.geometry import Array, Matrix, inverse
from merton.world.observation import Image
from merton.world.tasks import MAT, prop_of

with needing("sim", "the simulated cell"):
    import mujoco

_STOWED = (2.9, -1.9, 1.0, -1.2, -1.5708, 0.0)
"""Joints with the arm behind its base, away from the things [rad]."""
_PUSH_SPEED_M_S, _PUSH_GAIN, _PUSH_RISE_S = 0.15, 10.0, 0.3
"""Speed of the finger that pushes, newtons for each m/s that the thing is slower, and the time in which it speeds up.
Ours: a finger that starts at once topples things that a slow one does not."""
_REST_S = 0.8
_FALLEN_COSINE = math.cos(math.radians(45))
_DRAWN = 2
"""Pictures are drawn so many times larger and reduced, for smooth edges: the drawing itself has none."""
_CIRCLE = np.linspace(0.0, 2 * math.pi, 24, endpoint=False)


@dataclass(frozen=True)
class Viewpoint:
    """The pose of a camera, by the place that it looks at.

    Attributes:
        azimuth_deg: direction of sight seen from above: 0 is along x, as the robot looks; 90 along y.
        elevation_deg: negative is downwards.
        distance_m: from the place it looks at.
        target: that place (x, y, z) [m] in `base_link`.
    """

    azimuth_deg: float
    elevation_deg: float
    distance_m: float
    target: tuple[float, float, float] = (0.52, 0.0, 0.0)


@dataclass(frozen=True)
class Seen:
    """A thing in a picture; places are shares of its width and height from the upper left corner.

    Attributes:
        shown: share of its silhouette that is in the picture and not behind anything, 0 to 1.
        pixels: number of those pixels.
        outline: corners (n, 2) of the convex outline of its projection, cut off at the picture's edge.
        middle: (x, y) of its projected middle; may lie outside.
        distance_m: from the camera to its middle.
    """

    shown: float
    pixels: int
    outline: Array
    middle: tuple[float, float]
    distance_m: float


@dataclass(frozen=True)
class Pushed:
    """The end of a push.

    Attributes:
        fell: the thing lies, or has dropped off the table.
        hit: names of the things that it touched; "" is one without a name.
        moved_m: how far its middle went over the table.
    """

    fell: bool
    hit: tuple[str, ...]
    moved_m: float


class Tabletop:
    """A scene of a split at a time. Not for two threads; close it after use.

    Args:
        width, height: of the pictures [px].

    Attributes:
        layout: of the scene: its things by name, with their sizes.

    Raises:
        MissingDependencyError: this machine cannot draw off screen.
    """

    def __init__(self, width: int, height: int) -> None:
        self.cell = load_cell()
        self.size = width, height
        self._cameras = SceneCameras(_DRAWN * width, _DRAWN * height)

    def close(self) -> None:
        """Release the drawing context; call nothing afterwards."""
        self._cameras.close()

    def set_up(self, split: str, seed: int) -> Layout:
        """Enter a scene as its layout has it, with the arm behind its base, where it hides nothing."""
        self.layout = make_layout(split, seed)
        self.things: Mapping[str, Thing] = {thing.name: thing for thing in self.layout.things}
        self._task, self._seed = f"{split}-{next(iter(self.layout.jobs))}", seed
        self._model = build_model(layout=self.layout)
        self._model.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)  # things are moved by hand here
        self._data = mujoco.MjData(self._model)
        self._data.qpos[:6] = self._data.ctrl[:6] = _STOWED
        self._data.qpos[6:8] = self._data.ctrl[6] = self.cell.gripper.stroke / 2
        self._root = {name: int(self._model.body_rootid[self._model.body(body_of(name)).id]) for name in self.things}
        self._name_of_root = {number: name for name, number in self._root.items()}
        self._geom_root = self._model.body_rootid[self._model.geom_bodyid]
        self._ground = {int(self._model.body_rootid[self._model.body(body).id]) for body in ("table", "base_link")}
        self.settle(0.1)
        return self.layout

    # States -----------------------------------------------------------------------------------------------------------

    def state(self) -> Array:
        """All positions, for `restore`."""
        return self._data.qpos.copy()

    def restore(self, state: Array) -> None:
        """Go back to a state, at rest."""
        self._data.qpos[:] = state
        self._data.qvel[:] = 0.0
        mujoco.mj_forward(self._model, self._data)

    def movable(self, name: str) -> bool:
        """Whether a thing is loose: neither a fixture nor a mat."""
        prop = prop_of(self.things[name].shape)
        return self.things[name].shape != MAT if prop is None else not prop.fixed

    def put(self, name: str, x: float, y: float, bottom: float = 0.0, *, lying_rad: float | None = None) -> None:
        """Put a loose thing upright with its foot at a height [m], or lying in a direction [rad] of `base_link`."""
        body = self._model.body(body_of(name)).id
        address = self._model.jnt_qposadr[self._model.body_jntadr[body]]
        if lying_rad is not None:
            turn = np.empty(4)
            mujoco.mju_euler2Quat(turn, np.array([0.0, math.pi / 2, lying_rad]), "XYZ")
            self._data.qpos[address + 3 : address + 7] = turn
        self._data.qpos[address : address + 3] = (x, y, 1.0)
        self._data.qvel[:] = 0.0
        mujoco.mj_forward(self._model, self._data)
        low, high = self.extent(name)
        middle = (low + high) / 2
        self._data.qpos[address : address + 3] += (x - middle[0], y - middle[1], bottom - low[2] + 0.0005)
        mujoco.mj_forward(self._model, self._data)

    def remove(self, name: str) -> None:
        """Take a loose thing away, below the floor."""
        self.put(name, 5.0, 0.0, -3.0)

    def move_joint(self, name: str, value: float) -> None:
        """Set the joint of a drawer [m, 0 is closed] or a knob [rad]."""
        shape = self.things[name].shape
        self._data.qpos[self._model.joint(f"{name}/{shape}").qposadr[0]] = value
        self._data.qvel[:] = 0.0
        mujoco.mj_forward(self._model, self._data)

    def joint(self, name: str) -> float:
        """The joint of a drawer [m, 0 is closed], knob [rad] or button [m]."""
        return float(self._data.qpos[self._model.joint(f"{name}/{self.things[name].shape}").qposadr[0]])

    def pour(self, name: str) -> None:
        """Put all beads into a bowl, as if they had been poured."""
        x, y, _ = self.things[name].spot
        for number, bead in enumerate(props.bead_names(self.cell)):
            address = self._model.joint(bead).qposadr[0]
            ring = 0.03 if number else 0.0
            at = (x + ring * math.cos(0.9 * number), y + ring * math.sin(0.9 * number), 0.02)
            self._data.qpos[address : address + 3] = at
        self._data.qvel[:] = 0.0
        mujoco.mj_forward(self._model, self._data)

    def settle(self, seconds: float = 0.3) -> None:
        """Let physics run on, then stop all motion."""
        mujoco.mj_step(self._model, self._data, math.ceil(seconds / TIMESTEP_S))
        self._data.qvel[:] = 0.0
        mujoco.mj_forward(self._model, self._data)

    # Truth ------------------------------------------------------------------------------------------------------------

    def pose(self, name: str) -> Matrix:
        """Pose (4, 4) of a thing in `base_link`; of a prop with a joint, that of its moving part."""
        return body_pose(self._data, self._model.body(body_of(name)).id)

    def extent(self, name: str) -> tuple[Array, Array]:
        """The least and the greatest x, y, z (3,) of a thing [m] in `base_link`."""
        points = np.vstack(self._hulls(name))
        return points.min(axis=0), points.max(axis=0)

    def upright(self, name: str) -> bool | None:
        """Whether a thing stands; None for one that leans."""
        cosine = abs(float(self.pose(name)[2, 2]))
        return True if cosine > math.cos(math.radians(8)) else False if cosine < math.cos(math.radians(82)) else None

    def beads_in(self, name: str) -> int:
        """The number of beads in a cup or a bowl."""
        low, high = self.extent(name)
        spots = [self._data.body(bead).xpos for bead in self._beads()]
        return sum(bool(np.all(spot > low - 1e-3) and np.all(spot < high + 5e-3)) for spot in spots)

    def spans_m(self, name: str) -> tuple[float, float]:
        """Widths of a standing thing along the axes of its own frame that lie flat, the narrower one first [m]."""
        turn = inverse(self.pose(name))
        points = np.vstack(self._hulls(name)) @ turn[:3, :3].T
        narrow, wide = sorted(np.ptp(points, axis=0)[:2].tolist())
        return narrow, wide

    def push(self, name: str, along: Array, distance_m: float, height_share: float) -> Pushed:
        """The end of a push of a thing over the table by a finger; the state is as before afterwards.

        The finger acts on the line through the thing's centre of mass, at a share of its height, with the force that
        brings that point towards 0.15 m/s, until the thing has gone the distance, or for twice the time that it should
        take; then physics run on for 0.8 s.

        Args:
            name: a loose thing.
            along: direction (2,) in `base_link`, of length 1.
            distance_m: how far the thing is pushed.
            height_share: at which part of its height it touches the thing, 0 to 1.
        """
        before, model, data = self.state(), self._model, self._data
        body = self._model.body(body_of(name)).id
        low, high = self.extent(name)
        height = float(low[2] + height_share * (high[2] - low[2]))
        heading = np.array([along[0], along[1], 0.0])
        start, hit = data.xipos[body].copy(), set()
        force, spin = np.zeros((3, 1)), np.zeros((3, 1))
        limit = math.ceil((2 * distance_m / _PUSH_SPEED_M_S + _PUSH_RISE_S) / TIMESTEP_S)
        for step in range(limit):
            if (data.xipos[body] - start) @ heading >= distance_m or abs(data.xmat[body][8]) < _FALLEN_COSINE:
                break  # a thing that falls leaves the finger
            at = np.array([*data.xipos[body][:2], height])
            velocity = np.empty(6)
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 0)
            speed = (velocity[3:] + np.cross(velocity[:3], at - data.xpos[body])) @ heading
            wanted = _PUSH_SPEED_M_S * min(1.0, step * TIMESTEP_S / _PUSH_RISE_S)
            force[:, 0] = heading * max(_PUSH_GAIN * (wanted - float(speed)), 0.0)
            data.qfrc_applied[:] = 0.0
            mujoco.mj_applyFT(model, data, force, spin, at[:, None], body, data.qfrc_applied)
            mujoco.mj_step(model, data)
            hit |= self._touching(self._root[name])
        data.qfrc_applied[:] = 0.0
        for _ in range(math.ceil(_REST_S / TIMESTEP_S)):
            mujoco.mj_step(model, data)
            hit |= self._touching(self._root[name])
        mujoco.mj_forward(model, data)
        pose = self.pose(name)
        ended = Pushed(
            bool(abs(pose[2, 2]) < _FALLEN_COSINE or pose[2, 3] < -0.05),
            tuple(sorted(hit)),
            float(np.linalg.norm((data.xipos[body] - start)[:2])),
        )
        self.restore(before)
        return ended

    # Pictures ---------------------------------------------------------------------------------------------------------

    def look(self, viewpoint: Viewpoint) -> tuple[Image, dict[str, Seen], float]:
        """A picture (height, width, 3) uint8 RGB, each thing in it by name, and the robot's share of it."""
        view = mujoco.MjvCamera()
        view.type = mujoco.mjtCamera.mjCAMERA_FREE.value
        view.lookat[:] = viewpoint.target
        view.distance, view.azimuth = viewpoint.distance_m, viewpoint.azimuth_deg
        view.elevation = viewpoint.elevation_deg
        survey = self._cameras.survey(self._task, self._seed, self._data.qpos, view)
        picture = np.asarray(cv2.resize(survey.color, self.size, interpolation=cv2.INTER_AREA), np.uint8)
        robot = float(np.mean(survey.roots == self._model.body("base_link").rootid[0]))
        return picture, {name: self._seen(name, survey) for name in self.things}, robot

    def _seen(self, name: str, survey: Survey) -> Seen:
        height, width = survey.roots.shape
        camera_from_base = inverse(survey.base_from_camera)
        silhouette, corners = np.zeros((height, width), np.uint8), []

        def pixels(points: Array) -> Array:
            there = points @ camera_from_base[:3, :3].T + camera_from_base[:3, 3]
            there = np.maximum(there, (-np.inf, -np.inf, 0.01))
            return np.asarray(survey.focal_px * there[:, :2] / there[:, 2:] + ((width - 1) / 2, (height - 1) / 2))

        for part in self._hulls(name):
            flat = pixels(part)
            corners.append(flat)
            cv2.fillConvexPoly(silhouette, cv2.convexHull(np.rint(flat).astype(np.int32)), 1)
        points = np.vstack(corners).astype(np.float32)
        hull = cv2.convexHull(points)
        whole = max(cv2.contourArea(hull), 1.0)
        frame = np.array([(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)], np.float32)
        inside, cut = cv2.intersectConvexConvex(hull, frame[:, None])
        visible = int(np.count_nonzero(survey.roots == self._root[name]))
        share = min(1.0, visible / max(int(silhouette.sum()), 1)) * min(1.0, inside / whole)
        low, high = self.extent(name)
        middle = pixels(((low + high) / 2)[None])[0]
        away = float(np.linalg.norm((low + high) / 2 - survey.base_from_camera[:3, 3]))
        outline = np.empty((0, 2)) if cut is None else np.clip(cut[:, 0] / (width - 1, height - 1), 0.0, 1.0)
        x, y = (middle / (width - 1, height - 1)).tolist()
        return Seen(share, visible // _DRAWN**2, outline, (x, y), away)

    def _hulls(self, name: str) -> list[Array]:
        """Corners (n, 3) [m] in `base_link` of each part of a thing that is drawn; each part is convex."""
        model, data = self._model, self._data
        found = []
        for geom in np.flatnonzero(model.body_rootid[model.geom_bodyid] == self._root[name]):
            size, kind = model.geom_size[geom], model.geom_type[geom]
            points = _corners(kind, size)
            found.append(points @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom])
        return found

    def _touching(self, root: int) -> set[str]:
        """Names of the things whose parts touch those of a body; "" for one without a name, none for the table."""
        if not self._data.ncon:
            return set()
        one, other = self._geom_root[self._data.contact.geom].T
        met = np.concatenate([other[one == root], one[other == root]])
        return {self._name_of_root.get(int(number), "") for number in met if number not in self._ground}

    def _beads(self) -> tuple[str, ...]:
        return props.bead_names(self.cell) if self.layout.cup else ()


def _corners(kind: int, size: NDArray[np.float64]) -> Array:
    """Corners (n, 3) [m] of a box, a cylinder or a ball about its middle."""
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size
    ring = np.column_stack([np.cos(_CIRCLE), np.sin(_CIRCLE)])
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        return np.vstack([np.column_stack([ring * size[0], np.full(len(ring), z)]) for z in (-size[1], size[1])])
    tilts = np.linspace(-math.pi / 2, math.pi / 2, 9)
    return np.vstack(
        [np.column_stack([ring * math.cos(tilt), np.full(len(ring), math.sin(tilt))]) for tilt in tilts]
    ) * float(size[0])
