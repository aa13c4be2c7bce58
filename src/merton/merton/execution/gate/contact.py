"""The point at which the arm touches an obstacle, or would have touched it, for drawings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from merton.execution.gate.capsules import capsules_of
from merton.execution.gate.collision import Guard
from merton.world.cell import CellConfig
from merton.world.geometry import Array

SAMPLES = 65
"""Points along the axis of a capsule; the nearest of them is within a centimetre of the nearest of all."""


def point_of_contact(
    cell: CellConfig, joints_rad: ArrayLike, link_a: str, link_b: str, opening_m: float | None = None
) -> Array | None:
    """The point (3,) [m] in `base_link` on the skin of `link_a` that is nearest to `link_b`.

    Args:
        cell: geometry of the cell.
        joints_rad: (6,) [rad].
        link_a: a part of the arm, as in a `Verdict` or a contact.
        link_b: "table", a wall, or another part of the arm.
        opening_m: opening of the gripper [m]; None means fully open.

    Returns:
        None if this cell has no shape for `link_a` or `link_b`.
    """
    capsules = capsules_of(cell)
    ends, radii = Guard(cell).capsules(np.reshape(np.asarray(joints_rad, float), (1, 6)), opening_m)
    along = np.linspace(0.0, 1.0, SAMPLES)[:, None]
    axes = [start + along * (end - start) for start, end in ends[0]]
    mine = [index for index, capsule in enumerate(capsules) if capsule.link == link_a]
    if not mine:
        return None
    points = np.concatenate([axes[index] for index in mine])
    radius = np.repeat(radii[mine], SAMPLES)
    boxes = [box for box in cell.walls if box.name == link_b]
    if link_b == "table":
        nearest = points * (1.0, 1.0, 0.0)
    elif boxes:
        centre, half = np.array(boxes[0].center), np.array(boxes[0].size) / 2
        nearest = np.clip(points, centre - half, centre + half)
    else:
        others = [axes[index] for index, capsule in enumerate(capsules) if capsule.link == link_b]
        if not others:
            return None
        other = np.concatenate(others)
        nearest = other[np.linalg.norm(points[:, None] - other, axis=2).argmin(axis=1)]
    distance = np.linalg.norm(nearest - points, axis=1)
    best = int((distance - radius).argmin())
    direction = (nearest[best] - points[best]) / max(distance[best], 1e-9)
    skin: Array = points[best] + direction * min(radius[best], distance[best])
    return skin
