"""The embedded cell: the arm, a gripper and a few objects, simulated in lockstep with the commanding program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from merton.errors import InputError, needing
from merton.execution.trajectory import JointSpline
from merton.simulation import varied_model
from merton.simulation.model import FINGER_LINKS, TIMESTEP_S, body_pose, build_model, place_fixed, place_objects
from merton.simulation.props import bead_names, body_of, props_of
from merton.simulation.scene import Scene, make_scene
from merton.simulation.success import Judged, judged
from merton.world import linkage as links
from merton.world.cell import load_cell
from merton.world.geometry import Array, Matrix
from merton.world.observation import SceneObject, SceneState
from merton.world.tasks import TASKS, Situation

with needing("sim", "the simulated cell"):
    import mujoco

_STEP_NS = round(TIMESTEP_S * 1e9)
_FIXED = frozenset({"config", "_worlds", "_varied", "model", "data", "_tcp", "_driven", "_lead_s", "_kind"})
"""Attributes of `SimulatedCell` that follow from the scene, and MuJoCo's data, which is copied in its own way."""
LONGEST_TRAJECTORY_S = 3600.0
"""All set points of a trajectory are computed at once, 100 bytes for each 2 ms; the longest chunk takes 2560 s."""


@dataclass(frozen=True)
class Contact:
    """A forbidden contact: the robot's link, the thing it hit, and the normal force between the two [N]."""

    link_a: str
    link_b: str
    force_n: float

    def __str__(self) -> str:
        return f"{self.link_a} touched {self.link_b} with {self.force_n:.0f} N"


@dataclass(frozen=True)
class Snapshot:
    """The whole state of a `SimulatedCell` at one instant: MuJoCo's data, and the cell's own attributes by name.

    All data rather than `mj_getState`, which lacks the contacts that `judged` and the stop read.
    """

    data: mujoco.MjData
    fields: Mapping[str, Any]


