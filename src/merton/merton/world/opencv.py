"""Functions in which OpenCV's releases differ, from 4.11 to 5: each does the same with all of them.

4.11 is the last one beside NumPy 1. Results that differ by release all the same are named in docs/use/distortions.md.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError

RELEASE = tuple(int(part) for part in cv2.__version__.split(".")[:2])
LONG_TABLES, METADATA, ITERATED = RELEASE >= (4, 13), RELEASE >= (4, 12), RELEASE < (5, 0)
"""Lookup with 16 bits, reading of EXIF data, and a second function for undistortion with a criterion."""
PNG_FILTER_UP = [cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_UP] if METADATA else []
"""Parameters that write PNG files with the filter Up alone; OpenCV before 4.12 chooses one, which gives other bytes."""


def lookup(indices: NDArray[Any], table: NDArray[Any]) -> NDArray[Any]:
    """`table[indices]`, by OpenCV where it has that: numpy takes several times as long.

    Args:
        indices: uint16, any shape of two or three dimensions.
        table: of 65536 values.
    """
    return np.asarray(cv2.LUT(indices, table)) if LONG_TABLES else np.take(table, indices)


def undistort_points(
    points_px: NDArray[np.float64],
    matrix: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    iterations: int,
    change: float,
    new_matrix: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The places at which a camera without distortion would see points, by fixed-point iteration.

    Args:
        points_px: (n, 1, 2), as seen [px].
        matrix: (3, 3), of the camera [px].
        coefficients: of the distortion, in OpenCV's order.
        iterations: the most of them.
        change: of a step, at which it ends.
        new_matrix: (3, 3), of the camera without distortion [px]; None for points (x/z, y/z).

    Returns:
        (n, 1, 2).
    """
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, iterations, change)
    if ITERATED:
        function: Any = cv2.undistortPointsIter  # type: ignore[attr-defined]
        return np.asarray(function(points_px, matrix, coefficients, None, new_matrix, stop))
    return np.asarray(cv2.undistortPoints(points_px, matrix, coefficients, P=new_matrix, criteria=stop))


def decode_unchanged(content: bytes) -> tuple[NDArray[Any] | None, Any]:
    """The pixels of an image file as they are stored, and its EXIF data; None for what is not readable or not there.

    Raises:
        InputError: the file has EXIF data, and OpenCV is older than 4.12, which does not hand them over.
    """
    buffer = np.frombuffer(content, np.uint8)
    if not METADATA:
        if b"eXIf" in content or b"EXIF" in content:
            raise InputError(
                f"a transparent picture with EXIF data needs OpenCV 4.12 or later, this is {cv2.__version__}"
            )
        return cv2.imdecode(buffer, cv2.IMREAD_UNCHANGED), None
    pixels, kinds, about = cv2.imdecodeWithMetadata(buffer, flags=cv2.IMREAD_UNCHANGED)
    exif = [data for kind, data in zip(kinds, about, strict=True) if kind == cv2.IMAGE_METADATA_EXIF]
    return pixels, exif[0] if exif else None
