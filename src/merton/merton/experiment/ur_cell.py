"""The embedded UR5 cell as a world: physics, cameras, gate and stop in this process, without ROS.

It does everything as the nodes do, including the rounding of their messages, so that a trial has the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from merton.errors import InfrastructureError, InputError
from merton.execution.gate.carrying import Carrying, Grip, Hand, Move, PredictedStop, Step
from merton.execution.gate.latch import EmergencyStopLatch
from merton.execution.gate.safety import Limits
from merton.execution.gate.stop import StopEvent
from merton.execution.kinematics import base_from_tcp, kinematics_of
from merton.execution.robots.gripper import Gripper
from merton.experiment.world_facts import UR5
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell, Snapshot
from merton.simulation.delay import DelayLine, Instant
from merton.simulation.scene import Scene
from merton.simulation.sensor import SENSORS, AutoExposure
from merton.world.action import ActionChunk
from merton.world.geometry import Array, Matrix, as_transported
from merton.world.observation import CameraView, SceneObject, SceneState, whole_millimetres
from merton.worlds.base import Carried, Judged, RobotState
from merton.worlds.description import Ability

SLICE_S = 0.02
"""Simulated time between two points of the path, as the cell's node reports its joints [s]."""


@dataclass(frozen=True)
class CellSnapshot:
    """The state of `UrCell` between two chunks: cell, what the cameras saw last, and what the hand holds."""

    cell: Snapshot
    exposures: Mapping[str, AutoExposure]
    past: DelayLine
    hand: Hand