class SimulatedCell:
    """The simulated cell.

    Physics advances only in `reset` and `advance`, and only during commanded motions. The result depends on the
    commands alone: the same seeds and commands give the same bytes, independent of earlier trials.

    Args:
        linkage: the gripper has the linkage of the real one, see `merton.world.linkage`; else its fingers slide.
    """

    def __init__(self, *, linkage: bool = False) -> None:
        self.config = load_cell(linkage=linkage)
        self._worlds: dict[tuple[str, ...], tuple[mujoco.MjModel, mujoco.MjData]] = {}
        """Those of plain scenes, by their props."""
        self._varied: dict[str, tuple[mujoco.MjModel, mujoco.MjData]] = {}
        """That of the last varied scene, by the name of its world."""
        self.scene: Scene | None = None
        self.stopped = False
        self.contact: Contact | None = None
        self._tolerated: set[tuple[str, str]] = set()
        self._initial: dict[str, Matrix] = {}
        self._initial_tcp = np.zeros(3)
        self._step = 0
        self._enter(None)
        self._begin_trial()

    def reset(self, task: str, seed: int) -> Scene:
        """Set up the scene of (task, seed): arm at home, gripper open, objects in place, everything at rest.

        Forgets the last trial completely, its stop included; only the clock goes on.

        Raises:
            UnknownNameError: no such task.
            InputError: a bad seed, or one of a scene of a split without this task.
        """
        scene = make_scene(task, seed)
        self._enter(scene)
        mujoco.mj_resetData(self.model, self.data)
        self._begin_trial()
        self.scene = scene
        self.data.qpos[:6] = self.config.home_joints
        if not self.config.gripper.linkage:  # whose joints are at zero when it is open
            self.data.qpos[6:8] = self.config.gripper.stroke / 2
        if scene.layout is None:  # else the model has everything in its place
            place_objects(self.model, self.data, scene, self.config)
            place_fixed(self.model, self.data, scene)
        self._simulate(_steps(self.config.simulation.settle_s))
        self._initial = {name: body_pose(self.data, self._body(name)) for name in scene.placements}
        self._initial_tcp = self.base_from_tcp[:3, 3]
        return scene

    # Commands ---------------------------------------------------------------------------------------------------------

    def command_trajectory(self, times_s: ArrayLike, joints: ArrayLike, velocities: ArrayLike | None = None) -> bool:
        """Follow a cubic Hermite spline through points, starting now; replaces the motion under way.

        Args:
            times_s: (n,) rising times from now [s], n >= 1; a first time > 0 is approached from the present set point.
            joints: (n, 6) joint angles [rad], shoulder pan to wrist 3.
            velocities: (n, 6) [rad/s]; if None, central differences, and rest at both ends.

        Returns:
            False if the arm is stopped, which ignores the command.

        Raises:
            InputError: as `JointSpline`, or a trajectory of more than `LONGEST_TRAJECTORY_S`.
        """
        spline = JointSpline(times_s, joints, velocities)
        if spline.duration_s > LONGEST_TRAJECTORY_S:
            raise InputError(
                f"a trajectory may take {LONGEST_TRAJECTORY_S:g} s at most, got one of {spline.duration_s:g} s"
            )
        if self.stopped:
            return False
        self._follow(spline.starting_from(*self._arm_now()))
        self._arm_end = self._step + len(self._arm) + _steps(self.config.simulation.settle_s)
        return True

    def command_gripper(self, opening_m: float) -> bool:
        """Open or close to a distance between the pads [m], limited to the stroke, at the gripper's own speed.

        The motion always counts as done after the time of a full stroke: an object between the fingers hides the last
        command from the client, and so the travel left.

        Returns:
            False if the arm is stopped, which ignores the command.

        Raises:
            InputError: not a finite number.
        """
        if not math.isfinite(opening_m):
            raise InputError(f"the opening of the gripper must be a finite number, got {opening_m!r}")
        if self.stopped:
            return False
        gripper = self.config.gripper
        self._opening_goal = min(max(float(opening_m), 0.0), gripper.stroke)
        travel_s = gripper.stroke / gripper.max_speed
        self._gripper_end = self._step + _steps(travel_s) + _steps(gripper.settle_s)
        return True

    def stop(self) -> None:
        """Freeze arm and fingers where they are, and ignore commands until `release_stop` or `reset`."""
        self.halt()
        self.stopped = True

    def halt(self) -> None:
        """Freeze arm and fingers where they are, until the next command."""
        if self.stopped:
            return
        self._hold(self.data.qpos[:6].copy())
        self._opening_goal = self._opening
        self._gripper_end = self._step
        self._arm_end = self._step + _steps(self.config.simulation.settle_s)

    def release_stop(self) -> None:
        """Accept commands again. Present contacts are allowed until the links have parted once."""
        self.stopped = False
        self._tolerated = {self._link_pair(index) for index in self._forbidden()}
        self.contact = None

    def snapshot(self) -> Snapshot:
        """The state now, in mid-motion too; later commands do not change it."""
        return Snapshot(
            copy(self.data), {name: copy(value) for name, value in vars(self).items() if name not in _FIXED}
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, its clock included; with the same commands the same follows, byte for byte."""
        self._enter(snapshot.fields["scene"])
        mujoco.mj_copyData(self.data, self.model, snapshot.data)
        vars(self).update({name: copy(value) for name, value in snapshot.fields.items()})

    def advance(self, duration_s: float) -> float:
        """Simulate `duration_s`, but never past the end of the commanded motions; returns the time simulated [s]."""
        before = self._step
        goal = before + _steps(duration_s)
        while self._step < min(goal, self._end_step):  # a stop on the way changes the end
            self._simulate(min(goal, self._end_step) - self._step)
        return (self._step - before) * TIMESTEP_S

    # State ------------------------------------------------------------------------------------------------------------

    @property
    def time_ns(self) -> int:
        """The simulated clock [ns]; it never goes back but on `restore`, not even on `reset`."""
        return self._step * _STEP_NS

    @property
    def busy(self) -> bool:
        """Whether a commanded motion is still under way."""
        return self._step < self._end_step

    @property
    def joints_rad(self) -> Array:
        """The arm's joint angles (6,) [rad]."""
        return self.data.qpos[:6].copy()

    @property
    def joint_velocities(self) -> Array:
        """The arm's joint velocities (6,) [rad/s]."""
        return self.data.qvel[:6].copy()

    @property
    def gripper_opening_m(self) -> float:
        """Distance between the finger pads [m]."""
        if self.config.gripper.linkage:
            return links.opening_m(float(self.data.qpos[self._driven]))
        return float(self.data.qpos[6] + self.data.qpos[7])

    @property
    def gripper_goal_m(self) -> float:
        """The opening that was commanded last [m]; at first, and after a reset, the whole stroke."""
        return self._opening_goal

    @property
    def base_from_tcp(self) -> Matrix:
        """Pose (4, 4) of the tool centre point in `base_link`."""
        return body_pose(self.data, self._tcp)

    @property
    def qpos(self) -> Array:
        """MuJoCo's configuration vector: with (task, seed), all that rendering needs."""
        return self.data.qpos.copy()

    def scene_state(self) -> SceneState:
        """Poses of objects, props and mats in `base_link`; of a prop with a joint, that of the moving part."""
        return SceneState(tuple(SceneObject(name, pose) for name, pose in self._poses().items()))

    def judged(self) -> Judged:
        """Success and progress of this trial's task, as `merton.simulation.success` describes them."""
        scene = self._scene()
        names = bead_names(self.config) if TASKS[scene.command.verb].beads else ()
        situation = Situation(
            start=self._initial,
            now=self._poses(),
            beads=np.reshape([self.data.body(name).xpos for name in names], (-1, 3)),
            start_tcp=self._initial_tcp,
            tcp=self.base_from_tcp[:3, 3],
            touching=self._robot_links_touching,
            scales={thing.name: thing.scale for thing in scene.layout.things} if scene.layout else {},
        )
        return judged(scene.meant, situation, self.config)

    def success(self) -> bool:
        """Whether the task of this trial is done."""
        return self.judged().success

    # Inside -----------------------------------------------------------------------------------------------------------

    def _enter(self, scene: Scene | None) -> None:
        """Switch to the model of a scene; None: to that of plain scenes without props."""
        linkage = self.config.gripper.linkage
        if scene is not None and scene.layout is not None:
            if scene.world not in self._varied:
                model = build_model(layout=scene.layout, linkage=linkage)
                self._varied = {scene.world: (model, mujoco.MjData(model))}
            self.model, self.data = self._varied[scene.world]
        else:
            props = props_of(scene.task) if scene is not None else ()
            if props not in self._worlds:
                model = build_model(with_props=props, linkage=linkage)
                self._worlds[props] = model, mujoco.MjData(model)
            self.model, self.data = self._worlds[props]
        self._tcp = self.model.body("tcp").id
        self._driven = self.model.jnt_qposadr[self.model.actuator("gripper").trnid[0]]
        # Lag of a position servo per unit of velocity [s]; added to the set point, it vanishes.
        self._lead_s = -self.model.actuator_biasprm[:6, 2] / self.model.actuator_gainprm[:6, 0]
        # 1 the robot, 2 table and walls, 0 anything else: a forbidden pair adds up to 3.
        self._kind = np.array([self._kind_of(geom) for geom in range(self.model.ngeom)])

    def _begin_trial(self) -> None:
        self.stopped, self.contact = False, None
        self._tolerated, self._initial = set(), {}
        self._opening = self._opening_goal = self.config.gripper.stroke
        self._arm_end = self._gripper_end = self._step
        self._hold(self.config.home_joints)

    def _scene(self) -> Scene:
        if self.scene is None:
            raise InputError("the cell has no scene yet: reset it first")
        return self.scene

    def _hold(self, joints: Array) -> None:
        self._follow(JointSpline([0.0], joints[None]))

    def _follow(self, spline: JointSpline) -> None:
        """Sample the spline once per physics step, up to and including its end."""
        if len(spline.times_s) == 1:
            self._arm, self._arm_speed = spline.joints_rad, np.zeros((1, 6))
        else:
            end_s = spline.duration_s
            at = np.minimum(np.arange(1, _steps(end_s) + 1) * TIMESTEP_S, end_s)
            self._arm, self._arm_speed = spline.sampled(at)
            self._arm_speed[-1] = 0.0  # after its end the arm rests
        self._arm_start = self._step

    def _arm_now(self) -> tuple[Array, Array]:
        index = min(max(self._step - self._arm_start - 1, 0), len(self._arm) - 1)
        return self._arm[index], self._arm_speed[index]

    @property
    def _end_step(self) -> int:
        return max(self._arm_end, self._gripper_end)

    def _simulate(self, steps: int) -> None:
        """Take up to `steps` physics steps; fewer if a forbidden contact stops the arm."""
        data, per_step = self.data, self.config.gripper.max_speed * TIMESTEP_S
        by_linkage = self.config.gripper.linkage
        first = self._step - self._arm_start
        rows = np.minimum(np.arange(first, first + steps), len(self._arm) - 1)
        arm = self._arm[rows] + self._lead_s * self._arm_speed[rows]
        for row in arm:
            self._opening += min(max(self._opening_goal - self._opening, -per_step), per_step)
            data.ctrl[:6] = row
            data.ctrl[6] = links.joint_rad(self._opening) if by_linkage else self._opening / 2
            mujoco.mj_step(self.model, data)
            self._step += 1
            if self._must_stop():
                self.stop()
                break
        mujoco.mj_kinematics(self.model, data)  # poses of now: mj_step leaves those of the step's beginning

    def _must_stop(self) -> bool:
        """Whether the robot touches table or walls too hard; the first such contact is recorded."""
        touching = self._forbidden()
        if not touching and not self._tolerated:
            return False
        forces: dict[tuple[str, str], float] = {}
        for index in touching:
            wrench = np.zeros(6)
            mujoco.mj_contactForce(self.model, self.data, index, wrench)
            pair = self._link_pair(index)
            forces[pair] = forces.get(pair, 0.0) + float(wrench[0])
        self._tolerated &= forces.keys()
        if self.stopped:
            return False
        for (link, other), force in forces.items():
            limit = self.config.simulation.pad_force_limit if link in FINGER_LINKS else 0.0
            if force > limit and (link, other) not in self._tolerated:
                self.contact = Contact(link, other, force)
                return True
        return False

    def _forbidden(self) -> list[int]:
        """Indices of the contacts between the robot and its surroundings."""
        if self.data.ncon == 0:
            return []
        kinds = self._kind.take(self.data.contact.geom)  # after every step: a sum over an axis would take twice as long
        return list(np.flatnonzero(kinds[:, 0] + kinds[:, 1] == 3))

    def _kind_of(self, geom: int) -> int:
        name = self.model.body(self.model.geom_bodyid[geom]).name
        if name == "table" or name.startswith("wall_"):
            return 2
        body = self.model.geom_bodyid[geom]
        moves_with_the_arm = self.model.body_rootid[body] == self.model.body_rootid[self._tcp]
        return 1 if moves_with_the_arm and self.model.body_weldid[body] != 0 else 0

    def _link_pair(self, contact: int) -> tuple[str, str]:
        """Names of the robot's link and of the body it touches."""
        geoms = sorted(self.data.contact.geom[contact], key=lambda geom: self._kind[geom])
        first, second = (str(self.model.body(self.model.geom_bodyid[geom]).name) for geom in geoms)
        return first, second

    def _body(self, name: str) -> int:
        return int(self.model.body(body_of(name) if self._scene().layout is None else varied_model.body_of(name)).id)

    def _poses(self) -> dict[str, Matrix]:
        scene = self._scene()
        return {name: body_pose(self.data, self._body(name)) for name in (*scene.placements, *scene.mats)}

    def _robot_links_touching(self, name: str) -> set[str]:
        body = self._body(name)
        pairs = self.model.geom_bodyid[self.data.contact.geom] if self.data.ncon else np.empty((0, 2), int)
        others = {int(b if a == body else a) for a, b in pairs if body in (a, b)}
        return {str(self.model.body(other).name) for other in others if self._kind[self.model.body_geomadr[other]] == 1}


def _steps(duration_s: float) -> int:
    """Physics steps that cover a duration; a hair more than a whole number of them counts as whole."""
    return max(0, math.ceil(duration_s / TIMESTEP_S - 1e-6))
