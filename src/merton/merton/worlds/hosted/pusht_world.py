"""PushT of gym-pusht: a disk pushes a T in a plane onto its mark. Its rows are places in the plane, for no arm.

Runs in an environment of its own with `gym-pusht`, which is not installed beside Merton.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gym_pusht.envs.pusht import PushTEnv
from gym_pusht.envs.pymunk_override import DrawOptions
from gymnasium_world import GymnasiumWorld

PLANE_PX = 512


class PushT(GymnasiumWorld):
    """The disk goes towards the point of a row. No expert: turning the T onto its mark takes more than a script.

    Attributes:
        size_px: width and height of the picture; 384 in LeRobot's environment, 96 in its data set.
    """

    tasks: ClassVar = {"push-t": "push the T onto its mark"}
    max_rows = 300  # as gym-pusht registers it
    columns: ClassVar = [
        {"name": name, "unit": "px", "low": 0, "high": PLANE_PX, "spread": spread}
        for name, spread in (("x", 499), ("y", 486))
    ]
    period_s = 0.1
    spread_from = "least to greatest action of lerobot/pusht, 206 demonstrations: 12 to 511 px and 25 to 511 px"
    frame = "PushT's plane of 512 by 512, y down [px]"
    camera = "top"
    packages = ("gym-pusht", "pymunk", "shapely", "pygame", "opencv-python", "gymnasium", "numpy")

    def __init__(self, size_px: int = 384) -> None:
        super().__init__()
        self.size_px = size_px

    def make(self, task: str) -> PushTEnv:
        return _PushT(observation_width=self.size_px, observation_height=self.size_px)

    def look(self, camera: str) -> np.ndarray:
        return self.env._render()  # as policies see it; render() has a cross at the last action

    def state(self) -> dict[str, Any]:
        place = np.array(self.env.agent.position)
        return {"point": [*place, 0], "rest_row": place, "extra": {"agent_pos": place}}

    def progress(self) -> float:
        """The share of the mark that the T covers, of the 95 % that count as success."""
        covered = self.env._get_coverage()  # the last digit differs with the order of the T's bars in memory
        return float(round(min(covered / self.env.success_threshold, 1), 9))


class _PushT(PushTEnv):
    """gym-pusht's environment, which draws its shapes in the order of their addresses in memory; here in a fixed one.

    Where the disk overlaps the T, two processes would else see other pixels of one state.
    """

    def _draw(self) -> Any:
        screen = super()._draw()
        options = DrawOptions(screen)
        for bar in self._block_shapes:
            color = options.color_for_shape(bar)
            options.draw_polygon([bar.body.local_to_world(corner) for corner in bar.get_vertices()], 0, color, color)
        (disk,) = self.agent.shapes
        color = options.color_for_shape(disk)
        options.draw_circle(self.agent.position, 0, disk.radius, color, color)
        options.flags = DrawOptions.DRAW_COLLISION_POINTS
        self.space.debug_draw(options)
        return screen
