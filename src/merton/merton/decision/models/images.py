"""Resizing of images for policies: as the clients of their servers do it, or as those they were trained on."""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np

from merton.errors import require
from merton.models.catalogue import ImagePreparation
from merton.world.observation import Image


def resize_with_padding(image: Image, height: int, width: int) -> Image:
    """An image (h, w, 3) uint8 RGB resized into (height, width) [px], centred on black, as openpi's clients do it.

    Equal to `openpi_client.image_tools.resize_with_pad` to the bit, since it is done by the same Pillow, whose versions
    differ in the last digit. The filter is BILINEAR: a triangle as wide as the reduction, rounded after each of two
    passes. It averages noise, which a bilinear filter that ignores the reduction would keep.

    Raises MissingDependencyError without Pillow.
    """
    if image.shape[:2] == (height, width):
        return image
    pillow = require("PIL.Image", "remote", "resizing images for a policy server")
    ratio = max(image.shape[1] / width, image.shape[0] / height)
    inner_height, inner_width = int(image.shape[0] / ratio), int(image.shape[1] / ratio)
    small = pillow.fromarray(image).resize((inner_width, inner_height), pillow.Resampling.BILINEAR)
    top, left = (height - inner_height) // 2, (width - inner_width) // 2
    result = np.zeros((height, width, 3), np.uint8)
    result[top : top + inner_height, left : left + inner_width] = np.asarray(small)
    return result


def prepared(image: Image, preparation: ImagePreparation) -> Any:
    """A Pillow image, prepared as an entry says if the adapter is to do it, else as it is.

    The order is that of OpenVLA's evaluation in LIBERO: a JPEG, the resizing, and a centre crop that keeps a share of
    the area and is resized bilinearly to the full size.
    """
    pillow = require("PIL.Image", "remote", "preparing images for a policy")
    picture = pillow.fromarray(image)
    if preparation.by != "adapter" or preparation.size_px is None:
        return picture
    if preparation.jpeg:
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=preparation.jpeg)
        picture = pillow.open(file)
    height, width = preparation.size_px
    picture = picture.resize((width, height), pillow.Resampling[preparation.resize.upper() or "LANCZOS"])
    if preparation.crop == 1.0:
        return picture
    edge = (1.0 - preparation.crop**0.5) / 2.0
    box = (edge * width, edge * height, (1.0 - edge) * width, (1.0 - edge) * height)
    return picture.resize((width, height), pillow.Resampling.BILINEAR, box=box)


def even_size(image: Image, width: int) -> tuple[int, int]:
    """(height, width) [px] of an image (h, w, 3) at another width, in its proportions, the height even as of a film."""
    return max(2, 2 * round(image.shape[0] * width / image.shape[1] / 2)), width


def shrunk(image: Image, size_px: tuple[int, int] | None) -> Image:
    """An image (h, w, 3) uint8 averaged over areas to (height, width), as `merton export lerobot` shrinks pictures.

    It stays as it is if it is not larger, or of another form: then the policy prepares it by itself, as Pi0 does.
    """
    if size_px is None or image.shape[1] <= size_px[1]:
        return image
    if abs(image.shape[0] * size_px[1] / image.shape[1] - size_px[0]) > 1.0:  # an even height is off by a pixel at most
        return image
    return np.asarray(cv2.resize(image, size_px[::-1], interpolation=cv2.INTER_AREA))
