"""One executed trial as a demonstration: states, actions and pictures of each camera at an even rate, kept as files
until the dataset is put together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.decision.models.convention_entry import ConventionEntry, Gripper, Joints
from merton.errors import InfrastructureError
from merton.execution.kinematics import base_from_tcp
from merton.files import written_whole
from merton.recording.video import write_video
from merton.world.cell import ARM_JOINTS, CellConfig
from merton.world.geometry import Array, quaternion_of
from merton.world.observation import Image
from merton_studies.lerobot.layout import ACTION, STATE

TOOL = "tcp_pose"
_JOINTS_AND_OPENING = (*(f"{joint}_rad" for joint in ARM_JOINTS), "gripper_opening_m")
VECTORS = {
    STATE: _JOINTS_AND_OPENING,
    ACTION: _JOINTS_AND_OPENING,
    TOOL: ("x_m", "y_m", "z_m", "quaternion_x", "quaternion_y", "quaternion_z", "quaternion_w"),
}
"""Feature to the names of its numbers, with their units; `tcp_pose` is in `base_link`."""
KEY_EVERY = 10
"""Each such picture of a video can be decoded alone: a loader asks for pictures in any order. With every second one, as
LeRobot writes them, files had 2.2 times the size."""
_ARRAYS = "demonstration.npz"


@dataclass(frozen=True)
class Demonstration:
    """A trial's frames but for the pictures.

    Attributes:
        instruction: the task in words.
        vectors: feature of `VECTORS` to (n, 7) float32.
        shades: camera to (3, 256), how many values of each brightness red, green and blue have over all pictures.
    """

    instruction: str
    vectors: Mapping[str, NDArray[np.float32]]
    shades: Mapping[str, NDArray[np.int64]]

    def __len__(self) -> int:
        return len(self.vectors[STATE])


def ticks(duration_s: float, fps: int) -> int:
    """Frames of a motion of so many seconds, the one at its beginning and the one at or after its end among them."""
    return math.ceil(duration_s * fps - 1e-6) + 1


def vectors_of(
    joints_rad: ArrayLike, opening_m: ArrayLike, goal_m: ArrayLike, cell: CellConfig
) -> dict[str, NDArray[np.float32]]:
    """State, action and tool of each frame.

    The action of a frame is the arm's state at the next frame, to which it was led, and the opening that is commanded
    there; the last frame's action is to stay. Ours: the policies' own actions are chunks of steps of any length, which
    no even rate fits; the measured opening would not tell a policy to hold on to a thing.

    Args:
        joints_rad: (n, 6) of the arm.
        opening_m: (n,) distance between the finger pads.
        goal_m: (n,) the opening that was commanded last.
        cell: of the arm and the gripper.
    """
    joints, opening, goal = (np.asarray(values, dtype=float) for values in (joints_rad, opening_m, goal_m))
    following = np.minimum(np.arange(1, len(joints) + 1), len(joints) - 1)
    rows = {
        STATE: np.column_stack([joints, opening]),
        ACTION: np.column_stack([joints[following], goal[following]]),
        TOOL: _tool_poses(joints, cell),
    }
    return {name: values.astype(np.float32) for name, values in rows.items()}


def convention_of_export(cell: CellConfig, arm: str, fps: int, source: str) -> ConventionEntry:
    """The meaning of the states and actions of `vectors_of`, by which a policy that learned them is understood.

    Args:
        cell: of the arm and the gripper.
        arm: the arm whose joints they are, which may not be the one of the cell as it is configured now.
        fps: frames a second.
        source: the run or recording.
    """
    stroke_m = cell.gripper.stroke
    return ConventionEntry(
        name="export",
        meaning=f"six absolute joint angles of a {arm} [rad], the gripper's opening [m], {stroke_m:g} open; {fps} Hz",
        source=f"merton export lerobot, {source}",
        rate_hz=float(fps),
        joints=Joints(arm=arm, are="absolute", tool_m=round(float(cell.tool0_from_tcp[2, 3]), 9)),
        gripper=Gripper(closed=0.0, open=stroke_m),
    )


def _tool_poses(joints_rad: Array, cell: CellConfig) -> Array:
    """(n, 7) position [m] and quaternion; its sign, which means nothing, is such that no number jumps."""
    poses = [base_from_tcp(joints, cell) for joints in joints_rad]
    turns = np.array([quaternion_of(pose) for pose in poses])
    turns[0] *= np.sign(turns[0][np.abs(turns[0]).argmax()])
    for before, turn in pairwise(turns):
        turn *= -1 if before @ turn < 0 else 1
    return np.column_stack([[pose[:3, 3] for pose in poses], turns])


def keep(
    folder: Path,
    instruction: str,
    vectors: Mapping[str, NDArray[np.float32]],
    pictures: Mapping[str, Iterable[Image]],
    fps: int,
) -> None:
    """Write a demonstration into a folder of its own; the file that makes it whole comes last.

    Args:
        pictures: camera to as many pictures as there are frames.

    Raises:
        InfrastructureError: a file cannot be written.
        MissingDependencyError: PyAV is not installed.
    """
    shades = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for camera, images in pictures.items():
            shades[camera] = np.zeros((3, 256), np.int64)
            write_video(video(folder, camera), _counted(images, shades[camera]), fps, KEY_EVERY)
        with written_whole(folder / _ARRAYS) as file:
            arrays = {f"shades {camera}": values for camera, values in shades.items()} | dict(vectors)
            np.savez(file, instruction=np.array(instruction), **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise InfrastructureError(f"cannot write into {folder}: {error.strerror or error}") from None


def is_kept(folder: Path) -> bool:
    """Whether a whole demonstration is in a folder."""
    return (folder / _ARRAYS).is_file()


def kept(folder: Path, cameras: Iterable[str]) -> Demonstration:
    """The demonstration in a folder."""
    with np.load(folder / _ARRAYS) as arrays:
        shades = {camera: arrays[f"shades {camera}"] for camera in cameras}
        return Demonstration(str(arrays["instruction"]), {name: arrays[name] for name in VECTORS}, shades)


def video(folder: Path, camera: str) -> Path:
    """The film of a camera in a demonstration's folder."""
    return folder / f"{camera}.mp4"


def _counted(images: Iterable[Image], shades: NDArray[np.int64]) -> Iterator[Image]:
    """The images as they are; adds their values to `shades`."""
    for image in images:
        for channel in range(3):
            shades[channel] += np.bincount(image[..., channel].ravel(), minlength=256)
        yield image
