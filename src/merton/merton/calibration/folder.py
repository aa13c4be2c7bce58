"""The folder a calibration is computed from: pictures, `poses.csv` (see `poses`), and `camera.yaml` with the optics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from merton.calibration.charuco import DICTIONARY, CharucoBoard, Sighting
from merton.calibration.lens import Lens
from merton.calibration.poses import POSES_FILE
from merton.config import Model, load
from merton.errors import InputError
from merton.perception.images import read_image, write_image
from merton.results.tables import file_bytes, utf8_text
from merton.world.cell import ARM_JOINTS, Number, Positive
from merton.world.observation import Image, Intrinsics

CAMERA_FILE = "camera.yaml"


class _CameraFile(Model):
    width: Annotated[int, Field(gt=0)]
    height: Annotated[int, Field(gt=0)]
    fx: Positive
    fy: Positive
    cx: Number
    cy: Number
    distortion: tuple[Number, ...] = ()


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
    lines = utf8_text(str(file), file_bytes(file)).splitlines() if file.exists() else [header]
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

    A board with an even number of rows is that of OpenCV before 4.6 if more pictures show it in that layout.

    Raises:
        InputError: a picture cannot be read, or none of them shows the board.
    """
    legacy = replace(board, legacy=True) if board.rows % 2 == 0 else None
    markers, sightings, of_legacy = 0, list[Sighting | None](), list[Sighting | None]()
    for file in files:
        image = read_image(file)
        sightings.append(board.find(image, file.name))
        of_legacy.append(legacy.find(image, file.name) if legacy is not None and sightings[-1] is None else None)
        if sightings[-1] is None and of_legacy[-1] is None:
            markers += board.count_markers(image)
    if _found(of_legacy) > _found(sightings):
        sightings = of_legacy
    if not any(sightings):
        why = (
            f"they show {markers} markers, but not laid out as on this board: are --columns and --rows right, and are "
            "the markers three quarters of a square wide?"
            if markers
            else f"they show no {DICTIONARY} marker: is it this board, and large, sharp and bright enough?"
        )
        raise InputError(f"the board ({board}) is in none of the {len(files)} pictures; {why}")
    return sightings


def _found(sightings: Sequence[Sighting | None]) -> int:
    return sum(sighting is not None for sighting in sightings)
