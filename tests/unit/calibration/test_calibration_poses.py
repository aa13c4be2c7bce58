"""`poses.csv`: the forms that are read, and values that cannot be an arm's pose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from merton.calibration import Lens, add_shot, read_lens, read_poses
from merton.errors import InputError
from merton.execution.kinematics import ROBOTS
from merton.perception.camera import d455_intrinsics
from merton.world.arms import ARMS
from merton.world.cell import ARM_JOINTS, load_cell
from merton.world.geometry import transform

UR5 = ROBOTS["UR5"]

JOINTS = "image," + ",".join(ARM_JOINTS)
QUATERNION = "image,x_m,y_m,z_m,qx,qy,qz,qw"
VECTOR = "image,x_m,y_m,z_m,rx,ry,rz"


def poses_of(folder: Path, text: str, encoding: str = "utf-8") -> list[np.ndarray]:
    """The poses of a file whose pictures are there."""
    for name in ("a.png", "b.png"):
        (folder / name).touch()
    (folder / "poses.csv").write_text(text, encoding=encoding)
    return [pose for _, pose in read_poses(folder, ARMS["UR5"], UR5.forward)]


def test_a_pose_of_ur_is_in_base(tmp_path: Path) -> None:
    """UR script manual: p[x, y, z, rx, ry, rz], in base, which is base_link turned about z by 180 deg."""
    turn = Rotation.from_rotvec([0.3, -2.2, 2.0])
    (found,) = poses_of(tmp_path, f"{VECTOR}\na.png,0.1,-0.4,0.3,0.3,-2.2,2.0\n")
    half = Rotation.from_euler("z", np.pi)
    np.testing.assert_allclose(found, transform((-0.1, 0.4, 0.3), half * turn), atol=1e-12)
    for header in ("image,x,y,z,rx,ry,rz", "rz,ry,rx,z_m,y_m,x_m,image"):
        values = ["a.png", "0.1", "-0.4", "0.3", "0.3", "-2.2", "2.0"]
        (again,) = poses_of(tmp_path, f"{header}\n{','.join(values if header[0] == 'i' else values[::-1])}\n")
        np.testing.assert_allclose(again, found, atol=1e-12)


def test_a_column_names_the_frame(tmp_path: Path) -> None:
    rows = ("a.png,100,-400,300,0.3,-2.2,2.0,base", "b.png,-100,400,300,0.3,-2.2,2.0, base_link ")
    one, other = poses_of(tmp_path, "\n".join(("image,x_mm,y_mm,z_mm,rx,ry,rz,frame", *rows)))
    np.testing.assert_allclose(one[:3, 3], other[:3, 3], atol=1e-12)
    np.testing.assert_allclose(one[:3, 3], (-0.1, 0.4, 0.3), atol=1e-12)
    (named,) = poses_of(tmp_path, f"{QUATERNION},frame\na.png,0.1,-0.4,0.3,0,0,0,1,base\n")
    np.testing.assert_allclose(named, transform((-0.1, 0.4, 0.3), Rotation.from_euler("z", np.pi)), atol=1e-12)


def test_files_of_a_spreadsheet_are_read(tmp_path: Path) -> None:
    """Excel: a byte order mark, spaces and carriage returns; in poses.csv and in camera.yaml, read and continued."""
    text = f"{JOINTS.replace(',', ', ')}\r\na.png, 0.1,-1.5,1.2,-1.3,-1.6,0.3\r\n"
    (found,) = poses_of(tmp_path, text, "utf-8-sig")
    np.testing.assert_allclose(found, UR5.forward(np.array([0.1, -1.5, 1.2, -1.3, -1.6, 0.3])))
    lens = Lens(d455_intrinsics(64, 48))
    folder, picture = tmp_path / "pictures", np.zeros((48, 64, 3), np.uint8)
    add_shot(folder, picture, [0.1] * 6, lens)
    for name in ("poses.csv", "camera.yaml"):
        file = folder / name
        file.write_text(file.read_text(encoding="utf-8"), encoding="utf-8-sig")
    assert read_lens(folder) == lens
    assert add_shot(folder, picture, [0.2] * 6, lens).name == "0001.png"
    assert len(read_poses(folder, ARMS["UR5"], UR5.forward)) == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"{JOINTS}\na.png,0,-90,90,-90,-90,0", "line 2: shoulder_lift_joint is 90 rad, .* are these degrees"),
        (f"{VECTOR}\na.png,0.1,0.2,0.3,0,180,0", "line 2: rx, ry, rz have length 180 rad, .* are these degrees"),
        (f"{VECTOR}\na.png,0.1,0.2,0.3,5,5,5", "line 2: rx, ry, rz have length 8.66025 rad"),
        (f"{VECTOR}\na.png,100,200,300,0,1,0", "line 2: x_m, y_m, z_m are 374.166 m .* name the columns x_mm"),
        (f"{VECTOR}\na.png,1.2,1.2,0.3,0,1,0", "line 2: x_m, y_m, z_m are 1.72337 m from the arm's origin"),
        (
            "image,x_mm,y_mm,z_mm,rx,ry,rz\na.png,.1,.2,.3,0,1,0",
            "no pose is farther than 10 mm .* are its lengths metres",
        ),
        (f"{QUATERNION}\na.png,.1,.2,.3,0,0,0.7,0", "qx, qy, qz, qw have length 0.7, not 1"),
        (f"{QUATERNION}\na.png,.1,.2,.3,0,0,1,1e300", "have length 1e\\+300, not 1"),
        (f"{QUATERNION},frame\na.png,.1,.2,.3,0,0,1,0,world", "frame is 'world'; choose one of: base_link, base"),
        (f"{JOINTS}\na.png,0,0,0,0,0,0\na.png,1,0,0,0,0,0", "line 3: a.png has a pose already"),
        (f"{JOINTS}\na.png,0,0,0,0,0", "line 2: has 6 cells, but the header names 7 columns"),
        (f"{JOINTS}\n,0,0,0,0,0,0", "line 2: there is no picture ''"),
        (f"{JOINTS}\n{'x' * 5000},0,0,0,0,0,0", "line 2: there is no picture 'x{79}…'"),
        (f"{JOINTS}\na.png,0,0,0,0,0,{'y' * 5000}", "line 2: expected 6 finite numbers, but wrist_3_joint is 'y{39}…'"),
        ("picture,x,y,z,roll,pitch,yaw\n", "must name the columns image and either .* it names picture, x, y, z, roll"),
        ("", "is empty; its first line must name the columns"),
    ],
)
def test_what_cannot_be_a_pose_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as raised:
        poses_of(tmp_path, text)
    assert len(str(raised.value)) < 500
    assert "\n" not in str(raised.value)


def test_the_reach_is_that_of_the_arm() -> None:
    """All links in a row: no pose of the cell's arm is refused."""
    from merton.calibration.poses import LONGEST_TOOL_M, SHORTEST_REACH_M

    joints = np.random.default_rng(0).uniform(-np.pi, np.pi, (2000, 6))
    reach = np.linalg.norm(UR5.forward(joints)[:, :3, 3], axis=1)
    assert reach.min() > SHORTEST_REACH_M
    assert reach.max() < ARMS["UR5"].reach_m
    assert load_cell().tool.tcp_from_tool0_z < LONGEST_TOOL_M


