"""Hand-eye calibration: boards drawn with exact optics, and warnings about poor pictures."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest
from board_renderer import BoardRenderer
from calibration_rig import Rig, rig
from numpy.typing import NDArray
from ruamel.yaml import YAML
from scipy.spatial.transform import Rotation

from merton.calibration import (
    Calibration,
    CharucoBoard,
    Lens,
    Sighting,
    add_shot,
    calibrate,
    check_lens,
    find_board,
    read_lens,
    read_poses,
)
from merton.cli import main as cli
from merton.cli.calibrate import camera_yaml
from merton.errors import InputError
from merton.perception.camera import d455_intrinsics
from merton.perception.distortion import distort as distort_by_width
from merton.world.arms import ARMS
from merton.world.cell import ARM_JOINTS, CellConfig, load_cell
from merton.world.geometry import Matrix, inverse, rotation_vector_of, transform

BOARD = CharucoBoard()
D455 = (-0.055, 0.065, 0.0004, -0.0006, -0.02)
"""Coefficients of the size a D455's own calibration has: 8 pixels in the corners of 1280 x 720."""
LENS = Lens(d455_intrinsics(1280, 720), D455)
PINHOLE = Lens(d455_intrinsics(1280, 720))
DISTANCE_M = {"wrist": (0.35, 0.55), "top": (0.45, 0.7), "side": (0.45, 0.7)}
ACCURACY_M, ACCURACY_DEG = 1e-3, 0.1
"""Required accuracy."""


def gap(found: Matrix, truth: Matrix) -> tuple[float, float]:
    """Distance [m] and angle [deg] between two poses."""
    difference = inverse(truth) @ found
    turned = np.degrees(np.linalg.norm(rotation_vector_of(difference)))
    return float(np.linalg.norm(difference[:3, 3])), float(turned)


def corners_of(board: CharucoBoard) -> NDArray[np.float64]:
    """Inner corners (n, 3) of a board [m]."""
    across, down = np.meshgrid(np.arange(1, board.columns), np.arange(1, board.rows))
    return np.column_stack((across.ravel(), down.ravel(), np.zeros(across.size))) * board.square_m


def seen(rig: Rig, rng: np.random.Generator, noise_px: float = 0.1, board: CharucoBoard = BOARD) -> list[Sighting]:
    """The corners that a detector with errors of `noise_px` finds, through the camera PINHOLE."""
    own, places, found = PINHOLE.intrinsics, corners_of(board), []
    for number, view in enumerate(rig.camera_from_board):
        pixels = np.array([own.project(view[:3, :3] @ place + view[:3, 3]) for place in places])
        pixels += rng.normal(0, noise_px, pixels.shape)
        found.append(Sighting(f"{number:02d}.png", (own.width, own.height), pixels, places, 0.3, 2.0))
    return found


def make_rig(camera: str, seed: int, **options: object) -> Rig:
    """A rig at the distances of its camera."""
    return rig(camera, PINHOLE, np.random.default_rng(seed), **{"distance_m": DISTANCE_M[camera], **options})


