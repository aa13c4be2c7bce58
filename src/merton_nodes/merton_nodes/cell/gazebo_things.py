"""The things on the table of the cell in Gazebo: those of the last scene go, those of the next one come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.task import Future

from merton.errors import InfrastructureError
from merton.simulation.gazebo import lifted, moving_models, parked, places
from merton.simulation.scene import Scene
from merton.world.cell import CellConfig
from merton.world.geometry import Matrix
from merton_nodes.cell.lockstep import Lockstep
from merton_nodes.ros.waits import Waits

SIMULATOR = ("joints", "renderer")
"""Sources that report every instant, whichever things there are."""


class GazeboThings:
    """Moves objects and mats, which are always in the world, and adds and removes the props of single tasks.

    Args:
        world: a `GazeboWorld`.
        time: lets the steps pass that a removal needs; expects the poses of the things that are there.
        waits: for Gazebo's answers.
        cell: where things are parked, and how large they are.
        patience_s: wall time for each answer [s].
    """

    def __init__(self, world: Any, time: Lockstep, waits: Waits, cell: CellConfig, patience_s: float) -> None:
        self.world, self.time, self.waits, self.cell, self.patience_s = world, time, waits, cell, patience_s
        self.props: list[str] = []
        time.expect((*SIMULATOR, *moving_models()))

    async def clear(self) -> None:
        """Take all things away from the table; props are removed by the next `put`.

        Time has to pass before that: Gazebo (gz-physics 7) ends in a segmentation fault when a thing is removed that
        touched another in the last step.
        """
        await self._move(parked(self.cell) | lifted(self.props))

    async def put(self, scene: Scene) -> None:
        """Put the things of a scene in their places, with no other props in the world."""
        if self.props:
            self.time.expect((*SIMULATOR, *moving_models()))
            while self.props:
                await self._done(f"remove the {self.props[-1]}", self.world.remove(self.props.pop()))
            self.time.run_for(0.0)  # they go with the next step, and only then can others of their names come
            await self.waits.require(lambda: self.time.stands, self.patience_s, "simulated time to pass")
        standing = places(scene, self.cell)
        await self._move({name: pose for name, pose in standing.items() if name not in scene.props})
        for name in sorted(scene.props):
            self.props.append(name)
            await self._done(f"add the {name}", self.world.add(name, standing[name]))
        self.time.expect((*SIMULATOR, *moving_models(scene)))

    async def _move(self, base_from_models: Mapping[str, Matrix]) -> None:
        for name, base_from_model in base_from_models.items():  # one by one: a service keeps ten requests
            await self._done(f"place the {name}", self.world.place(name, base_from_model))

    async def _done(self, deed: str, future: Future) -> None:
        """Wait until Gazebo has done something; raises InfrastructureError if it could not."""
        if not (await self.waits.result(future, self.patience_s, f"Gazebo to {deed}")).success:
            raise InfrastructureError(f"Gazebo could not {deed}")
