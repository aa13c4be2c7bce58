"""The cell and the arm as the page draws them. Frame: `base_link` [m]."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from merton.execution.gate.capsules import capsules_of
from merton.execution.kinematics import base_from_tcp, kinematics_of
from merton.world.cell import CellConfig


class SceneView:
    """Fixed parts of the cell, and the arm at its joints."""

    def __init__(self, cell: CellConfig) -> None:
        self.cell = cell
        self._arm, self._capsules = kinematics_of(cell), capsules_of(cell)
        self._frames = np.array([capsule.frame for capsule in self._capsules])
        self._ends = np.array([(capsule.start, capsule.end) for capsule in self._capsules])  # (n, 2, 3)
        self._slides = np.array([capsule.slide for capsule in self._capsules])

    def still(self) -> dict[str, Any]:
        """Table, walls and workspace as boxes: pairs of corners, (2, 3) each [m]."""
        table = self.cell.table
        corner, size = np.array(table.center), np.array(table.size)
        return {
            "table": [[*(corner - size / 2).tolist(), -table.thickness], [*(corner + size / 2).tolist(), 0.0]],
            "walls": [
                [(np.array(w.center) + sign * np.array(w.size) / 2).tolist() for sign in (-1, 1)]
                for w in self.cell.walls
            ],
            "workspace": [list(self.cell.workspace.min), list(self.cell.workspace.max)],
        }

    def arm(self, joints_rad: ArrayLike, opening_m: float, stamp_s: float) -> dict[str, Any]:
        """Arm and gripper as capsules, for joints (6,) [rad] and an opening of the gripper [m].

        Returns:
            "capsules": rows (x, y, z, x, y, z, radius) [m]; "joints_deg": (6,); "opening_mm"; "tcp_mm": (3,);
            "stamp_s": as given, of the joints on the cell's clock [s].
        """
        joints = np.asarray(joints_rad, float)
        frames = self._arm.link_frames(joints)[self._frames]  # (n, 4, 4)
        ends = self._ends.copy()
        ends[:, :, 0] += self._slides[:, None] * opening_m / 2
        placed = np.einsum("nij,nkj->nki", frames[:, :3, :3], ends) + frames[:, None, :3, 3]
        rows = [
            [round(value, 4) for value in (*segment.ravel().tolist(), capsule.radius_m)]
            for segment, capsule in zip(placed, self._capsules, strict=True)
        ]
        tcp = base_from_tcp(joints, self.cell)[:3, 3]
        return {
            "capsules": rows,
            "joints_deg": np.degrees(joints).round(1).tolist(),
            "opening_mm": round(1e3 * opening_m, 1),
            "tcp_mm": (1e3 * tcp).round(1).tolist(),
            "stamp_s": round(stamp_s, 3),
        }
