"""The likely mistakes in poses that do not fit the pictures, and in places where no camera stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from merton.calibration.charuco import Sighting
from merton.calibration.lens import Lens
from merton.calibration.problem import Parent, Problem
from merton.errors import InputError
from merton.world.cell import CellConfig
from merton.world.geometry import Array, Matrix, from_quaternion, from_rpy, inverse, quaternion_of, rotation_vector_of

MOST_ERROR_RAD = 3 / 640
MOST_ERROR_PX = (1.0, 3.0)
"""Corners may be off by this angle, and by 1 to 3 px. Ours: joints that are off by 0.1 deg leave as much, 2.6 px at a
focal length of 640 px; every mistake below leaves 50 px and more."""
FITTED = 2
"""So many mistakes are tried to the end: those that the closed form explains best."""
SCALES = (0.05, 20.0)
"""Sizes of the board, as multiples of the given one, that a wrong length of its squares may explain."""
SAME_PLACE = (0.1, float(np.radians(20.0)))
"""A camera this near to a place stands there. Ours: a tripod that was moved a little; cameras of a cell are farther
apart."""
ALONG_TOOL = (0.02, 0.03, float(np.radians(5.0)))
"""Beside the axis of the tool at most, along it at least [m], and turned by at most: then the length of a tool explains
a place. Ours: tools begin at 30 mm, and a place that was measured with a ruler is not off along one axis alone."""
OTHER_PLACE = (0.15, float(np.radians(45.0)))
"""A camera this far from its place in the cell does not stand there any more."""

BASE_LINK_FROM_BASE = from_rpy((0.0, 0.0, 0.0), (0.0, 0.0, np.pi))
"""UR's own frame `base`, in which its controller reports poses: half a turn about z."""


def most_error_px(lens: Lens) -> float:
    """The error of all corners, root mean square [px], beyond which poses do not belong to pictures."""
    return float(np.clip(MOST_ERROR_RAD * lens.intrinsics.fx, *MOST_ERROR_PX))


@dataclass(frozen=True)
class _Guess:
    """Poses as they would be without a mistake, and the mistake's name."""

    sentence: str
    sightings: Sequence[Sighting]
    poses: Sequence[Matrix]


def likely_mistake(sightings: Sequence[Sighting], base_from_tool0: Sequence[Matrix], lens: Lens, parent: Parent) -> str:
    """The mistake without which poses fit pictures, as part of a sentence; questions if none of those known does.

    Each is undone in turn, and the pictures are fitted again. Arguments as those of `hand_eye.calibrate`.
    """
    most = most_error_px(lens)
    begun = []
    for guess in _guesses(sightings, base_from_tool0, parent):
        problem = Problem(guess.sightings, guess.poses, lens, parent)
        start = problem.start()
        begun.append((float(np.median(problem.errors_px(start))), guess.sentence, problem, start))
    begun.sort(key=lambda one: one[0])
    for _, sentence, problem, start in begun[:FITTED]:
        _, error = _fitted(problem, start)
        if error <= most:
            return f"{sentence} ({error:.1f} px then)"
    problem = Problem(sightings, base_from_tool0, lens, parent)
    x, error = _fitted(problem, np.append(problem.start(), 1.0))
    if error <= most and SCALES[0] < x[12] < SCALES[1]:
        return f"the squares seem to be {x[12]:.3f} times as long as given: measure them, printers scale"
    return (
        "did the board move, do poses belong to other pictures, or are the arm's lengths not those that the poses were "
        "computed with?"
    )


def _fitted(problem: Problem, start: Array) -> tuple[Array, float]:
    """The solution for all pictures, and the median of their errors [px]."""
    x = problem.fit(start, np.arange(len(problem.names)), loss="soft_l1")
    return x, float(np.median(problem.errors_px(x)))


def _guesses(sightings: Sequence[Sighting], poses: Sequence[Matrix], parent: Parent) -> Iterator[_Guess]:
    def guess(sentence: str, change: Callable[[Matrix], Matrix]) -> _Guess:
        return _Guess(sentence, sightings, [change(pose) for pose in poses])

    where = "beside the arm, and the board on its tool" if parent == "tool0" else "on the tool, and the board beside it"
    yield guess(
        "they seem to be poses of base_link in tool0 (tool-from-base), and those of tool0 in base_link are needed, or "
        f"the camera stands {where}, and another one was named",
        inverse,  # the equations of both are the same
    )
    for factor, length in (
        (1e-3, "in millimetres, not in metres"),
        (1e-2, "in centimetres, not in metres"),
        (1e3, "a thousandth of what they should be"),
    ):
        yield guess(f"their positions seem to be {length}", partial(_scaled, factor=factor))
    yield guess("their rotations seem to be those of base_link in tool0, and their positions not", _turned_back)
    yield guess("their quaternions seem to be in the order w, x, y, z", _w_first)
    for sentence, pictures, moved in (
        ("each pose seems to belong to the picture after it", sightings[1:], poses[:-1]),
        ("each pose seems to belong to the picture before it", sightings[:-1], poses[1:]),
    ):
        if len(pictures) > 3:  # three pictures fit many poses
            yield _Guess(sentence, pictures, moved)


