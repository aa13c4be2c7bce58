"""The pictures of a simulated camera: from the light of a rendered picture to the picture that a D455 would deliver.

Rendered pixels are taken as sRGB. Light is linear: 1 is white in a rendered picture.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import cv2
import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from merton.simulation.sensor import FULL_RESOLUTION_FOCAL_PX, FULL_WELL_E, LENS_BLUR_PX, READ_NOISE_E, Exposure, Sensor
from merton.world.geometry import Array
from merton.world.observation import Image, Intrinsics

Light = NDArray[np.float32]
"""Light at each pixel, shape (height, width, 3), RGB, linear."""


def linear(picture: Image) -> Light:
    """The light of a rendered picture: the inverse of sRGB's curve (IEC 61966-2-1)."""
    return np.asarray(cv2.LUT(picture, _LINEAR), np.float32)


def mean_light(light: Light) -> float:
    """The mean luminance of a picture (Rec. 709), which the auto-exposure measures."""
    red, green, blue, _ = cv2.mean(light)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def blurred(light: Light, intrinsics: Intrinsics) -> Light:
    """The light behind the lens: a Gaussian, since rays and pixels have a width.

    Its variance is the sum of the lens' (`LENS_BLUR_PX`, scaled to the image) and that of a pixel's own square, 1/12.
    Ours: the same over the whole picture.
    """
    scale = intrinsics.fx / FULL_RESOLUTION_FOCAL_PX
    sigma_px = math.hypot(LENS_BLUR_PX * scale, math.sqrt(1 / 12))
    return np.asarray(cv2.GaussianBlur(light, (0, 0), sigma_px, borderType=cv2.BORDER_REPLICATE), np.float32)


@lru_cache(maxsize=8)
def falloff(intrinsics: Intrinsics) -> NDArray[np.float32]:
    """The share (height, width) of the light that reaches each pixel: the cosine's fourth power of its angle to the
    optical axis (natural vignetting)."""
    u = (np.arange(intrinsics.width) - intrinsics.cx) / intrinsics.fx
    v = (np.arange(intrinsics.height) - intrinsics.cy) / intrinsics.fy
    return (1 / (1 + u**2 + v[:, None] ** 2) ** 2).astype(np.float32)


def exposed(
    sensor: Sensor, light: Light, intrinsics: Intrinsics, exposure: Exposure, rng: np.random.Generator
) -> Image:
    """The camera's picture of the light behind its lens, in sRGB.

    The linear model of EMVA 1288 (release 4.0, 2.2 to 2.4): a pixel collects e electrons, whose variance is e (photons
    are Poisson) plus that of the electronics; gain multiplies both. As a share y of the largest signal,

        var(y) = (e + n `READ_NOISE_E`^2) (gain / (n `FULL_WELL_E`))^2,   e = light brightness n `FULL_WELL_E` / gain,

    with n the sensor's pixels in one of the image: a smaller image is the mean of them. Poisson's law is drawn as a
    Gaussian, which at ten electrons and more cannot be told from it. A signal is never negative, so that
    noise near black is cut off. Ours: neither a colour mosaic nor denoising.

    Vignetting takes light by `falloff`; the camera corrects seven eighths of it (in stops), which lifts the noise in
    the corners as well: 16 % of the light are missing at 45 degrees. Ours: the D455's own correction is not published.
    """
    pixels = (FULL_RESOLUTION_FOCAL_PX / intrinsics.fx) ** 2
    electrons = pixels * FULL_WELL_E / exposure.gain
    noisy = sensor.shot_noise or sensor.read_noise
    noise = draws(light.shape, rng) if noisy else np.zeros(light.shape, np.uint16)
    share = falloff(intrinsics) if sensor.vignetting else np.ones(light.shape[:2], np.float32)
    shot = np.float32(sensor.shot_noise / electrons)
    read = np.float32(sensor.read_noise * pixels * READ_NOISE_E**2 / electrons**2)
    return np.asarray(_developed(light, noise, share, np.float32(exposure.brightness), shot, read, normals(), _CODES))


def draws(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.uint16]:
    """Indices into `normals`."""
    return rng.integers(0, 1 << 16, shape, np.uint16)


@lru_cache(maxsize=1)
def normals() -> NDArray[np.float32]:
    """The standard normal distribution as 65,536 values of equal probability.

    Ours: four times as fast as normal numbers from the generator, for pictures that have 256 values.
    """
    return np.asarray(ndtri((np.arange(1 << 16) + 0.5) / (1 << 16)), np.float32)


@numba.njit(cache=True, nogil=True)
def _developed(
    light: Light,
    noise: NDArray[np.uint16],
    share: NDArray[np.float32],
    brightness: np.float32,
    shot: np.float32,
    read: np.float32,
    normals: NDArray[np.float32],
    codes: Image,
) -> Any:
    """`exposed` in one pass. The variance of a signal y is `shot` y + `read`; `codes` are sRGB's of signals in 0..1."""
    height, width, _ = light.shape
    picture = np.empty((height, width, 3), np.uint8)
    last = np.float32(len(codes) - 1)
    for row in range(height):
        for column in range(width):
            arriving = share[row, column]
            root = np.sqrt(arriving)
            fourth = np.sqrt(root)
            correction = np.float32(1) / (root * fourth * np.sqrt(fourth))
            for channel in range(3):
                signal = light[row, column, channel] * brightness * arriving
                signal += np.sqrt(shot * signal + read) * normals[noise[row, column, channel]]
                signal = min(max(signal, np.float32(0)), np.float32(1)) * correction
                picture[row, column, channel] = codes[int(min(signal, np.float32(1)) * last + np.float32(0.5))]
    return picture


def _decoded(value: Array) -> Array:
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def _curve(light: Array) -> Array:
    return np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)


_LINEAR = _decoded(np.arange(256) / 255).astype(np.float32)
_CODES = np.rint(255 * _curve(np.arange(8192) / 8191)).astype(np.uint8)
