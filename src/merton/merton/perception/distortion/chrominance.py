"""Colour: fewer of them, or weaker."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.observation import Image
from merton.perception.distortion.base import register


@register("06", "chrominance", levels=(64, 48, 32, 16, 8), unit="number of colours", source="KADID-10k 06")
def color_quantization(image: Image, colors: float, _: np.random.Generator) -> Image:
    """Indexed colours: every pixel takes the nearest entry of a small palette made for the image."""
    # 32 steps a channel: the palette is chosen among at most 32768 cells instead of all pixels.
    red, green, blue = (channel.astype(np.uint16) >> 3 for channel in cv2.split(image))
    cell = (red << 10) | (green << 5) | blue
    flat = cell.ravel()
    counts = np.bincount(flat, minlength=32768)
    used = np.flatnonzero(counts)
    sums = [np.bincount(flat, weights=image[..., channel].ravel(), minlength=32768)[used] for channel in range(3)]
    means = np.stack(sums, axis=1) / counts[used, None]
    palette = minimum_variance_palette(means, counts[used].astype(np.float64), int(colors))
    distance = (palette**2).sum(axis=1) - 2.0 * means @ palette.T
    table = np.zeros((32768, 3), dtype=np.uint8)
    table[used] = np.rint(palette[distance.argmin(axis=1)])
    return cv2.merge([table[:, channel].take(cell) for channel in range(3)])  # type: ignore[return-value]


@register(
    "07", "chrominance", levels=(0.4, 0.2, 0.1, 0.0, -0.4), unit="factor on the saturation", source="KADID-10k 07"
)
def hsv_saturation(image: Image, factor: float, _: np.random.Generator) -> Image:
    """HSV saturation times a factor: paler, grey at 0, complementary hues below."""
    # With hue and value V fixed, scaling S is linear in each channel: V - c' = factor (V - c). No conversion needed.
    red, green, blue = cv2.split(image)
    value = cv2.merge([cv2.max(red, cv2.max(green, blue))] * 3)
    return cv2.addWeighted(value, 1.0 - factor, image, factor, 0.0)  # type: ignore[return-value]


def minimum_variance_palette(
    points: NDArray[np.float64], weights: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """At most `size` colours that stand for `points` (n, 3) with `weights` (n,): shape (k, 3), k <= size.

    Ours, in the spirit of the minimum variance quantisation KADID-10k uses: again and again the group with the largest
    squared error is cut at its mean along its widest axis. More colours refine fewer colours, so the error only falls.
    """
    groups = [np.arange(len(points))]
    errors = [_squared_deviation(points, weights)]  # per group, shape (3,)
    while len(groups) < size:
        worst = max(range(len(groups)), key=lambda index: float(errors[index].sum()))
        members = groups[worst]
        along = points[members, int(errors[worst].argmax())]
        below = along <= np.average(along, weights=weights[members])
        if below.all():  # even the worst group is a single colour
            break
        halves = members[below], members[~below]
        groups[worst : worst + 1] = halves
        errors[worst : worst + 1] = [_squared_deviation(points[half], weights[half]) for half in halves]
    return np.array([np.average(points[members], axis=0, weights=weights[members]) for members in groups])


def _squared_deviation(points: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    mean = np.average(points, axis=0, weights=weights)
    return weights @ (points - mean) ** 2