def _scaled(pose: Matrix, factor: float) -> Matrix:
    scaled = pose.copy()
    scaled[:3, 3] *= factor
    return scaled


def _turned_back(pose: Matrix) -> Matrix:
    turned = pose.copy()
    turned[:3, :3] = pose[:3, :3].T
    return turned


def _w_first(pose: Matrix) -> Matrix:
    return from_quaternion(pose[:3, 3], np.roll(quaternion_of(pose), -1))


def check_place(parent_from_camera: Matrix, camera: str, cell: CellConfig) -> str:
    """Compare a camera's place with that in the cell, for mistakes that no picture shows.

    A frame that is turned, and a tool that ends elsewhere, are taken up by the place of the camera or of the board.

    Returns:
        A warning if the place is far from that in the cell, or on the tool moved along its axis alone, else "".

    Raises:
        InputError: the place is another one because of a mistake that explains it; the text names it.
    """
    present = cell.camera(camera)
    off = _gap(present.parent_from_camera, parent_from_camera)
    fixed = present.parent
    along = _along_tool(present.parent_from_camera, parent_from_camera, camera) if fixed == "tool0" else ""
    if _within(off, OTHER_PLACE):
        return along
    turned = _gap(present.parent_from_camera, BASE_LINK_FROM_BASE @ parent_from_camera)
    if fixed == "base_link" and turned[0] < off[0] and turned[1] <= OTHER_PLACE[1]:
        raise InputError(
            f"{camera} would stand half a turn about z of base_link from its place in config/cell.yaml: the poses seem "
            "to be in UR's frame base and not in base_link, or the other way round; name theirs in a column 'frame'"
            + _REMEDY
        )
    tool = cell.tool0_from_tcp @ parent_from_camera
    if fixed == "tool0" and _within(_gap(present.parent_from_camera, tool), SAME_PLACE):
        raise InputError(
            f"{camera} would stand {1000 * off[0]:.0f} mm from its place in config/cell.yaml: the poses seem to be "
            "those of the tool centre point, not of tool0, the flange; set the controller's TCP to zero" + _REMEDY
        )
    for other in cell.cameras.named:
        there = cell.camera(other)
        if there.parent == fixed and _within(_gap(there.parent_from_camera, parent_from_camera), SAME_PLACE):
            raise InputError(
                f"{camera} would stand where config/cell.yaml has {other}: are the pictures of {other}?" + _REMEDY
            )
    return along or (
        f"{camera} stands {1000 * off[0]:.0f} mm and {np.degrees(off[1]):.0f} deg from where config/cell.yaml has it: "
        "is it this camera, and are the poses those of tool0 in base_link?"
    )


def _along_tool(present: Matrix, found: Matrix, camera: str) -> str:
    """A warning if a camera on the tool is moved along z of tool0 alone, as by poses of the TCP; else ""."""
    x, y, z = found[:3, 3] - present[:3, 3]
    if np.hypot(x, y) > ALONG_TOOL[0] or abs(z) < ALONG_TOOL[1] or _gap(present, found)[1] > ALONG_TOOL[2]:
        return ""
    return (
        f"{camera} stands {1000 * z:+.0f} mm along z of tool0 from where config/cell.yaml has it, and as there "
        "otherwise: are these poses of the TCP in place of the flange, tool0? Then set the controller's TCP to zero"
    )


_REMEDY = ". If the camera does stand there, write its rough place into config/cell.yaml first"


def _gap(one: Matrix, other: Matrix) -> tuple[float, float]:
    """Distance [m] and angle [rad]."""
    between = inverse(one) @ other
    return float(np.linalg.norm(between[:3, 3])), float(np.linalg.norm(rotation_vector_of(between)))


def _within(gap: tuple[float, float], limits: tuple[float, float]) -> bool:
    return gap[0] <= limits[0] and gap[1] <= limits[1]
