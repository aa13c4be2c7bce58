"""The content of a sensor_msgs/CameraInfo: the pinhole camera of its picture, and the lens before it.

Messages are taken by their fields alone, of rclpy or decoded from a recording.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from merton.errors import InputError
from merton.world.observation import Intrinsics

PLUMB_BOB = "plumb_bob"
LENS_MODELS = {PLUMB_BOB: (5,), "rational_polynomial": (8, 12, 14), "equidistant": (4,)}
"""Names of sensor_msgs/distortion_models and how many coefficients each has, in the order of OpenCV: k1, k2, p1, p2,
k3; and k4, k5, k6, s1 .. s4, tx, ty; k1 .. k4 of a fisheye lens."""
MOST_ERROR_PX = 0.5
"""Largest distance from a pixel at which the way back from its ideal place may end. Ours: half a pixel is not seen."""
LARGEST_SHIFT = 0.02
"""Largest shift of a pixel by a lens from its place in a pinhole camera, in widths of the picture. Ours, because models
take a picture for a pinhole camera's: at 0.6 m and a field of view of 90 degrees it is 2.4 cm, in the corners alone,
and 2 cm is where a tool's path counts as another one. A D455's lens moves pixels by 0.007 widths."""

MOST_OFF_MIDDLE, MOST_RATIO = 0.2, 2.0
"""Largest distance of a principal point from the middle [sides of the picture], and ratio of both focal lengths. Ours:
lenses stand within a twentieth of the middle and pixels are square; K of twice the size is off by half a side, that of
half the size by a quarter."""

LensModel = tuple[str, tuple[float, ...]]
"""A model of `LENS_MODELS` and its coefficients; none for a pinhole camera."""


def intrinsics_of(info: Any, rectified: bool = False) -> Intrinsics:
    """The pinhole parameters of the picture that a CameraInfo belongs to.

    They are those of K, or of P for a `rectified` picture (sensor_msgs/CameraInfo). Binning and region of interest are
    applied to them and to the size as in image_geometry's PinholeCameraModel: the message describes the whole sensor,
    the picture is the region, from its corner on, every n-th pixel of it.

    Raises:
        InputError: parameters that no camera has, such as the zeros of one that was never calibrated, or those of a
            picture of another size.
    """
    roi, across, down = info.roi, max(1, int(info.binning_x)), max(1, int(info.binning_y))
    width, height = int(roi.width) or int(info.width), int(roi.height) or int(info.height)
    name, matrix, places = ("P", info.p, (0, 2, 5, 6)) if rectified else ("K", info.k, (0, 2, 4, 5))
    fx, cx, fy, cy = (float(matrix[index]) for index in places)
    found = Intrinsics(
        width // across,
        height // down,
        fx / across,
        fy / down,
        (cx - int(roi.x_offset)) / across,
        (cy - int(roi.y_offset)) / down,
    )
    _check_middle(name, Intrinsics(int(info.width), int(info.height), fx, fy, cx, cy))
    return found


def _check_middle(name: str, whole: Intrinsics) -> None:
    """Raises InputError if no lens stands so before a sensor, whose region and binning are not yet applied."""
    size = f"{whole.width} x {whole.height} px: {name} seems to be that of a picture of another size"
    for at_px, side_px in ((whole.cx, whole.width), (whole.cy, whole.height)):
        if abs(at_px - (side_px - 1) / 2) > MOST_OFF_MIDDLE * side_px:
            raise InputError(f"the principal point lies at ({whole.cx:g}, {whole.cy:g}) of {size}")
    if not 1 / MOST_RATIO <= whole.fx / whole.fy <= MOST_RATIO:
        raise InputError(f"the focal lengths are {whole.fx:g} and {whole.fy:g} px in a picture of {size}")


def is_rectified(topic: str) -> bool:
    """Whether images of a topic are rectified: image_proc's `image_rect` and `image_rect_color`, raw or compressed."""
    return topic.removesuffix("/compressed").rpartition("/")[2].startswith("image_rect")


