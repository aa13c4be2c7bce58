"""The folder a calibration is computed from: pictures, `poses.csv`, and `camera.yaml` with the optics.

`poses.csv` has a header and a line for each picture. Its columns are `image` and either the six joints, named as in the
URDF [rad], or `x_m`, `y_m`, `z_m`, `qx`, `qy`, `qz`, `qw`: position and quaternion of `tool0` in `base_link`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from merton.calibration.charuco import DICTIONARY, CharucoBoard, Sighting
from merton.calibration.lens import Lens
from merton.config import Model, load
from merton.errors import InputError
from merton.perception.images import read_image, write_image
from merton.world.cell import ARM_JOINTS, Number, Positive
from merton.world.geometry import Array, Matrix, from_quaternion
from merton.world.observation import Image, Intrinsics

POSES_FILE, CAMERA_FILE = "poses.csv", "camera.yaml"
POSE_COLUMNS = ("x_m", "y_m", "z_m", "qx", "qy", "qz", "qw")


class _CameraFile(Model):
    width: Annotated[int, Field(gt=0)]
    height: Annotated[int, Field(gt=0)]
    fx: Positive
    fy: Positive
    cx: Number
    cy: Number
    distortion: tuple[Number, ...] = ()


def read_poses(folder: Path, forward: Callable[[Array], Matrix]) -> list[tuple[Path, Matrix]]:
    """The pictures of a folder, each with the pose (4, 4) of `tool0` in `base_link`, in the order of `poses.csv`.

    Args:
        folder: where `poses.csv` and the pictures are.
        forward: `base_from_tool0` of joint angles (6,) [rad]; used only if the file has joints.

    Raises:
        InputError: a file is missing, or a line is wrong; the text names it.
    """
    file = folder / POSES_FILE
    try:
        with open(file, encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read {str(file)!r}: {getattr(error, 'strerror', None) or error}") from None
    poses: list[tuple[Path, Matrix]] = []
    for number, row in enumerate(rows, start=2):
        columns = next((c for c in (ARM_JOINTS, POSE_COLUMNS) if set(c) <= set(row)), None)
        if columns is None or "image" not in row:
            raise InputError(
                f"{file}: its first line must name the columns image and either {', '.join(ARM_JOINTS)} or "
                f"{', '.join(POSE_COLUMNS)}"
            )
        try:
            values = np.array([float(row[column]) for column in columns])
        except (TypeError, ValueError):
            values = np.array([np.nan])
        if not np.isfinite(values).all() or (columns == POSE_COLUMNS and np.linalg.norm(values[3:]) < 0.5):
            raise InputError(
                f"{file}, line {number}: expected {len(columns)} finite numbers that are a pose, got {row}"
            )
        image = folder / str(row["image"])
        if not image.is_file():
            raise InputError(f"{file}, line {number}: there is no picture {str(image)!r}")
        poses.append((image, forward(values) if columns == ARM_JOINTS else from_quaternion(values[:3], values[3:])))
    if not poses:
        raise InputError(f"{file} has no poses")
    return poses


def add_shot(folder: Path, image: Image, joints_rad: Sequence[float], lens: Lens) -> Path:
    """Add a picture (height, width, 3) uint8 RGB and the arm's joint angles (6,) [rad]; returns the picture's file.

    Begins the folder, `poses.csv` and `camera.yaml` if they are not there.

    Raises:
        InputError: the folder is of another camera, has poses that are not joint angles, or cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    present, header = read_lens(folder), ",".join(("image", *ARM_JOINTS))
    if present is not None and present != lens:
        raise InputError(f"{folder / CAMERA_FILE} has other optics: take every camera into a folder of its own")
    file = folder / POSES_FILE
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else [header]
    if lines[:1] != [header]:
        raise InputError(f"{file} has other columns than {header}: take pictures into a new folder")
    picture = folder / f"{len(lines) - 1:04d}.png"
    try:
        write_image(image, picture)
        if present is None:
            _write_lens(folder, lens)
        lines.append(",".join([picture.name, *(f"{angle:.9f}" for angle in joints_rad)]))
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write into {str(folder)!r}: {error.strerror}") from None
    return picture


def read_lens(folder: Path) -> Lens | None:
    """The optics in `camera.yaml`; None if there is no such file. Raises InputError if it is wrong."""
    file = folder / CAMERA_FILE
    if not file.exists():
        return None
    raw = load(file, _CameraFile)
    return Lens(Intrinsics(raw.width, raw.height, raw.fx, raw.fy, raw.cx, raw.cy), raw.distortion)


def _write_lens(folder: Path, lens: Lens) -> None:
    values = asdict(lens.intrinsics) | {"distortion": list(lens.distortion)}
    (folder / CAMERA_FILE).write_text("".join(f"{key}: {value}\n" for key, value in values.items()), encoding="utf-8")


def find_board(board: CharucoBoard, files: Sequence[Path]) -> list[Sighting | None]:
    """The board in every picture, None where it is not found.

    Raises:
        InputError: a picture cannot be read, or none of them shows the board.
    """
    markers, sightings = 0, []
    for file in files:
        image = read_image(file)
        sightings.append(board.find(image, file.name))
        if sightings[-1] is None:
            markers += board.count_markers(image)
    if not any(sightings):
        why = (
            f"they show {markers} markers, but not laid out as on this board: are --columns and --rows right?"
            if markers
            else f"they show no {DICTIONARY} marker: is it this board, and large, sharp and bright enough?"
        )
        raise InputError(f"the board ({board}) is in none of the {len(files)} pictures; {why}")
    return sightings
