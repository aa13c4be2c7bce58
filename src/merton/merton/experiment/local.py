"""The ports of a trial in the embedded UR5 cell, without ROS: for tests, tuning and quick studies."""

from __future__ import annotations

from typing import Any

from merton.experiment.ports import CellView, Execution, StopRule
from merton.experiment.ur_cell import SLICE_S, CellSnapshot, UrCell
from merton.experiment.world_facts import UR5
from merton.experiment.world_ports import WorldPorts
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.world.action import ActionChunk
from merton.worlds.base import RobotState
from merton.worlds.description import WorldDescription
from merton.worlds.entry import WORLDS

__all__ = ["SLICE_S", "CellSnapshot", "LocalPorts", "ports_of"]


def ports_of(world: str, expected: WorldDescription | None = None) -> WorldPorts[Any]:
    """The ports of a world, by its name in the catalogue.

    Args:
        expected: the description that it must have, such as a run's; None for the one it was added with.

    Raises:
        InputError: no such world, or it is not on this machine.
        MissingDependencyError: this machine cannot render the UR5 cell.
    """
    return LocalPorts() if world == UR5 else WorldPorts(WORLDS[world].build(expected))


class LocalPorts(WorldPorts[UrCell]):
    """`merton.experiment.ports.Ports` of a simulated cell in this process. A context manager, which closes it.

    Args:
        linkage: the gripper has the linkage of the real one; else its fingers slide.

    Raises:
        MissingDependencyError: this machine cannot render off screen.
    """

    judge_name = "cell"
    knows_scene = True

    def __init__(self, *, linkage: bool = False) -> None:
        super().__init__(UrCell(linkage=linkage))

    @property
    def cell(self) -> SimulatedCell:
        """The physics."""
        return self.world.cell

    @property
    def cameras(self) -> SceneCameras:
        """The pictures."""
        return self.world.cameras

    def execute(self, chunk: ActionChunk, view: CellView, stop_rule: StopRule = "gate") -> Execution:
        """See `Ports`; a stop that stands comes before the judgement of images, as in arm_node."""
        if (stop := self.world.stopped()) is not None:
            return Execution(0, (), stop.error_code, stop.error_message)
        return super().execute(chunk, view, stop_rule)

    def _state(self, is_seen: bool) -> RobotState:
        return self.world.state(as_seen=is_seen)