def distort(image: NDArray[np.uint8], name: str, level: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """The library's `distort` with the values as they are written: pixels of the picture itself."""
    return distort_by_width(image, name, level, rng, reference_width_px=image.shape[1])


@cache
def renderer() -> BoardRenderer:
    return BoardRenderer(BOARD, LENS.intrinsics, LENS.distortion)


@cache
def pictures(camera: str) -> tuple[Rig, list[NDArray[np.uint8]]]:
    """Fifteen pictures through the distorting lens, a little blurred, with noise; joints are off by 0.02 deg."""
    taken, rng = make_rig(camera, 11), np.random.default_rng(5)
    images = [renderer().render(view) for view in taken.camera_from_board]
    return taken, [distort(distort(image, "gaussian_blur", 3, rng), "white_noise", 2, rng) for image in images]


@cache
def found_in_pictures(camera: str) -> list[Sighting]:
    """The board in each of `pictures`."""
    found = [BOARD.find(image, f"{number:02d}.png") for number, image in enumerate(pictures(camera)[1])]
    assert all(found)
    return [item for item in found if item is not None]


def solve(taken: Rig, sightings: list[Sighting], lens: Lens = PINHOLE) -> Calibration:
    return calibrate(sightings, list(taken.base_from_tool0), lens, taken.parent)  # type: ignore[arg-type]


@pytest.mark.parametrize("camera", ["wrist", "top", "side"])
def test_a_known_place_is_recovered_from_pictures(camera: str) -> None:
    """To 1 mm and 0.1 deg, with lens distortion, blur, noise, and joints that are off by 0.02 deg each."""
    taken = pictures(camera)[0]
    result = solve(taken, found_in_pictures(camera), LENS)
    distance, angle = gap(result.parent_from_camera, taken.parent_from_camera)
    print(f"{camera}: {1000 * distance:.2f} mm, {angle:.3f} deg")
    assert distance < ACCURACY_M
    assert angle < ACCURACY_DEG
    assert gap(result.other_from_board, taken.other_from_board)[0] < ACCURACY_M
    assert result.warnings == ()
    assert 0.99 < result.board_scale < 1.01


SMALL_LENS = Lens(d455_intrinsics(424, 240), D455)


@cache
def small_pictures(camera: str) -> tuple[Rig, list[Sighting], NDArray[np.intp]]:
    """The rig, what was found in noisy pictures of 424 x 240 pixels, and in which; joints are off by 0.02 deg."""
    rng = np.random.default_rng(12)
    taken = rig(camera, SMALL_LENS, rng, distance_m=DISTANCE_M[camera])
    small = BoardRenderer(BOARD, SMALL_LENS.intrinsics, D455)
    images = [distort(small.render(view), "white_noise", 2, rng) for view in taken.camera_from_board]
    every = [BOARD.find(image, f"{number:02d}.png") for number, image in enumerate(images)]
    used = np.flatnonzero([item is not None for item in every])
    return taken, [item for item in every if item is not None], used


@pytest.mark.parametrize("camera", ["wrist", "top", "side"])
def test_a_known_place_is_recovered_from_small_pictures(camera: str) -> None:
    """To 1 mm and 0.1 deg at 424 x 240 too: at up to 0.7 m a square of the board has 11 pixels."""
    taken, sightings, used = small_pictures(camera)
    assert len(used) >= 12
    result = calibrate(sightings, list(taken.base_from_tool0[used]), SMALL_LENS, taken.parent)  # type: ignore[arg-type]
    distance, angle = gap(result.parent_from_camera, taken.parent_from_camera)
    print(f"{camera}: {1000 * distance:.2f} mm, {angle:.3f} deg")
    assert distance < ACCURACY_M
    assert angle < ACCURACY_DEG


def offsets_px(found: Sighting, view: Matrix, lens: Lens) -> NDArray[np.float64]:
    """How far corners (n, 2) were found from where they are."""
    turn = cv2.Rodrigues(view[:3, :3])[0]
    truth, _ = cv2.projectPoints(found.corners_m, turn, view[:3, 3], lens.matrix, np.array(lens.distortion))
    return found.corners_px - truth.reshape(-1, 2)


@pytest.mark.parametrize("width", [1280, 424])
def test_corners_are_found_to_a_fraction_of_a_pixel_without_bias(width: int) -> None:
    taken, sightings, used = small_pictures("wrist")
    if width == 1280:
        taken, sightings, used = pictures("wrist")[0], found_in_pictures("wrist"), np.arange(15)
    lens, views = (LENS if width == 1280 else SMALL_LENS), taken.camera_from_board[used]
    every = np.concatenate([offsets_px(one, view, lens) for one, view in zip(sightings, views, strict=True)])
    assert np.sqrt(np.mean(every**2)) < 0.03
    assert np.abs(every).max() < 0.2
    assert np.abs(every.mean(axis=0)).max() < 0.01


def test_corners_beside_something_that_hides_the_board_are_left_out() -> None:
    taken = pictures("wrist")[0]
    image = renderer().render(taken.camera_from_board[0])
    whole = BOARD.find(image)
    assert whole is not None
    hidden = image.copy()
    x, y = np.round(whole.corners_px[10]).astype(int)
    cv2.circle(hidden, (int(x) + 8, int(y)), 16, (90, 90, 90), -1)
    found = BOARD.find(hidden)
    assert found is not None
    assert len(whole.corners_px) / 2 < len(found.corners_px) < len(whole.corners_px)
    assert np.abs(offsets_px(found, taken.camera_from_board[0], LENS)).max() < 0.05


def test_corners_without_a_pose_are_refused_in_one_sentence() -> None:
    places = corners_of(BOARD)[:6]  # one row of the board
    row = Sighting("row.png", (1280, 720), 300 + 1000 * places[:, :2], places, 0.3, 2.0)
    with pytest.raises(InputError, match=r"row\.png: the pose of the board does not follow"):
        PINHOLE.camera_from_board(row)


@pytest.mark.parametrize("camera", ["wrist", "top"])
def test_without_errors_the_result_is_exact(camera: str) -> None:
    taken = make_rig(camera, 3, noise_rad=0.0, poses=6)
    result = solve(taken, seen(taken, np.random.default_rng(0), noise_px=0.0))
    assert gap(result.parent_from_camera, taken.parent_from_camera) < (1e-8, 1e-6)
    assert gap(result.other_from_board, taken.other_from_board) < (1e-8, 1e-6)
    assert result.error_px < 1e-5


def test_the_stated_deviation_is_the_error_that_is_made() -> None:
    """Over many calibrations, the root mean square of the error is that of the stated deviation, to a factor of 1.5."""
    errors, stated = [], []
    for seed in range(10):
        taken = make_rig("wrist", seed, poses=12)
        result = solve(taken, seen(taken, np.random.default_rng(seed)))
        distance, angle = gap(result.parent_from_camera, taken.parent_from_camera)
        errors.append((distance, angle))
        stated.append((result.position_deviation_m, np.degrees(result.angle_deviation_rad)))
    ratio = np.sqrt(np.mean(np.square(errors), axis=0) / np.mean(np.square(stated), axis=0))
    assert ((ratio > 1 / 1.5) & (ratio < 1.5)).all(), ratio
    assert np.max(errors, axis=0)[0] < ACCURACY_M


def test_the_same_pictures_give_the_same_bytes() -> None:
    taken = make_rig("wrist", 3)
    first, second = (solve(taken, seen(taken, np.random.default_rng(0))) for _ in range(2))
    assert first.parent_from_camera.tobytes() == second.parent_from_camera.tobytes()


@pytest.mark.parametrize("camera", ["wrist", "top"])
def test_a_wrong_pose_is_left_out_and_named(camera: str) -> None:
    taken = make_rig(camera, 4)
    poses, sightings = list(taken.base_from_tool0), seen(taken, np.random.default_rng(1))
    poses[6] = poses[6] @ transform((0.02, 0.0, 0.01), Rotation.from_rotvec([0.0, 0.05, 0.0]))
    poses[2] = poses[3]  # the picture was taken late
    result = calibrate(sightings, poses, PINHOLE, taken.parent)  # type: ignore[arg-type]
    assert [pose.name for pose in result.poses if pose.left_out] == ["02.png", "06.png"]
    assert any("02.png, 06.png" in warning for warning in result.warnings)
    assert gap(result.parent_from_camera, taken.parent_from_camera) < (ACCURACY_M, ACCURACY_DEG)


def test_a_board_printed_to_another_size_is_noticed() -> None:
    """A printer that fits A4 into its margins makes it some 3 % smaller."""
    taken = make_rig("wrist", 5)
    told = CharucoBoard(square_m=BOARD.square_m / 0.97)
    sightings = [replace(item, corners_m=corners_of(told)) for item in seen(taken, np.random.default_rng(2))]
    with pytest.raises(
        InputError, match=r"corners are off by 3\.\d px.* seem to be 0\.9(69|7\d) times as long as given"
    ):
        solve(taken, sightings)
    told = CharucoBoard(square_m=BOARD.square_m / 0.985)
    result = solve(taken, [replace(item, corners_m=corners_of(told)) for item in sightings])
    assert result.board_scale == pytest.approx(0.985, abs=0.003)
    assert any(f"{result.board_scale:.3f} times as long as given" in warning for warning in result.warnings)


def test_turns_about_one_axis_are_refused_and_small_ones_warned_of() -> None:
    taken, rng = make_rig("wrist", 6, noise_rad=0.0), np.random.default_rng(3)
    first = taken.base_from_tool0[0]

    def turned(vectors: NDArray[np.float64]) -> Rig:
        """The arm at its first pose, turned about its tool by rotation vectors (n, 3)."""
        moves = [transform(0.1 * vector, Rotation.from_rotvec(vector)) for vector in vectors]
        camera, board = taken.parent_from_camera, taken.other_from_board
        views = np.array([inverse(first @ move @ camera) @ board for move in moves])
        return replace(taken, camera_from_board=views)

    def poses(vectors: NDArray[np.float64]) -> list[Matrix]:
        return [first @ transform(0.1 * vector, Rotation.from_rotvec(vector)) for vector in vectors]

    one_axis = np.outer(np.linspace(-0.5, 0.5, 12), [0.0, 0.0, 1.0])
    with pytest.raises(InputError, match="turned about one axis at most"):
        calibrate(seen(turned(one_axis), rng), poses(one_axis), PINHOLE, "tool0")
    little = one_axis + np.outer(np.tile([0.05, -0.05], 6), [1.0, 0.0, 0.0])
    result = calibrate(seen(turned(little), rng), poses(little), PINHOLE, "tool0")
    assert any("too parallel" in warning for warning in result.warnings)


def test_few_small_and_blurred_pictures_are_named() -> None:
    taken = make_rig("wrist", 7, poses=4)
    sightings = seen(taken, np.random.default_rng(4))
    sightings[1], sightings[3] = replace(sightings[1], span=0.05), replace(sightings[3], edge_px=7.0)
    warnings = solve(taken, sightings).warnings
    assert any("only 4 images" in warning for warning in warnings)
    assert any("too small" in warning and warning.endswith("01.png") for warning in warnings)
    assert any(warning == "blurred: 03.png" for warning in warnings)


def test_blur_and_size_are_measured() -> None:
    """A sharp edge takes 2 pixels; a blur of sigma 2 at least 5, and motion in any direction is noticed too."""
    taken, rng = pictures("wrist")[0], np.random.default_rng(0)
    sharp = renderer().render(taken.camera_from_board[0])
    soft = cv2.GaussianBlur(sharp, (0, 0), 2.0)
    first, second = BOARD.find(sharp), BOARD.find(soft)
    assert first is not None
    assert second is not None
    assert first.edge_px < 3.2
    assert second.edge_px > 4.5
    moved = [BOARD.find(distort(sharp, "motion_blur", 4, rng)) for _ in range(3)]
    assert all(item is None or item.edge_px > 1.3 * first.edge_px for item in moved)
    extent = np.ptp(first.corners_px, axis=0).max()
    assert first.span == pytest.approx(extent / 1280)


def test_poses_and_pictures_that_cannot_be_used_are_refused_in_one_sentence() -> None:
    taken = make_rig("wrist", 8, poses=3)
    sightings, poses = seen(taken, np.random.default_rng(5)), list(taken.base_from_tool0)
    with pytest.raises(InputError, match="needs at least 3 images that show the board, better 12, got 2"):
        calibrate(sightings[:2], poses[:2], PINHOLE, "tool0")
    with pytest.raises(InputError, match="one pose for each image, got 2 for 3"):
        calibrate(sightings, poses[:2], PINHOLE, "tool0")
    with pytest.raises(InputError, match=r"00\.png: the pose of the arm is no rigid transform"):
        calibrate(sightings, [2 * poses[0], *poses[1:]], PINHOLE, "tool0")
    with pytest.raises(InputError, match=r"02\.png: the pose of the arm is no rigid transform"):
        calibrate(sightings, [*poses[:2], np.full((3, 3), np.nan)], PINHOLE, "tool0")
    with pytest.raises(InputError, match=r"00\.png has 1280 x 720 pixels, the intrinsics are for 640 x 480"):
        calibrate(sightings, poses, Lens(d455_intrinsics(640, 480)), "tool0")
    rolled = [replace(item, corners_px=np.roll(item.corners_px, 5, axis=0)) for item in sightings]
    with pytest.raises(InputError, match=r"00\.png: the corners do not lie as on the board that was named"):
        calibrate(rolled, poses, PINHOLE, "tool0")
    with pytest.raises(InputError, match="4 or 5 finite coefficients"):
        Lens(d455_intrinsics(640, 480), (0.1,))
    for columns, rows, square in ((2, 5, 0.03), (11, 10, 0.03), (7, 5, 0.0), (7, 5, 36.0), (7, 5, 3.6e-5)):
        with pytest.raises(InputError, match="board"):
            CharucoBoard(columns, rows, square)


def test_three_poses_are_enough_and_say_nothing_of_their_deviation() -> None:
    taken = make_rig("wrist", 8, poses=3, noise_rad=0.0)
    result = solve(taken, seen(taken, np.random.default_rng(5), noise_px=0.0))
    assert gap(result.parent_from_camera, taken.parent_from_camera)[0] < 1e-6
    assert np.isnan(result.position_deviation_m)


def test_intrinsics_that_do_not_fit_the_pictures_are_noticed() -> None:
    sightings = found_in_pictures("wrist")
    right = check_lens(sightings, LENS)
    assert right.warning == ""
    assert abs(right.fitted.intrinsics.fx - 640) < 4 * right.focal_deviation_px[0]
    own = LENS.intrinsics
    wrong = check_lens(sightings, Lens(replace(own, fx=660.0, cx=own.cx + 15), D455))
    assert "the intrinsics do not fit" in wrong.warning
    assert wrong.fitted.intrinsics.fx == pytest.approx(640, abs=5)
    with pytest.raises(InputError, match="at least 3 images"):
        check_lens(sightings[:2], LENS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve of the wrist's pictures as a person would bring them home, and one that shows nothing."""
    place = tmp_path_factory.mktemp("wrist")
    taken, images = pictures("wrist")
    nothing = np.full((720, 1280, 3), 90, np.uint8)
    for number, image in enumerate([*images[:12], nothing]):
        assert add_shot(place, image, taken.joints_rad[number], LENS) == place / f"{number:04d}.png"
    with pytest.raises(InputError, match="has other optics"):
        add_shot(place, nothing, taken.joints_rad[0], PINHOLE)
    return place


def run(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """`merton ...` in this process; the exit code."""
    monkeypatch.setattr("sys.argv", ["merton", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_command_finds_the_place(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("calibrate", "solve", str(folder), "--camera", "wrist", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    truth = pictures("wrist")[0].parent_from_camera
    written = (folder / "wrist_pose.yaml").read_text(encoding="utf-8")
    assert written in said
    assert gap(camera_of(written, "wrist"), truth) < (ACCURACY_M, ACCURACY_DEG)
    nominal = load_cell().camera("wrist").parent_from_camera
    distance, angle = gap(nominal, camera_of(written, "wrist"))
    assert f"That is {1000 * distance:.1f} mm and {angle:.2f} deg from where config/cell.yaml has it." in said
    assert "the board was not found in 0012.png" in said


def camera_of(lines: str, camera: str) -> Matrix:
    """The pose of a camera in a cell whose line for it was replaced."""
    raw = load_cell().model_dump()
    raw["walls"] = {wall.pop("name"): wall for wall in raw["walls"]}
    raw["cameras"]["named"][camera] = YAML(typ="safe").load(lines)[camera]
    return CellConfig.model_validate(raw).camera(camera).parent_from_camera


@pytest.mark.parametrize("seed", range(3))
def test_the_line_for_the_cell_keeps_the_pose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pose = transform(rng.uniform(-1, 1, 3), Rotation.random(rng=rng))
    assert gap(camera_of(camera_yaml("side", "base_link", pose), "side"), pose) < (2e-6, 5e-4)


def test_poses_may_be_given_as_such(folder: Path, tmp_path: Path) -> None:
    from merton.execution.kinematics import ROBOTS
    from merton.world.geometry import quaternion_of

    joints = read_poses(folder, ARMS["UR5"], ROBOTS["UR5"].forward)
    lines = ["image,x_m,y_m,z_m,qx,qy,qz,qw"]
    for image, pose in joints:
        (tmp_path / image.name).symlink_to(image)
        lines.append(",".join([image.name, *(f"{value:.12g}" for value in (*pose[:3, 3], *quaternion_of(pose)))]))
    (tmp_path / "poses.csv").write_text("\n".join(lines), encoding="utf-8")
    again = read_poses(tmp_path, ARMS["UR5"], lambda angles: pytest.fail("there are no joints"))
    assert [file.name for file, _ in again] == [file.name for file, _ in joints]
    for (_, one), (_, other) in zip(joints, again, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    assert read_lens(folder) == LENS
    assert read_lens(tmp_path) is None


@pytest.mark.parametrize(
    ("poses", "sentence"),
    [
        (None, "cannot read"),
        ("image\na.png\n", "its first line must name the columns image and either shoulder_pan_joint"),
        (f"image,{','.join(ARM_JOINTS)}\n", "has no poses"),
        (f"image,{','.join(ARM_JOINTS)}\na.png,0,0,0,0,0,x\n", "line 2: expected 6 finite numbers"),
        (f"image,{','.join(ARM_JOINTS)}\na.png,0,0,0,0,nan,0\n", "line 2: expected 6 finite numbers"),
        ("image,x_m,y_m,z_m,qx,qy,qz,qw\na.png,0,0,0,0,0,0,0\n", "line 2: expected 7 finite numbers"),
        (f"image,{','.join(ARM_JOINTS)}\nb.png,0,0,0,0,0,0\n", "line 2: there is no picture"),
    ],
)
def test_a_folder_that_is_wrong_is_refused_in_one_sentence(tmp_path: Path, poses: str | None, sentence: str) -> None:
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((48, 64, 3), np.uint8))
    if poses is not None:
        (tmp_path / "poses.csv").write_text(poses, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(sentence)):
        read_poses(tmp_path, ARMS["UR5"], lambda angles: np.eye(4))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("width: 640", "camera.yaml, line 1: height: is missing (and 4 more)"),
        ("width: [", "camera.yaml, line 1: "),
        (
            "width: 640\nheight: 480\nfx: 0\nfy: 1\ncx: 1\ncy: 1",
            "camera.yaml, line 3: fx: must be more than 0",
        ),
        ("width: 64\nheight: 48\nfx: 1\nfy: 1\ncx: 1\ncy: 1\ndistortion: [1]", "4 or 5 finite coefficients"),
    ],
)
def test_optics_that_are_wrong_are_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "camera.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(sentence)):
        read_lens(tmp_path)


def test_pictures_without_the_board_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"is in none of the 1 pictures; they show no 4X4_50 marker"):
        find_board(BOARD, [folder / "0012.png"])
    with pytest.raises(InputError, match=r"markers, but not laid out as on this board: are --columns and --rows right"):
        find_board(CharucoBoard(5, 7), [folder / f"{number:04d}.png" for number in range(3)])


def test_mistakes_on_the_command_line_end_in_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("calibrate", "solve", str(folder), "--camera", "left", monkeypatch=monkeypatch) == 2
    assert "unknown camera 'left'; choose one of: side, top, wrist" in capsys.readouterr().err
    assert run("calibrate", "board", "--out", "board.doc", monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err.count("\n") == 1
