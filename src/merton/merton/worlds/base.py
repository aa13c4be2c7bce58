"""`World`: the one interface of a place where trials happen. Models and distortions are not part of it.

The embedded UR5 cell is one (`merton.experiment.ur_cell`); others run in a process and a virtual environment of their
own, and `merton.worlds.client.HostedWorld` speaks to them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from merton.world.action import ActionChunk
from merton.world.action_space import ActionSpace
from merton.world.geometry import Array, Matrix
from merton.world.observation import CameraView, SceneState
from merton.worlds.description import Ability


@dataclass(frozen=True)
class RobotState:
    """The state of a robot between two rows. Whatever it lacks is None, not zero.

    Attributes:
        joints_rad: (n,) joint angles.
        base_from_tool: (4, 4) pose of the tool centre point in the world's base frame [m].
        gripper_open: 0 closed .. 1 open.
        point: (x, y, z) for the path in pictures, in the world's `frame`; of a robot with a tool its position.
        rest_row: the row that keeps the robot still from here on, for the floor agent `hold`.
        extra: further numbers that policies of this world read, by name, such as both arms' joints.
        time_ns: since the reset, on the world's clock [ns].
    """

    joints_rad: Array | None = None
    base_from_tool: Matrix | None = None
    gripper_open: float | None = None
    point: tuple[float, float, float] | None = None
    rest_row: Array | None = None
    extra: dict[str, Array] | None = None
    time_ns: int = 0


@dataclass(frozen=True)
class Judged:
    """The task as the world judges it at one instant; `progress` is 0..1 of the way, or None if it does not know."""

    success: bool
    progress: float | None = None


@dataclass(frozen=True)
class Carried:
    """The result of carrying out a chunk.

    Attributes:
        rows: carried out, <= those of the chunk.
        points: (n, 3), `RobotState.point` along the way; (0, 3) if there is none.
        ended: why the world has ended the trial, such as "success" or "step limit"; "" if it goes on.
        error_code: 0, or why the robot was stopped: a `merton.errors.ErrorCode`.
        error_message: one sentence, empty if none.
    """

    rows: int
    points: Array
    ended: str = ""
    error_code: int = 0
    error_message: str = ""


@runtime_checkable
class World(Protocol):
    """A place where trials happen. Every method raises InfrastructureError if it fails, whose text is one sentence."""

    @property
    def name(self) -> str:
        """Of the catalogue."""
        ...

    @property
    def abilities(self) -> Collection[Ability]:
        """All that it can do beyond this interface; a method of another protocol below counts only with its ability."""
        ...

    @property
    def camera_names(self) -> tuple[str, ...]: ...

    @property
    def action(self) -> ActionSpace | None:
        """The form of its actions; None of the UR5 cell, which takes tool deltas of any frame and duration."""
        ...

    def reset(self, task: str, scene: int) -> str:
        """Begin a trial; returns the instruction. The scene is a function of task and number, byte for byte.

        A world that was left in the middle of a trial, or whose process died, starts anew.
        """
        ...

    def look(self, camera: str, depth: bool = False) -> CameraView:
        """The view of a camera now, upright. Nothing else is rendered, and looking changes nothing."""
        ...

    def carry_out(self, chunk: ActionChunk, stop_rule: str = "gate") -> Carried:
        """Carry out a chunk, one row after the other, until the world ends the trial or stops the robot.

        Args:
            stop_rule: "gate" or "contact", of a world that stops its robot before table and walls.
        """
        ...

    def state(self) -> RobotState: ...

    def judged(self) -> Judged:
        """Success holds from the row on at which it was reached, even if it was momentary."""
        ...

    def close(self) -> None:
        """End it, and all that it started."""
        ...


@runtime_checkable
class ForkableWorld(World, Protocol):
    """A world that can go back exactly: what follows `load` is what followed `save`, to the last bit and pixel."""

    def save(self) -> Any:
        """The state between two rows, of this process alone."""
        ...

    def load(self, snapshot: Any) -> None:
        """Go back to a snapshot."""
        ...


@runtime_checkable
class ExpertWorld(World, Protocol):
    """A world whose own expert decides from its state."""

    def expert(self, rows: int) -> Array:
        """The next rows (n, columns) of the expert from here; at most `rows`, and the world is as it was before."""
        ...


@runtime_checkable
class SegmentedWorld(World, Protocol):
    """A world that knows which pixels show which thing."""

    def things(self, camera: str) -> NDArray[np.bool_]:
        """The pixels (height, width) of a camera's picture now that show a thing which the task names."""
        ...


@runtime_checkable
class KnownWorld(World, Protocol):
    """A world that can tell a policy of Merton where everything is."""

    def scene_state(self) -> SceneState:
        """The poses of all things now."""
        ...


@runtime_checkable
class SensedWorld(World, Protocol):
    """A world whose cameras can imitate a sensor."""

    def imitate(self, sensor: str) -> None:
        """Imitate a sensor of `merton.simulation.sensor.SENSORS` from the next reset on."""
        ...


@runtime_checkable
class DelayedWorld(World, Protocol):
    """A world whose pictures can be older than the motion they lead to."""

    def set_latency(self, latency_s: float) -> None:
        """Show the world as it was `latency_s` before, from the next reset on; 0 is the present."""
        ...