def lens_of(info: Any, rectified: bool = False) -> LensModel:
    """The lens of a CameraInfo: its model, and as many coefficients as that has; none for a pinhole camera.

    A rectified picture has none: the camera_info beside it, which is that of the raw picture, too, describes it by P.

    Zeros at the end of a polynomial's coefficients say nothing and are cut, so that one of `rational_polynomial`
    without its further terms is `plumb_bob`.

    Raises:
        InputError: another model, more coefficients than it has, or one that is not finite.
    """
    if rectified:
        return PLUMB_BOB, ()
    model, values = str(info.distortion_model), tuple(float(value) for value in info.d)
    if not np.isfinite(values).all():
        raise InputError(f"a lens has finite coefficients, got {list(values)}")
    if model in ("", "none") and not any(values):
        return PLUMB_BOB, ()
    if model not in LENS_MODELS:
        raise InputError(f"the lens model {model[:40]!r} is not known; use one of: {', '.join(LENS_MODELS)}")
    used = len(values)
    while used and not values[used - 1]:
        used -= 1
    if model != "equidistant":  # whose zeros are a lens, too
        if not used:
            return PLUMB_BOB, ()
        model = PLUMB_BOB if used <= LENS_MODELS[PLUMB_BOB][0] else model
    count = next((count for count in LENS_MODELS[model] if used <= count), None)
    if count is None:
        raise InputError(f"the lens model {model} has {LENS_MODELS[model][-1]} coefficients, got {used}")
    return model, (*values[:used], *[0.0] * (count - used))


def pinhole_of(info: Any, rectified: bool = False) -> Intrinsics:
    """The intrinsics of a picture that models may take for a pinhole camera's.

    Raises:
        InputError: as `intrinsics_of` and `lens_of`; or the lens moves pixels by more than `LARGEST_SHIFT`.
    """
    intrinsics, (model, coefficients) = intrinsics_of(info, rectified), lens_of(info, rectified)
    shift_px = largest_shift_px(intrinsics, model, coefficients)
    if shift_px > LARGEST_SHIFT * intrinsics.width:
        moves = f"moves pixels by up to {shift_px:.0f} px" if np.isfinite(shift_px) else "moves pixels without limit"
        raise InputError(
            f"the lens ({model}) {moves} from where a pinhole camera sees them, and "
            f"{LARGEST_SHIFT * intrinsics.width:.1f} px is the most: give rectified pictures on a topic "
            f"image_rect, as image_proc does, which P of the same camera_info describes"
        )
    return intrinsics


@lru_cache(maxsize=64)
def largest_shift_px(intrinsics: Intrinsics, model: str, coefficients: tuple[float, ...]) -> float:
    """Largest shift of a pixel of the picture by a lens [px]; infinite for a picture that no pinhole camera could see.

    Where no point in front of the camera is seen at a pixel, OpenCV gives a wrong one back or none: what it gives must
    lead to the pixel again.
    """
    if model == PLUMB_BOB and not any(coefficients):
        return 0.0
    import cv2  # here: it takes longer to load than all else in this wing

    from merton.world.opencv import undistort_points

    columns = np.linspace(0, intrinsics.width - 1, 17)
    rows = np.linspace(0, intrinsics.height - 1, 17)
    seen = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 1, 2)
    matrix = np.array([[intrinsics.fx, 0, intrinsics.cx], [0, intrinsics.fy, intrinsics.cy], [0, 0, 1.0]])
    if model == "equidistant":
        ideal = cv2.fisheye.undistortPoints(seen, matrix, np.array(coefficients))
        again = cv2.fisheye.distortPoints(ideal, matrix, np.array(coefficients))
        angles = np.hypot(*((seen - (intrinsics.cx, intrinsics.cy)) / (intrinsics.fx, intrinsics.fy)).reshape(-1, 2).T)
        if angles.max() >= np.pi / 2:
            return float("inf")
    else:
        none = np.zeros(3)
        ideal = undistort_points(seen, matrix, np.array(coefficients), 40, 1e-10)
        again, _ = cv2.projectPoints(cv2.convertPointsToHomogeneous(ideal), none, none, matrix, np.array(coefficients))
    shift, error = (
        np.linalg.norm(np.reshape(each - seen, (-1, 2)), axis=1)
        for each in (np.reshape(ideal, (-1, 1, 2)) * matrix[[0, 1], [0, 1]] + matrix[:2, 2], again)
    )
    # a comparison with NaN is false
    return float(shift.max()) if (error < MOST_ERROR_PX).all() and np.isfinite(shift).all() else float("inf")