class UrCell:
    """The embedded cell as a `merton.worlds.base.World`, which takes tool deltas of any frame and duration.

    Args:
        linkage: the gripper has the linkage of the real one; else its fingers slide.

    Attributes:
        on_slice: called after every slice of `SLICE_S` of motion, such as by a film of the cell; it changes nothing.

    Raises:
        MissingDependencyError: this machine cannot render off screen.
    """

    name = UR5
    abilities: tuple[Ability, ...] = ("fork", "scene", "depth", "things", "progress", "sensor", "latency", "stop")
    action = None

    def __init__(self, *, linkage: bool = False) -> None:
        self.cell = SimulatedCell(linkage=linkage)
        self.cameras = SceneCameras(linkage=linkage)
        self.gripper = Gripper.from_cell(self.cell.config)
        self.latch = EmergencyStopLatch()
        self.limits = Limits()
        self._hand = self._new_hand()
        self._latency_s = 0.0
        self._past = self._new_past()
        self._points: list[Array] = []
        self.on_slice: Callable[[], None] = lambda: None

    @property
    def camera_names(self) -> tuple[str, ...]:
        """Of config/cell.yaml."""
        return self.cameras.names

    def reset(self, task: str, scene: int) -> str:
        """See `World`; releases a stop."""
        self.latch.reset(StopEvent.RESET_BY_EXPERIMENT)
        instruction = self.cell.reset(task, scene).command.instruction
        self.cameras.begin_scene()
        self._hand = self._new_hand()
        self._past = self._new_past()
        return instruction

    def imitate(self, sensor: str) -> None:
        """See `SensedWorld`."""
        self.cameras.imitate(SENSORS[sensor])

    def set_latency(self, latency_s: float) -> None:
        """See `DelayedWorld`; to a slice of `SLICE_S`."""
        self._latency_s = latency_s

    def look(self, camera: str, depth: bool = False) -> CameraView:
        """See `World`; a latency makes it older, and its stamp says so."""
        scene, seen, config = self._scene(), self._seen(), self.cell.config
        view = self.cameras.render(
            scene.task, scene.seed, seen.qpos, camera, seen.time_ns, depth=depth, joint_velocities=seen.joint_velocities
        )
        self.cameras.keep_exposure(camera)
        pose = config.base_from_camera(camera, kinematics_of(config).forward(seen.joints_rad))
        depth_m = None if view.depth_m is None else whole_millimetres(view.depth_m)
        return replace(view, depth_m=depth_m, base_from_camera=pose)

    def state(self, *, as_seen: bool = False) -> RobotState:
        """See `World`; `as_seen` is of the instant that pictures show, with a latency."""
        self._scene()
        instant = self._seen() if as_seen else Instant.of(self.cell)
        return RobotState(
            joints_rad=instant.joints_rad,
            base_from_tool=base_from_tcp(instant.joints_rad, self.cell.config),
            gripper_open=self.gripper.gripper_open(instant.gripper_opening_m),
            time_ns=self.cell.time_ns,
        )

    def judged(self) -> Judged:
        """See `World`."""
        return Judged(*self.cell.judged())

    def scene_state(self) -> SceneState:
        """See `KnownWorld`."""
        objects = self.cell.scene_state().objects
        return SceneState(tuple(SceneObject(item.name, as_transported(item.base_from_object)) for item in objects))

    def things(self, camera: str) -> NDArray[np.bool_]:
        """See `SegmentedWorld`."""
        scene = self._scene()
        return self.cameras.things(scene.task, scene.seed, self._seen().qpos, camera)

    def carry_out(self, chunk: ActionChunk, stop_rule: str = "gate") -> Carried:
        """Carry out a chunk in lockstep; a stop by prediction or by contact ends it and latches."""
        self._points, self._past = [], self._new_past()
        if (stop := self.stopped()) is not None:
            return stop
        carrying = Carrying(
            chunk,
            self.cell.joints_rad,
            self._hand,
            self.cell.config,
            self.limits,
            until_contact=stop_rule == "contact",
        )
        for step in carrying.steps(lambda: self.latch.tripped):
            self._take(step)
        motion, verdict = carrying.motion, carrying.motion.verdict
        if self.latch.tripped:
            return Carried(0, self._path(), "", int(self.latch.stop.verdict.code), self.latch.reason)
        return Carried(motion.executed, self._path(), "", int(verdict.code), verdict.message)

    def save(self) -> CellSnapshot:
        """The state between two chunks, for `load`; raises InputError while the arm is stopped."""
        if self.latch.tripped:
            raise InputError(f"no trial can go on from here: {self.latch.reason}")
        return CellSnapshot(self.cell.snapshot(), self.cameras.exposures(), self._past.fork(), copy(self._hand))

    def load(self, snapshot: CellSnapshot) -> None:
        """Go back to a snapshot of this cell; a stop of the run in between is released."""
        self.latch.reset(StopEvent.RESET_BY_EXPERIMENT)
        self.cell.restore(snapshot.cell)
        self.cameras.restore_exposures(snapshot.exposures)
        self._past, self._hand = snapshot.past.fork(), copy(snapshot.hand)

    def close(self) -> None:
        """Release the drawing context."""
        self.cameras.close()

    def stopped(self) -> Carried | None:
        """The stop that stands, also by a contact of this moment; None while the arm may move."""
        self._latch_contact()
        if not self.latch.tripped:
            return None
        return Carried(0, self._path(), "", int(self.latch.stop.verdict.code), self.latch.reason)

    def _scene(self) -> Scene:
        if self.cell.scene is None:
            raise InfrastructureError("the cell has no scene yet: reset it first")
        return self.cell.scene

    def _tcp(self) -> Matrix:
        return base_from_tcp(self.cell.joints_rad, self.cell.config)

    def _path(self) -> Array:
        return np.array(self._points, np.float64).reshape(-1, 3)

    def _new_hand(self) -> Hand:
        return Hand(self.gripper, lambda: self.cell.gripper_opening_m, self._tcp)

    def _new_past(self) -> DelayLine:
        """The past of a motion that begins now."""
        return DelayLine(self._latency_s, Instant.of(self.cell))

    def _seen(self) -> Instant:
        """The instant that images show."""
        return self._past.seen if self._latency_s else Instant.of(self.cell)

    def _take(self, step: Step) -> None:
        """One step of a chunk, until everything has settled."""
        match step:
            case Grip(segment) if segment.gripper is not None:
                self.cell.command_gripper(self.gripper.opening_m(segment.gripper))
            case Move(segment) if segment.moves:
                times_s = np.rint(segment.times_s * 1e9).astype(np.int64) / 1e9
                self.cell.command_trajectory(times_s, segment.joints_rad, segment.velocities_rad_s)
            case PredictedStop(verdict):
                self.latch.trip(StopEvent.COLLISION_PREDICTED, verdict.message, self.cell.halt)
            case _:
                return
        self._run()

    def _run(self) -> None:
        """Physics until everything commanded has been done and has settled."""
        while self.cell.busy:
            self.cell.advance(SLICE_S)
            if self._latency_s:
                self._past.add(Instant.of(self.cell))
            self._points.append(self._tcp()[:3, 3])
            self._latch_contact()
            self.on_slice()

    def _latch_contact(self) -> None:
        """A contact that the cell reports latches the stop."""
        if (contact := self.cell.contact) is not None:
            self.latch.trip(StopEvent.CELL_COLLISION, str(contact))
