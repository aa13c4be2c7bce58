"""Lossy codecs: the image after encoding and decoding at the reference width."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray

from merton.errors import MissingDependencyError
from merton.perception.distortion.base import register
from merton.perception.distortion.scale import at_reference
from merton.world.observation import Image


@register(
    "09",
    "compression",
    levels=(16, 32, 45, 120, 400),
    unit="compression ratio",
    source="KADID-10k 09",
    continuous=False,
    kadid=(16, 32, 45, 120, 400),
)
def jpeg2000(image: Image, ratio: float, _: np.random.Generator, scale: float) -> Image:
    """JPEG 2000 at a compression ratio.

    OpenCV takes whole thousandths of the raw size, so the ratios aimed at are 16, 32, 45, 125 and 333. Its encoder
    wants at least 32 x 32 pixels; smaller images are padded and cut again.
    """
    return at_reference(image, scale, partial(_jpeg2000, ratio=ratio))


def _jpeg2000(image: Image, ratio: float) -> Image:
    height, width = image.shape[:2]
    missing = max(0, 32 - height), max(0, 32 - width)
    if any(missing):
        image = np.asarray(
            cv2.copyMakeBorder(image, 0, missing[0], 0, missing[1], cv2.BORDER_REPLICATE), dtype=np.uint8
        )
    thousandths = int(1000 / ratio + 0.5)
    decoded = _round_trip(image, ".jp2", [cv2.IMWRITE_JPEG2000_COMPRESSION_X1000, thousandths])
    return decoded[:height, :width].copy()


@register(
    "10",
    "compression",
    levels=(43, 36, 24, 7, 4),
    unit="quality",
    source="KADID-10k 10",
    continuous=False,
    kadid=(43, 36, 24, 7, 4),
)
def jpeg(image: Image, quality: float, _: np.random.Generator, scale: float) -> Image:
    """JPEG at a quality of 1..100."""
    return at_reference(image, scale, partial(_jpeg, quality=quality))


def _jpeg(image: Image, quality: float) -> Image:
    encoded = _encoded(image, ".jpg", [cv2.IMWRITE_JPEG_QUALITY, int(quality)])
    # the pixels OpenCV decodes, in 0.4 to 0.9 of its time
    return np.asarray(simplejpeg.decode_jpeg(encoded, "RGB", fastdct=False, fastupsample=False))


@register(
    "11", "compression", levels=(50, 25, 10, 4, 1), unit="quality", source="Ours: no public set", continuous=False
)
def webp(image: Image, quality: float, _: np.random.Generator, scale: float) -> Image:
    """WebP (lossy) at a quality of 1..100."""
    parameters = [cv2.IMWRITE_WEBP_QUALITY, int(quality)]
    return at_reference(image, scale, partial(_round_trip, extension=".webp", parameters=parameters))


def _round_trip(image: Image, extension: str, parameters: Sequence[int]) -> Image:
    decoded = np.asarray(cv2.imdecode(_encoded(image, extension, parameters), cv2.IMREAD_COLOR), dtype=np.uint8)
    return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB), dtype=np.uint8)


def _encoded(image: Image, extension: str, parameters: Sequence[int]) -> NDArray[np.uint8]:
    """The bytes of an image file; raises MissingDependencyError if OpenCV lacks the codec."""
    if not cv2.haveImageWriter(extension):
        raise MissingDependencyError(
            f"this build of OpenCV cannot write {extension}; pip install opencv-python-headless brings one that can"
        )
    return np.asarray(cv2.imencode(extension, cv2.cvtColor(image, cv2.COLOR_RGB2BGR), parameters)[1], dtype=np.uint8)
