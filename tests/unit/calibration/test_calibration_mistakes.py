"""Hand-eye calibration from poses that are wrong: nothing is written, and the likely mistake is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from board_renderer import BoardRenderer
from calibration_rig import rig
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from test_calibration import (
    ACCURACY_DEG,
    ACCURACY_M,
    LENS,
    PINHOLE,
    camera_of,
    gap,
    make_rig,
    pictures,
    run,
    seen,
    solve,
)

from merton.calibration import CharucoBoard, add_shot, calibrate, check_place, find_board
from merton.calibration.mistakes import BASE_LINK_FROM_BASE
from merton.errors import InputError
from merton.execution import kinematics
from merton.perception.images import write_image
from merton.world.cell import load_cell
from merton.world.geometry import Matrix, from_quaternion, inverse, quaternion_of, rotation_vector_of, transform

Change = Callable[[Matrix], Matrix]


def scaled(factor: float) -> Change:
    return lambda pose: pose @ transform((factor - 1) * (pose[:3, :3].T @ pose[:3, 3]))


def turned_back(pose: Matrix) -> Matrix:
    return transform(pose[:3, 3], Rotation.from_matrix(pose[:3, :3].T))


def w_first(pose: Matrix) -> Matrix:
    """A quaternion (w, x, y, z) in the columns x, y, z, w."""
    return from_quaternion(pose[:3, 3], np.roll(quaternion_of(pose), 1))


@pytest.mark.parametrize("camera", ["wrist", "top"])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (inverse, r"poses of base_link in tool0 \(tool-from-base\)"),
        (scaled(1000), "in millimetres, not in metres"),
        (scaled(100), "in centimetres, not in metres"),
        (scaled(0.001), "a thousandth of what they should be"),
        (turned_back, "their rotations seem to be those of base_link in tool0"),
        (w_first, "in the order w, x, y, z"),
    ],
)
def test_poses_that_do_not_fit_are_refused_and_the_mistake_is_named(camera: str, change: Change, sentence: str) -> None:
    taken = make_rig(camera, 3, poses=8)
    sightings, poses = seen(taken, np.random.default_rng(1)), [change(pose) for pose in taken.base_from_tool0]
    with pytest.raises(InputError, match=sentence) as raised:
        calibrate(sightings, poses, PINHOLE, taken.parent)  # type: ignore[arg-type]
    assert str(raised.value).startswith("the poses do not fit the pictures: corners are off by ")


def test_poses_of_other_pictures_and_another_camera_are_refused() -> None:
    taken = make_rig("wrist", 3, poses=8)
    sightings, poses = seen(taken, np.random.default_rng(1)), list(taken.base_from_tool0)
    with pytest.raises(InputError, match="each pose seems to belong to the picture after it"):
        calibrate(sightings, [*poses[1:], poses[0]], PINHOLE, "tool0")
    with pytest.raises(InputError, match="or the camera stands on the tool, and the board beside it"):
        calibrate(sightings, poses, PINHOLE, "base_link")
    mixed = [poses[index] for index in (3, 6, 0, 7, 1, 4, 2, 5)]
    with pytest.raises(InputError, match="did the board move, do poses belong to other pictures"):
        calibrate(sightings, mixed, PINHOLE, "tool0")


def test_what_is_accepted_follows_the_focal_length() -> None:
    """3 px at 640 px are the angle of 1 px at 213 px."""
    from merton.calibration import Lens
    from merton.calibration.mistakes import most_error_px
    from merton.perception.camera import d455_intrinsics

    assert most_error_px(PINHOLE) == pytest.approx(3.0)
    assert most_error_px(Lens(d455_intrinsics(424, 240))) == pytest.approx(1.0)


@pytest.mark.parametrize("camera", ["top", "side", "wrist"])
def test_a_frame_that_is_turned_and_a_tool_that_is_longer_show_in_the_place_alone(camera: str) -> None:
    """UR's controller has poses of its TCP in its frame base, half a turn about z from base_link."""
    np.testing.assert_allclose(BASE_LINK_FROM_BASE, kinematics.BASE_LINK_FROM_BASE, atol=1e-12)
    cell, taken = load_cell(), make_rig(camera, 3, poses=6)
    sightings, poses = seen(taken, np.random.default_rng(1)), list(taken.base_from_tool0)
    assert check_place(solve(taken, sightings).parent_from_camera, camera, cell) == ""
    tool = transform((0.0, 0.0, cell.tool.tcp_from_tool0_z))
    for change, is_seen, sentence in (
        (
            lambda pose: BASE_LINK_FROM_BASE @ pose,
            taken.parent == "base_link",
            "in UR's frame base and not in base_link",
        ),
        (lambda pose: pose @ tool, taken.parent == "tool0", "those of the tool centre point, not of tool0"),
    ):
        moved = calibrate(sightings, [change(pose) for pose in poses], PINHOLE, taken.parent)  # type: ignore[arg-type]
        if is_seen:
            with pytest.raises(InputError, match=sentence):
                check_place(moved.parent_from_camera, camera, cell)
        else:
            assert gap(moved.parent_from_camera, taken.parent_from_camera) < (ACCURACY_M, ACCURACY_DEG)


