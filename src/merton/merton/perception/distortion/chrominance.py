"""Colours: fewer, weaker, stronger, or in the wrong place."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.perception.distortion.base import register
from merton.perception.distortion.scale import averaged, enlarged_field, reference_size
from merton.world.observation import Image
from merton.world.opencv import lookup


@register(
    "04",
    "chrominance",
    levels=(1, 3, 6, 8, 12),
    unit="factor a: blur of sigma 1.5 a + 2 px, scaled by a",
    source="KADID-10k 04",
    kadid=(1, 3, 6, 8, 12),
)
def color_diffusion(image: Image, amount: float, _: np.random.Generator, scale: float) -> Image:
    """Colours run over the edges of things: the a and b of Lab blurred and strengthened, lightness kept."""
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    # The blurred colour is smooth, so a quarter of the reference width holds all of it.
    height, width = lab.shape[:2]
    step = 4 if min(reference_size(image, scale)) >= 64 else 1
    small = math.ceil(width / (step * scale)), math.ceil(height / (step * scale))
    lightness = lab[..., 0]
    color = cv2.resize(lab[..., 1:], small, interpolation=cv2.INTER_AREA)
    color = color.astype(np.float32) - 128
    color = cv2.GaussianBlur(color, (0, 0), (1.5 * amount + 2) / step, borderType=cv2.BORDER_REFLECT_101)
    strong = cv2.resize(color, (width, height), interpolation=cv2.INTER_LINEAR)
    strong = cv2.addWeighted(strong, amount, strong, 0.0, 128.0, dtype=cv2.CV_8U)
    return np.asarray(cv2.cvtColor(cv2.merge([lightness, *cv2.split(strong)]), cv2.COLOR_LAB2RGB), dtype=np.uint8)


@register(
    "05",
    "chrominance",
    levels=(1, 3, 6, 8, 12),
    unit="shift [px]",
    source="KADID-10k 05; the mask of edges is ours",
    stochastic=True,
    kadid=(1, 3, 6, 8, 12),
)
def color_shift(image: Image, shift_px: float, rng: np.random.Generator, scale: float) -> Image:
    """Green out of register: shifted in a random direction, blended in along edges."""
    angle = rng.uniform(0.0, 2 * np.pi)
    moved = np.array([[1, 0, scale * shift_px * np.cos(angle)], [0, 1, scale * shift_px * np.sin(angle)]])
    red, green, blue = cv2.split(image)
    size = (image.shape[1], image.shape[0])
    shifted = cv2.warpAffine(green, moved, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    # Ours: full strength from a Sobel gradient of 64 (an edge of 16 grey levels), spread as far as the shift reaches.
    gray = averaged(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), reference_size(image, scale))
    gradient = cv2.max(
        *(cv2.convertScaleAbs(cv2.Sobel(gray, cv2.CV_16S, *axis), alpha=4.0) for axis in ((1, 0), (0, 1)))
    )
    side = 2 * int(np.ceil(shift_px)) + 1
    mask = enlarged_field(cv2.blur(cv2.dilate(gradient, np.ones((side, side), np.uint8)), (5, 5)), image.shape[:2])
    weight = mask.astype(np.float32) / 255
    green = cv2.add(green, cv2.multiply(cv2.subtract(shifted, green, dtype=cv2.CV_32F), weight), dtype=cv2.CV_8U)
    return np.asarray(cv2.merge([red, green, blue]), dtype=np.uint8)


@register(
    "06",
    "chrominance",
    levels=(64, 48, 32, 16, 8),
    unit="number of colours",
    source="KADID-10k 06",
    continuous=False,
    kadid=(64, 48, 32, 16, 8),
)
def color_quantization(image: Image, colors: float, _: np.random.Generator, __: float) -> Image:
    """Indexed colours: every pixel takes the nearest entry of a small palette made for the image."""
    from merton.perception.distortion.compiled import color_cells  # here: loading numba takes half a second

    # 32 steps a channel: the palette is chosen among at most 32768 cells instead of all pixels.
    cells, counts, sums = color_cells(image)
    used = np.flatnonzero(counts)
    means = sums[used] / counts[used, None]
    palette = minimum_variance_palette(means, counts[used].astype(np.float64), int(colors))
    distance = (palette**2).sum(axis=1) - 2.0 * means @ palette.T
    tables = np.zeros((3, 65536), dtype=np.uint8)  # as long as lookups with 16 bits want them
    tables[:, used] = np.rint(palette[distance.argmin(axis=1)]).T
    return cv2.merge([lookup(cells, table) for table in tables])  # type: ignore[return-value]


@register(
    "07",
    "chrominance",
    levels=(0.4, 0.2, 0.1, 0.0, -0.4),
    unit="factor on the saturation",
    source="KADID-10k 07",
    kadid=(0.4, 0.2, 0.1, 0.0, -0.4),
    smooth=True,
)
def hsv_saturation(image: Image, factor: float, _: np.random.Generator, __: float) -> Image:
    """HSV saturation times a factor: paler, grey at 0, complementary hues below."""
    # With hue and value V fixed, scaling S is linear in each channel: V - c' = factor (V - c). No conversion needed.
    red, green, blue = cv2.split(image)
    value = cv2.merge([cv2.max(red, cv2.max(green, blue))] * 3)
    return cv2.addWeighted(value, 1.0 - factor, image, factor, 0.0)  # type: ignore[return-value]


@register(
    "08",
    "chrominance",
    levels=(1.5, 2, 3, 6, 9),
    unit="factor on a and b",
    source="KADID-10k 08; its level 1 of 1 is the identity, ours is 1.5",
    kadid=(1, 2, 3, 6, 9),
)
def lab_saturation(image: Image, factor: float, _: np.random.Generator, __: float) -> Image:
    """Garish colours: a and b of Lab times a factor."""
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    table = np.rint(np.clip(128 + factor * (np.arange(256.0) - 128), 0, 255)).astype(np.uint8)
    tables = np.stack([np.arange(256, dtype=np.uint8), table, table], axis=1)[None]
    return np.asarray(cv2.cvtColor(cv2.LUT(lab, tables), cv2.COLOR_LAB2RGB), dtype=np.uint8)


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
