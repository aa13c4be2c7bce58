"""The cell's geometry: the file's values, and the poses of its cameras."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from merton.errors import InputError, UnknownNameError
from merton.world.cell import CellConfig, load_cell
from merton.world.geometry import from_rpy

CELL = Path(__file__).parents[3] / "config" / "cell.yaml"


@pytest.fixture(scope="module")
def cell() -> CellConfig:
    return load_cell(CELL)


def test_fields_have_the_values_of_the_file(cell: CellConfig) -> None:
    assert cell.home_joints.shape == (6,)
    assert cell.tool0_from_tcp[2, 3] == 0.235
    assert [wall.name for wall in cell.walls] == ["back", "left"]
    assert cell.camera_names == ("wrist", "top", "side")
    assert cell.intrinsics.width == 424


def test_field_of_view_is_that_of_a_d455(cell: CellConfig) -> None:
    # Intel's D455 data sheet: 90 degrees horizontally; the outermost pixel borders lie width / 2 from the axis.
    angle = 2 * np.arctan2(cell.intrinsics.width / 2, cell.intrinsics.fx)
    assert np.degrees(angle) == pytest.approx(90)


@pytest.mark.parametrize("name", ["top", "side", "wrist"])
def test_cameras_look_where_the_file_says(cell: CellConfig, name: str) -> None:
    base_from_tool0 = from_rpy((0.4, 0.1, 0.5), (np.pi, 0.2, -0.7))
    camera = cell.camera(name)
    pose = cell.base_from_camera(name, base_from_tool0)
    parent = base_from_tool0 if camera.parent == "tool0" else np.eye(4)
    assert np.allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3))
    assert np.linalg.det(pose[:3, :3]) == pytest.approx(1)
    target = np.linalg.inv(pose) @ parent @ (*camera.look_at, 1.0)
    assert target[:2] == pytest.approx((0, 0)), "look_at must be on the optical axis"
    assert target[2] > 0, "look_at must be in front"
    above = np.linalg.inv(pose)[:3, :3] @ parent[:3, :3] @ camera.up
    assert above[0] == pytest.approx(0), "up must not lean in the image"
    assert above[1] < 0, "up must be up in the image, where y points down"


def test_left_of_the_robot_is_left_in_the_top_image(cell: CellConfig) -> None:
    camera_from_base = np.linalg.inv(cell.base_from_camera("top"))
    u_px, v_px = cell.intrinsics.project((camera_from_base @ (0.55, 0.1, 0.0, 1.0))[:3])
    assert u_px < cell.intrinsics.cx
    assert v_px < cell.intrinsics.cy


def test_camera_on_the_tool_needs_the_tool(cell: CellConfig) -> None:
    with pytest.raises(InputError, match="wrist"):
        cell.base_from_camera("wrist")
    with pytest.raises(UnknownNameError, match="side, top, wrist"):
        cell.base_from_camera("ceiling")


def test_workspace_distance(cell: CellConfig) -> None:
    assert cell.workspace.outside_m(np.array([0.5, 0.0, 0.2])) == 0
    corner = np.add(cell.workspace.max, (0.03, 0.04, 0.0))
    assert cell.workspace.outside_m(corner) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("stroke: 0.140", "stroke: -1", r"line \d+: gripper.stroke: "),
        ("stroke: 0.140", "strike: 0.140", r"line \d+: gripper.stroke: is missing"),
        ("tcp_from_tool0_z: 0.235", "tcp_from_tool0_z: .nan", r"line \d+: tool.tcp_from_tool0_z: "),
        ("min: [0.20, -0.50, 0.0]", "min: [0.20, 0.50, 0.0]", r"line \d+: workspace: "),
        ("up: [0.0, 0.0, 1.0]", "up: [0.0, 0.0, 0.0]", r"line \d+: cameras.side: "),
        ("  fx: 212.0", "  fx: 212.0\n  fx: 213.0", "duplicate key"),
    ],
)
def test_a_wrong_file_is_named_with_the_key(tmp_path: Path, old: str, new: str, named: str) -> None:
    text = CELL.read_text()
    assert old in text
    path = tmp_path / "cell.yaml"
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=named) as caught:
        load_cell(path)
    assert str(caught.value).startswith(f"{path}, line ")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InputError, match="nowhere"):
        load_cell("nowhere.yaml")