@pytest.mark.parametrize(("length_m", "is_warned"), [(0.02, False), (0.05, True), (0.149, True), (0.4, True)])
def test_poses_of_a_short_tool_are_warned_of(length_m: float, is_warned: bool) -> None:
    """They are T tool0_from_tcp, so that the camera comes out that much before its place along z of tool0."""
    cell = load_cell()
    right = cell.camera("wrist").parent_from_camera
    told = check_place(transform((0.0, 0.0, -length_m)) @ right, "wrist", cell)
    along = f"wrist stands {-1000 * length_m:.0f} mm along z of tool0 from where config/cell.yaml has it"
    assert told.startswith(along) == is_warned
    assert ("poses of the TCP in place of the flange" in told) == is_warned
    aside = transform((0.03, 0.0, -0.05)) @ right
    turned = transform((0.0, 0.0, -0.05), Rotation.from_rotvec((0.1, 0.0, 0.0))) @ right
    assert [check_place(other, "wrist", cell) for other in (aside, turned)] == ["", ""]
    top = transform((0.0, 0.0, 0.05)) @ cell.camera("top").parent_from_camera
    assert check_place(top, "top", cell) == "", "no tool moves a camera beside the arm"


def test_a_camera_that_stands_where_another_should_is_named() -> None:
    cell = load_cell()
    with pytest.raises(InputError, match=r"top would stand where config/cell\.yaml has side: are the pictures of side"):
        check_place(cell.camera("side").parent_from_camera, "top", cell)
    away = cell.camera("top").parent_from_camera @ transform((0.0, 0.4, 0.0))
    assert check_place(away, "top", cell).startswith("top stands 400 mm and 0 deg from where")


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six pictures of the top camera, with joints."""
    place = tmp_path_factory.mktemp("top")
    taken, images = pictures("top")
    for joints, image in zip(taken.joints_rad[:6], images, strict=False):
        add_shot(place, image, joints, LENS)
    return place


def written_as(
    shots: Path,
    folder: Path,
    header: str,
    values: Callable[[Matrix], NDArray[np.float64]],
    *,
    count: int = 6,
    mark: str = "",
) -> Path:
    """The pictures with a `poses.csv` of other columns; `mark` begins the file."""
    lines = [f"{mark}image,{header}"]
    taken, _ = pictures("top")
    for name, pose in zip(sorted(shots.glob("*.png"))[:count], taken.base_from_tool0, strict=False):
        (folder / name.name).symlink_to(name)
        lines.append(",".join([name.name, *(f"{value:.12g}" for value in values(pose))]))
    (folder / "camera.yaml").write_text((shots / "camera.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "poses.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def with_vector(pose: Matrix) -> NDArray[np.float64]:
    return np.array([*pose[:3, 3], *rotation_vector_of(pose)])


def with_quaternion(pose: Matrix) -> NDArray[np.float64]:
    return np.array([*pose[:3, 3], *quaternion_of(pose)])


UR_POSE = "x_m,y_m,z_m,rx,ry,rz"
QUATERNION = "x_m,y_m,z_m,qx,qy,qz,qw"


@pytest.mark.parametrize(
    ("header", "values", "mark"),
    [
        (UR_POSE, lambda pose: with_vector(inverse(BASE_LINK_FROM_BASE) @ pose), ""),
        ("x_mm,y_mm,z_mm,qx,qy,qz,qw", lambda pose: with_quaternion(pose) * [1e3, 1e3, 1e3, 1, 1, 1, 1], "\ufeff"),
    ],
)
def test_the_controllers_own_poses_are_read(
    shots: Path,
    tmp_path: Path,
    header: str,
    values: Callable[[Matrix], NDArray[np.float64]],
    mark: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """UR: position and rotation vector in base. Excel: a byte order mark before the header."""
    folder = written_as(shots, tmp_path, header, values, mark=mark)
    assert run("calibrate", "solve", str(folder), "--camera", "top", monkeypatch=monkeypatch) == 0
    found = camera_of((folder / "top_pose.yaml").read_text(encoding="utf-8"), "top")
    assert gap(found, pictures("top")[0].parent_from_camera) < (2 * ACCURACY_M, ACCURACY_DEG)


@pytest.mark.parametrize(
    ("header", "values", "sentence"),
    [
        (QUATERNION, lambda pose: with_quaternion(scaled(1000)(pose)), "line 2: x_m, y_m, z_m are .* millimetres"),
        (QUATERNION, lambda pose: with_quaternion(BASE_LINK_FROM_BASE @ pose), "UR's frame base and not in base_link"),
        (QUATERNION, lambda pose: with_quaternion(inverse(pose)), "poses of base_link in tool0"),
        (UR_POSE, with_vector, "or the other way round; name theirs in a column 'frame'"),
    ],
)
def test_nothing_is_written_for_poses_that_are_wrong(
    shots: Path,
    tmp_path: Path,
    header: str,
    values: Callable[[Matrix], NDArray[np.float64]],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = written_as(shots, tmp_path, header, values)
    assert run("calibrate", "solve", str(folder), "--camera", "top", monkeypatch=monkeypatch) == 2
    assert re.search(sentence, capsys.readouterr().err)
    assert not (folder / "top_pose.yaml").exists()


def test_three_pictures_say_that_their_error_is_unknown(
    shots: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written_as(shots, tmp_path, QUATERNION, with_quaternion, count=3)
    assert run("calibrate", "solve", str(folder), "--camera", "top", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "m in base_link; how well is not known from three pictures." in said
    assert "nan" not in said


@pytest.mark.parametrize(("columns", "rows"), [(7, 6), (6, 8)])
def test_a_board_of_opencv_before_4_6_is_found_by_itself(tmp_path: Path, columns: int, rows: int) -> None:
    """OpenCV's `setLegacyPattern`: with an even number of rows the top left square is white and has a marker."""
    legacy = CharucoBoard(columns, rows, 0.03, legacy=True)
    assert legacy.pattern[0, 0] == 255
    assert CharucoBoard(columns, rows, 0.03).pattern[0, 0] == 0
    taken, drawn = rig("wrist", LENS, np.random.default_rng(3), poses=3, board=legacy), None
    drawn = BoardRenderer(legacy, LENS.intrinsics, LENS.distortion)
    files = [tmp_path / f"{number}.png" for number in range(3)]
    for file, view in zip(files, taken.camera_from_board, strict=True):
        write_image(drawn.render(view), file)
    found = find_board(CharucoBoard(columns, rows, 0.03), files)
    for sighting, view in zip(found, taken.camera_from_board, strict=True):
        assert sighting is not None
        assert len(sighting.corners_px) == (columns - 1) * (rows - 1)
        distance, angle = gap(LENS.camera_from_board(sighting)[0], view)
        assert distance < 1e-3
        assert angle < 0.1
    with pytest.raises(InputError, match=r"markers, but not laid out as on this board: are --columns and --rows right"):
        find_board(CharucoBoard(columns + 1, rows, 0.03), files)


def test_both_layouts_are_the_same_with_an_odd_number_of_rows() -> None:
    one = CharucoBoard()
    assert (one.pattern == replace(one, legacy=True).pattern).all()
