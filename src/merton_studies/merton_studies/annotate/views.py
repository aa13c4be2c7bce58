"""The observation for a policy from a still image: the image, a calibration, and an arm at home.

An image of a dataset comes without a cell. Ours: the arm stands at home with the gripper open (`config/cell.yaml`), and
the image has the pose and the field of view of one of the cell's cameras: the true camera if it is known, else the one
with a similar perspective.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from merton.execution.kinematics import base_from_tcp, kinematics_of
from merton.perception.dataset import layout
from merton.perception.dataset.tables import read_table
from merton.world.cell import CellConfig, load_cell
from merton.world.geometry import Matrix
from merton.world.observation import CameraView, Image, Intrinsics, Observation
from merton_studies.annotate.dataset import ReferenceImage

DEFAULT_CAMERAS = {"first_person": "wrist", "third_person": "top"}
"""The camera in place of the unknown one of an image from outside the cell, by perspective."""


def camera_of(reference: ReferenceImage) -> str:
    """The camera of a reference, or the default for its perspective.

    The ids of images of the cell end in the camera's name, as written by `merton dataset sample` ("test_07_side").
    """
    camera = reference.id.rpartition("_")[2]
    if reference.domain == "simulation" and not reference.scene and camera in _cell().camera_names:
        return camera
    return DEFAULT_CAMERAS.get(reference.perspective, "top")


def scene_of(reference: ReferenceImage) -> str:
    """The scene that a reference shows: its id, of images of the cell without the camera ("test_07").

    Of an imported dataset, the scene that it names.
    """
    if reference.scene:
        return reference.scene
    scene, _, camera = reference.id.rpartition("_")
    return scene if camera == camera_of(reference) and reference.domain == "simulation" else reference.id


def scenes_of(dataset: Path) -> dict[str, str]:
    """The scene of every reference of a dataset's folder, by id; raises InputError if its table cannot be read."""
    rows = read_table(dataset / layout.REFERENCE_TABLE)
    return {row["id"]: scene_of(ReferenceImage.of_row(row)) for row in rows}


def observation(image: Image, taken_by: str, cameras: tuple[str, ...], instruction: str, seed: int) -> Observation:
    """The observation of an image.

    Args:
        image: (height, width, 3) uint8 RGB.
        taken_by: camera of the cell whose calibration is used.
        cameras: names of the views that the policy uses. The first is the image; the others are black, of the same
            size, since a second copy would show a place that does not exist.
        instruction: the task in words.
        seed: the noise seed.
    """
    cell = _cell()
    height, width = image.shape[:2]
    views = {}
    for index, name in enumerate(cameras):
        camera = taken_by if index == 0 or name not in cell.camera_names else name
        color = image if index == 0 else np.zeros_like(image)
        views[name] = CameraView(name, color, None, _intrinsics(width, height), _camera_pose(camera))
    home = cell.home_joints
    return Observation(views, home, base_from_tcp(home, cell), 1.0, instruction, noise_seed=seed)


def description(taken_by: str, cameras: tuple[str, ...], size_px: tuple[int, int]) -> dict[str, Any]:
    """All of `observation` but pixels, instruction and seed, for the key of an answer.

    Rounded to 9 decimals: the last bit of a cosine differs between machines.
    """
    blank = np.zeros((size_px[1], size_px[0], 3), np.uint8)
    blank_observation = observation(blank, taken_by, cameras, "", 0)
    return {
        "views": [
            [name, list(vars(view.lens).values()), _rounded(view.pose)]
            for name, view in blank_observation.views.items()
        ],
        "joints_rad": _rounded(blank_observation.joints),
        "base_from_tcp": _rounded(blank_observation.tool),
        "gripper_open": blank_observation.gripper_open,
    }


def _intrinsics(width: int, height: int) -> Intrinsics:
    """The cell's cameras at another image size: the same horizontal field of view, square pixels."""
    cell = _cell().intrinsics
    scale = width / cell.width
    return Intrinsics(width, height, cell.fx * scale, cell.fy * scale, (width - 1) / 2, (height - 1) / 2)


@lru_cache
def _cell() -> CellConfig:
    return load_cell()


@lru_cache
def _camera_pose(camera: str) -> Matrix:
    """Pose of a camera in `base_link` with the arm at home."""
    cell = _cell()
    return cell.base_from_camera(camera, kinematics_of(cell).forward(cell.home_joints))


def _rounded(values: np.ndarray) -> Any:
    return (np.asarray(values, np.float64).round(9) + 0.0).tolist()  # + 0.0: no negative zeros
