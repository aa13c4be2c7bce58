"""The depth of a simulated D455: errors and holes of matching the pictures of two imagers.

Ours: the left imager stands where the colour camera does, so that depth is aligned to colour without further holes; and
it has the colour camera's focal length, 5 % less than its own (87 degrees against 90).
"""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.simulation.imaging import draws, linear, normals
from merton.simulation.sensor import Sensor
from merton.world.observation import Image

BASELINE_M = 0.095
"""Distance between the D455's imagers (datasheet of the D400 family, 337029)."""
DISPARITIES = 126
"""The largest disparity that is searched [px], at any resolution (Grunnet-Jepsen et al., Tuning Depth Cameras for Best
Performance, "Move as close as possible")."""
STEPS_PER_PX = 32
"""Disparities have five binary places."""
NOISE_PX = 0.08
"""Standard deviation of a disparity [px]. Ours: an error of 0.5 % at 4 m and 1280 px; the vendor promises less than 2 %
of all errors together."""
WINDOW_PX = 1.5
"""Errors of pixels that are nearer than this hardly differ: their matches share most of a window. Ours."""
FARTHEST_M = 6.0
"""A D455 reports no depth beyond about this distance."""
DARK = 0.055
"""Light, as a share of the picture's mean, below which too little contrast is left to match. Ours."""
GLARE, HIGHLIGHT = 250, 0.25
"""Value of all three colours from which on a pixel may be a highlight, and the largest share of such pixels around it,
in a square a tenth of the picture wide: more are a bright surface. Ours: a renderer's highlights are white."""
DARK_SPREAD = 0.3
"""Relative spread of the darkness at which a match fails, so that the edges of a dark hole are ragged. Ours."""

Depth = NDArray[np.float32]
"""Distances along the optical axis [m], shape (height, width); 0 is none."""
Holes = NDArray[np.bool_]
"""Pixels without depth, shape (height, width)."""


def nearest_m(focal_px: float) -> float:
    """The nearest distance with a disparity that is searched: 0.48 m at 1280 x 720, 0.29 m at 640 x 480, 0.16 m at
    424 x 240 (Tuning Depth Cameras: MinZ = focal length x baseline / 126)."""
    return focal_px * BASELINE_M / DISPARITIES


def sigma_m(depth_m: float, focal_px: float) -> float:
    """Standard deviation of a depth [m]: it grows with the distance's square (Tuning Depth Cameras, "depth RMS error";
    measured by Ahn et al., Analysis and Noise Modeling of the Intel RealSense D435 for Mobile Robots, 2019)."""
    return depth_m**2 * NOISE_PX / (focal_px * BASELINE_M)


def measured(sensor: Sensor, depth_m: Depth, picture: Image, focal_px: float, rng: np.random.Generator) -> Depth:
    """The depth that the camera would deliver.

    Args:
        depth_m: true distances.
        picture: (height, width, 3) rendered picture of the same view.
    """
    seen = depth_m > 0
    disparity = np.zeros_like(depth_m)
    np.divide(np.float32(focal_px * BASELINE_M), depth_m, out=disparity, where=seen)
    if sensor.occlusion:
        seen &= ~hidden(disparity)
    if sensor.nearest_distance:
        seen &= disparity <= DISPARITIES
    if sensor.difficult_surfaces:
        seen &= ~unmatched(picture, rng)
    result = depth_m
    if sensor.depth_noise:
        disparity += np.float32(NOISE_PX) * _noise_of_windows(depth_m.shape, rng)
    if sensor.quantised_disparity:
        disparity = np.rint(disparity * np.float32(STEPS_PER_PX)) / np.float32(STEPS_PER_PX)
    if sensor.depth_noise or sensor.quantised_disparity:
        seen &= disparity > 0
        result = np.divide(np.float32(focal_px * BASELINE_M), disparity, out=np.zeros_like(depth_m), where=seen)
    return np.where(seen & (result <= FARTHEST_M), result, np.float32(0))


def hidden(disparity: NDArray[np.float32]) -> Holes:
    """Points that the right imager does not see: outside of its picture, or behind a nearer thing.

    A pixel u is seen by the right imager at u - disparity. A point is hidden if one that is farther right in the left
    picture appears at the same place or left of it, which only nearer things do. So holes lie at the left edges of near
    things and at the left border, as in the D400 family ("invalid depth band" of its datasheet).
    """
    place = np.arange(disparity.shape[1], dtype=np.float32) - disparity
    rightmost = np.full((len(place), 1), np.inf, np.float32)
    farther_right = np.minimum.accumulate(place[:, :0:-1], axis=1)[:, ::-1]
    return (place >= np.hstack([farther_right, rightmost])) | (place < 0)


def unmatched(picture: Image, rng: np.random.Generator) -> Holes:
    """Surfaces too dark or too shiny to be matched.

    Dark is relative to the picture's mean: the imagers expose on their own, and the camera's projector is a lamp as
    well. Ours: a surface is as bright in infrared as in visible light. A highlight is at another place for
    each imager, so that it matches nothing.
    """
    luminance = cv2.transform(linear(picture), np.array([[0.2126, 0.7152, 0.0722]], np.float32))
    share = luminance / np.float32(max(float(luminance.mean()), 1e-6))
    spread = np.exp(np.float32(DARK_SPREAD) * _noise_of_windows(share.shape, rng))
    white = cv2.inRange(picture, (GLARE,) * 3, (255,) * 3)  # 255 where it is so, else 0
    around = cv2.blur(white, (picture.shape[1] // 10,) * 2)
    return (share < np.float32(DARK) * spread) | ((white > 0) & (around < 255 * HIGHLIGHT))


def _noise_of_windows(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    """Normal noise of variance 1 whose neighbours are alike over `WINDOW_PX`."""
    white = normals()[draws(shape, rng)]
    size = 2 * math.ceil(3 * WINDOW_PX) + 1
    kernel = cv2.getGaussianKernel(size, WINDOW_PX)
    smooth = cv2.sepFilter2D(white, -1, kernel, kernel, borderType=cv2.BORDER_REFLECT)
    return np.asarray(smooth / np.float32((kernel**2).sum()), np.float32)
