"""The corners of the board, to a few hundredths of a pixel: a drawing of the board is fitted to the image."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.world.geometry import Array

Drawing = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
"""The drawn board, and its slopes to the right and down, per pixel of the image."""

MODULES = 8
"""Modules (smallest squares) along a square of the board: a marker is 6 of them, with one more on either side."""

_TEXELS = 8
"""Pixels of the drawn board per module."""
_MARGIN = 1
"""White paper around the board, in modules; beyond it the surroundings are unknown."""
_PIXEL_BLUR = 0.5
"""A Gaussian blur about as wide as a pixel, over which a camera averages [px]."""
_SMOOTHING = 0.03
"""Gaussian blur of image and drawing before they are compared, as a share of the square's edge. Ours: a linear step
leads as far as an edge is wide."""
_WINDOW = 0.7
"""Half of the window around a corner that is compared, as a share of the square's edge. Ours: as far as the
corner's own four squares, whose markers have most of the edges."""
_LEAST_EDGE_PX = 4.0
"""No marker is readable on smaller squares, so the corners are no board's."""
_LEAST_HALF_PX, _MOST_HALF_PX = 5, 12
"""Of larger windows every second or third pixel is compared."""
_STEPS = 12
_SETTLED_PX = 1e-3
_LEAST_LIKENESS = 0.9
"""Correlation of image and drawing below which the corner is taken as hidden or false."""
_NOWHERE = np.full(2, np.nan)


def register_corners(
    grey: NDArray[np.uint8],
    detected: Array,
    drawn_from_board: Array,
    places: Array,
    pattern: NDArray[np.uint8],
    module_m: float,
    blur_px: float,
) -> Array:
    """Corners (n, 2) [px] where the board, drawn around each, agrees best with the image; NaN where it does not agree.

    Lucas and Kanade's registration ("An iterative image registration technique", 1981), with an affine map, brightness
    and contrast fitted for each corner, since lens and light differ over the image. Ours: a corner alone is some pixels
    of two edges, which is little information at 15 pixels a square; the markers around it have many more edges.

    Args:
        grey: (height, width) the image.
        detected: (n, 2) corners as detected [px], to a pixel or two.
        drawn_from_board: (3, 3) homography from places on the board [m] to the image [px], near the truth.
        places: (n, 3) the corners on the board [m].
        pattern: the board with one pixel a module, see `CharucoBoard.pattern`.
        module_m: edge of a module [m].
        blur_px: Gaussian blur of the image [px], roughly; the drawing is blurred alike.
    """
    centres, *sides = (
        cv2.perspectiveTransform(places[None, :, :2] + np.array(side), drawn_from_board)[0]
        for side in ((0.0, 0.0), (MODULES * module_m, 0.0), (0.0, MODULES * module_m))
    )
    edges_px = np.min([np.linalg.norm(side - centres, axis=1) for side in sides], axis=0)
    if not edges_px.min() > _LEAST_EDGE_PX:  # also where it is not a number
        return np.full_like(detected, np.nan)
    smoothing_px = _SMOOTHING * float(np.median(edges_px))
    zoom = 2 if grey.shape[1] >= 1000 else 4
    blur_px = float(np.hypot(max(blur_px, _PIXEL_BLUR), smoothing_px))
    drawing = _drawing(drawn_from_board, pattern, module_m, grey.shape, zoom, blur_px)
    smooth = cv2.GaussianBlur(grey.astype(np.float64), (0, 0), smoothing_px).astype(np.float64)
    halves = np.maximum(_LEAST_HALF_PX, np.round(_WINDOW * edges_px).astype(int))
    return np.array(
        [_register_corner(smooth, drawing, zoom, *one) for one in zip(detected, centres, halves, strict=True)]
    )


def _drawing(
    homography: Array, pattern: NDArray[np.uint8], module_m: float, shape: tuple[int, ...], zoom: int, blur_px: float
) -> Drawing:
    """The board as a camera would see it, `zoom` times as large as the image."""
    sheet = np.pad(pattern, _MARGIN, constant_values=255).repeat(_TEXELS, axis=0).repeat(_TEXELS, axis=1)
    texel_m = module_m / _TEXELS
    shift = _MARGIN * module_m
    board_from_texel = np.array([[texel_m, 0, 0.5 * texel_m - shift], [0, texel_m, 0.5 * texel_m - shift], [0, 0, 1]])
    middle = (zoom - 1) / 2
    zoomed_from_pixel = np.array([[zoom, 0, middle], [0, zoom, middle], [0, 0, 1.0]])
    size = (shape[1] * zoom, shape[0] * zoom)
    drawn = cv2.warpPerspective(
        sheet, zoomed_from_pixel @ homography @ board_from_texel, size, flags=cv2.INTER_LINEAR, borderValue=255
    )
    smooth = cv2.GaussianBlur(drawn.astype(np.float32), (0, 0), blur_px * zoom)
    across, down = (cv2.Sobel(smooth, cv2.CV_32F, x, 1 - x, ksize=3, scale=zoom / 8) for x in (1, 0))
    return np.asarray(smooth, np.float32), np.asarray(across, np.float32), np.asarray(down, np.float32)


def _register_corner(image: Array, drawing: Drawing, zoom: int, corner: Array, centre: Array, half: int) -> Array:
    """One corner [px], from the detected `corner` and its place `centre` in the drawing."""
    (left, top), (right, bottom) = np.maximum(corner - half, 0), np.minimum(corner + half + 1, image.shape[::-1])
    every = -(-half // _MOST_HALF_PX)
    columns, rows = np.meshgrid(np.arange(int(left), int(right), every), np.arange(int(top), int(bottom), every))
    values = image[rows, columns].astype(np.float64).ravel()
    offsets = (np.stack([columns.ravel(), rows.ravel()], axis=1) - corner) / half
    turn, shift = half * np.eye(2), np.zeros(2)
    for _ in range(_STEPS):
        here = ((centre + offsets @ turn.T + shift) * zoom + (zoom - 1) / 2).astype(np.float32)
        model, across, down = (
            cv2.remap(part, here[:, 0], here[:, 1], cv2.INTER_LINEAR).ravel().astype(np.float64) for part in drawing
        )
        contrast = _covariance(model, values) / max(_covariance(model, model), 1e-9)
        if contrast <= 0:
            return _NOWHERE
        slopes = contrast * np.stack([across, down], axis=1)
        shade = np.stack([model, np.ones_like(model)], axis=1)
        design = np.hstack([slopes, slopes[:, :1] * offsets, slopes[:, 1:] * offsets, shade])
        step = np.linalg.lstsq(design.T @ design, design.T @ values, rcond=None)[0][:6]
        shift, turn = shift + step[:2], turn + step[2:].reshape(2, 2)
        if np.abs(step).max() < _SETTLED_PX or not np.abs(shift).max() < half:
            break
    alike = _covariance(model, values) > _LEAST_LIKENESS * np.sqrt(
        _covariance(model, model) * _covariance(values, values)
    )
    if not alike or np.linalg.det(turn) <= 0:
        return _NOWHERE
    moved: Array = corner - half * np.linalg.solve(turn, shift)
    return moved if np.linalg.norm(moved - corner) < half / 2 else _NOWHERE


def _covariance(one: Array, other: Array) -> float:
    return float(np.mean((one - one.mean()) * (other - other.mean())))
