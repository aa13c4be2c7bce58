"""The cell's geometry, with the gripper that a node's parameter names."""

from __future__ import annotations

from merton.world.cell import CellConfig, load_cell
from merton_nodes.ros.runtime import StageNode


def declared_cell(node: StageNode) -> CellConfig:
    """The content of `config/cell.yaml`, completed by `gripper_linkage`, which is the same in all nodes of a graph.

    Raises InputError as `load_cell`.
    """
    return load_cell(
        linkage=node.parameter(
            "gripper_linkage", False, "the gripper has the linkage of the real 2F-140; false: fingers that slide"
        )
    )