CELLS = st.one_of(
    st.text(max_size=12),
    st.floats().map(repr),
    st.sampled_from(
        ["a.png", "b.png", "0", "0.1", "1e999", "-0", "base", "base_link", "\ufeff", "a.png\0", "..", '"', "\u0661"]
    ),
)
HEADERS = st.sampled_from([JOINTS, QUATERNION, VECTOR, f"{VECTOR},frame", "image,x_mm,y_mm,z_mm,qx,qy,qz,qw", "image"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    header=st.one_of(HEADERS, st.lists(CELLS, max_size=9).map(",".join)),
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=9), max_size=4),
    separator=st.sampled_from([",", ",", ";", "\t"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
)
def test_any_file_is_read_or_refused_in_one_sentence(
    tmp_path: Path, header: str, rows: list[list[str]], separator: str, encoding: str
) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).touch()
    text = "\n".join([header, *(separator.join(row) for row in rows)])
    (tmp_path / "poses.csv").write_bytes(text.encode(encoding, "replace"))
    poses, refusal = [], ""
    try:
        poses = read_poses(tmp_path, ARMS["UR5"], UR5.forward)
    except InputError as error:
        refusal = str(error)
    assert "\n" not in refusal
    assert all(np.isfinite(pose).all() and picture.is_file() for picture, pose in poses)


NUMBERS = st.floats(-1.0, 1.0).map(lambda value: f"{value:.4f}")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns=st.sampled_from([JOINTS, VECTOR]), values=st.lists(NUMBERS, min_size=6, max_size=6))
def test_any_pose_within_reach_is_read_as_a_rigid_transform(tmp_path: Path, columns: str, values: list[str]) -> None:
    if columns == VECTOR and np.linalg.norm(np.array(values[:3], float)) < 0.02:
        return
    if columns == VECTOR and np.linalg.norm(np.array(values[:3], float)) > 1.4:
        return
    (pose,) = poses_of(tmp_path, f"{columns}\na.png,{','.join(values)}\n")
    np.testing.assert_allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-9)
