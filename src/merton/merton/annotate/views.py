"""What a policy is shown of a still image: the picture, a calibration, and an arm at home.

A policy decides in a cell; an image of a dataset comes without one. Ours: the arm stands at home with the gripper open
(`config/cell.yaml`), and the picture was taken by one of the cell's cameras, with its place and its field of view. It
is the camera that took it, where that is known, else one that would see things the same way.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from merton.annotate.dataset import Reference
from merton.execution.kinematics import UR5, base_from_tcp
from merton.world.cell import CellConfig, load_cell
from merton.world.geometry import Matrix
from merton.world.observation import CameraView, Image, Intrinsics, Observation

DEFAULT_CAMERAS = {"first_person": "wrist", "third_person": "top"}
"""Perspective of an image that was not taken in the cell to the camera whose place stands for the unknown one."""


def camera_of(reference: Reference) -> str:
    """The camera that is taken to have seen a reference.

    Pictures of the cell say which in their name, as `merton dataset sample` writes them ("cell_07_side"); any other
    image has a default, by its perspective.
    """
    camera = reference.id.rpartition("_")[2]
    if reference.domain == "simulation" and camera in _cell().camera_names:
        return camera
    return DEFAULT_CAMERAS.get(reference.perspective, "top")


def observation(image: Image, taken_by: str, cameras: tuple[str, ...], instruction: str, seed: int) -> Observation:
    """What a policy is shown.

    Args:
        image: (height, width, 3) uint8 RGB.
        taken_by: camera of the cell that lends its calibration.
        cameras: names of the views the policy looks at. The first is the picture; any further one is black, of the same
            size: there is nothing to see there, and a second copy would show the policy a place that does not exist.
        instruction: the task in words.
        seed: the noise seed.
    """
    cell = _cell()
    height, width = image.shape[:2]
    views = {}
    for index, name in enumerate(cameras):
        place = taken_by if index == 0 or name not in cell.camera_names else name
        color = image if index == 0 else np.zeros_like(image)
        views[name] = CameraView(name, color, None, _intrinsics(width, height), _place(place))
    home = cell.home_joints
    return Observation(views, home, base_from_tcp(home, cell.tool0_from_tcp), 1.0, instruction, noise_seed=seed)


def described(taken_by: str, cameras: tuple[str, ...], size_px: tuple[int, int]) -> dict[str, Any]:
    """All of `observation` but pixels, instruction and seed, as it goes into the key of an answer.

    Rounded to a nanometre: the last bit of a cosine differs between machines.
    """
    blank = np.zeros((size_px[1], size_px[0], 3), np.uint8)
    seen = observation(blank, taken_by, cameras, "", 0)
    return {
        "views": [
            [name, list(vars(view.intrinsics).values()), _rounded(view.base_from_camera)]
            for name, view in seen.views.items()
        ],
        "joints_rad": _rounded(seen.joints_rad),
        "base_from_tcp": _rounded(seen.base_from_tcp),
        "gripper_open": seen.gripper_open,
    }


def _intrinsics(width: int, height: int) -> Intrinsics:
    """The cell's cameras with another number of pixels: the same horizontal field of view, square pixels."""
    cell = _cell().intrinsics
    scale = width / cell.width
    return Intrinsics(width, height, cell.fx * scale, cell.fy * scale, (width - 1) / 2, (height - 1) / 2)


@lru_cache
def _cell() -> CellConfig:
    return load_cell()


@lru_cache
def _place(camera: str) -> Matrix:
    """Pose of a camera in `base_link` with the arm at home."""
    cell = _cell()
    return cell.base_from_camera(camera, UR5.forward(cell.home_joints))


def _rounded(values: np.ndarray) -> Any:
    return (np.asarray(values, np.float64).round(9) + 0.0).tolist()  # + 0.0: no negative zeros
