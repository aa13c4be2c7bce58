"""The point that is shown where the arm meets something lies on both."""

from __future__ import annotations

import numpy as np
import pytest

from merton.execution.gate.collision import Guard
from merton.execution.gate.contact import point_of_contact
from merton.execution.kinematics import base_from_tcp
from merton.world.cell import CellConfig, load_cell


@pytest.fixture(scope="module")
def cell() -> CellConfig:
    return load_cell()


def test_above_the_table_the_contact_is_the_lowest_point_of_the_nearest_link(cell: CellConfig) -> None:
    joints = np.array(cell.home_joints)
    nearest = Guard(cell).clearance(joints)
    assert nearest.link_b == "table"
    point = point_of_contact(cell, joints, nearest.link_a, "table")
    assert point is not None
    assert point[2] == pytest.approx(nearest.distance_m, abs=1e-3)
    tool = base_from_tcp(joints, cell)[:3, 3]
    assert np.linalg.norm(point[:2] - tool[:2]) < 0.12, "below the fingers"


def test_beside_a_wall_the_contact_is_as_far_from_the_wall_as_the_link(cell: CellConfig) -> None:
    joints = np.array(cell.home_joints)
    assert cell.walls
    for wall in cell.walls:
        point = point_of_contact(cell, joints, "forearm_link", wall.name)
        assert point is not None
        half = np.array(wall.size) / 2
        outside = np.maximum(np.abs(point - np.array(wall.center)) - half, 0)
        assert 0 < np.linalg.norm(outside) < 2.0


def test_between_two_links_the_contact_is_on_the_first_towards_the_second(cell: CellConfig) -> None:
    joints = np.array([0.0, -1.2, 2.2, -1.4, -1.57, 0.0])  # folded
    close = Guard(cell).self_clearances(joints[None])[0]
    assert close.distance_m > 0
    point, back = (
        point_of_contact(cell, joints, *pair) for pair in ((close.link_a, close.link_b), (close.link_b, close.link_a))
    )
    assert point is not None
    assert back is not None
    assert np.linalg.norm(point - back) == pytest.approx(close.distance_m, abs=0.005)


@pytest.mark.parametrize("pair", [("moon", "table"), ("forearm_link", "moon"), ("", "")])
def test_what_has_no_shape_has_no_point(cell: CellConfig, pair: tuple[str, str]) -> None:
    assert point_of_contact(cell, cell.home_joints, *pair) is None
