"""Hand-eye calibration in the simulated cell: its cameras stand elsewhere than `config/cell.yaml` says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="MuJoCo is not installed (the extra sim)")
from board_in_cell import BoardInCell
from calibration_rig import rig

from merton.calibration import CharucoBoard, Lens, calibrate
from merton.cli.calibrate import camera_yaml
from merton.errors import MissingDependencyError
from merton.perception.camera import d455_intrinsics
from merton.perception.distortion import distort
from merton.world.cell import cell_file, load_cell
from merton.world.geometry import inverse, rotation_vector_of

BOARD = CharucoBoard()


@pytest.mark.usefixtures("renders")
@pytest.mark.parametrize(
    ("camera", "distance_m"), [("wrist", (0.35, 0.55)), ("top", (0.5, 0.75)), ("side", (0.5, 0.75))]
)
def test_a_camera_that_was_moved_is_found(camera: str, distance_m: tuple[float, float], tmp_path: Path) -> None:
    """To 1 mm and 0.1 deg, partly hidden by the gripper, with noise, and joints that are off by 0.02 deg each."""
    lens = Lens(d455_intrinsics(1280, 720))
    taken = rig(camera, lens, np.random.default_rng(2), distance_m=distance_m)
    line = camera_yaml(camera, taken.parent, taken.parent_from_camera)
    moved, count = re.subn(
        rf"^  {camera}: .*$", "  " + line.strip(), cell_file().read_text("utf-8"), flags=re.MULTILINE
    )
    assert count == 1
    (tmp_path / "cell.yaml").write_text(moved, encoding="utf-8")
    truth = load_cell(tmp_path / "cell.yaml").camera(camera).parent_from_camera
    try:
        cell = BoardInCell(BOARD, tmp_path / "cell.yaml")
    except MissingDependencyError as error:
        pytest.skip(str(error))
    rng, sightings, poses = np.random.default_rng(3), [], []
    for joints, board, said in zip(taken.true_joints_rad, taken.base_from_board, taken.base_from_tool0, strict=True):
        image = cell.render(camera, joints, board)
        image = distort(image, "white_noise", 2, rng, reference_width_px=image.shape[1])
        if found := BOARD.find(image, f"{len(poses):02d}"):
            sightings.append(found)
            poses.append(said)
    cell.close()
    assert len(sightings) >= 12
    result = calibrate(sightings, poses, lens, taken.parent)  # type: ignore[arg-type]
    gap = inverse(truth) @ result.parent_from_camera
    distance, angle = np.linalg.norm(gap[:3, 3]), np.degrees(np.linalg.norm(rotation_vector_of(gap)))
    print(f"{camera}: {1000 * distance:.2f} mm, {angle:.3f} deg from {len(poses)} pictures")
    assert distance < 1e-3
    assert angle < 0.1
    assert not any(pose.left_out for pose in result.poses)
