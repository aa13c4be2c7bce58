"""CNNIQA, trained from scratch: Kang, Ye, Li and Doermann, "Convolutional neural networks for no-reference image
quality assessment" (CVPR 2014).

Patches of 32 x 32 pixels of the grey image, normalised by their neighbourhood (7 x 7 pixels, C = 1); 50 kernels of
7 x 7, of each map the smallest and the largest value, two layers of 800 with ReLU and dropout 0.5, a linear output, and
the mean absolute error. A patch's target is its image's label, an image's score the mean over its patches. Ours: AdamW
instead of gradient descent with momentum, and of each image 24 patches on an even grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.perception.quality.learned.base import TRAINABLE
from merton.perception.quality.learned.metric import LearnedMetric
from merton.perception.quality.learned.prepared import Array, Item, Preparation
from merton.perception.quality.pairs import ImagePair
from merton.world.observation import Image

if TYPE_CHECKING:
    from torch import nn

    from merton.perception.quality.learned.train import Recipe

PATCH_PX = 32
ROWS, COLUMNS = 4, 6
"""Of the grid of patches."""
_NEIGHBOURHOOD = (7, 7)


def patches(image: Image) -> NDArray[np.float16]:
    """(24, 32, 32) normalised patches of an image (height, width, 3) uint8 RGB, which overlap if it is small.

    Raises InputError for an image that is smaller than a patch.
    """
    height, width = image.shape[:2]
    if min(height, width) < PATCH_PX:
        raise InputError(f"cnniqa needs at least {PATCH_PX} x {PATCH_PX} pixels, got {width} x {height}")
    normal = normalised(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32))
    tops = np.linspace(0, height - PATCH_PX, ROWS).round().astype(int)
    lefts = np.linspace(0, width - PATCH_PX, COLUMNS).round().astype(int)
    cut = [normal[top : top + PATCH_PX, left : left + PATCH_PX] for top in tops for left in lefts]
    return np.stack(cut).astype(np.float16)


def normalised(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    """(grey - mean) / (deviation + 1) with the mean and deviation of every pixel's neighbourhood; grey is 0..255."""
    mean = cv2.blur(grey, _NEIGHBOURHOOD, borderType=cv2.BORDER_REFLECT)
    square = cv2.blur(grey * grey, _NEIGHBOURHOOD, borderType=cv2.BORDER_REFLECT)
    deviation = np.sqrt(np.maximum(square - mean * mean, 0))
    return np.asarray((grey - mean) / (deviation + 1), np.float32)


PATCHES = Preparation("cnniqa-patches-1", patches)


class CNNIQA(LearnedMetric):
    """cnniqa."""

    name = "cnniqa"
    needs_reference = False
    description = "patches through one convolution, Kang et al. 2014; trained from scratch"
    ranked = False
    image_ms = 2.6

    def items(self, pair: ImagePair) -> tuple[Item, ...]:
        """The image's patches."""
        return ((PATCHES, (pair.image,)),)

    def recipe(self) -> Recipe:
        """Few epochs: an epoch has several patches of every image."""
        from merton.perception.quality.learned.train import Recipe

        return Recipe(epochs=4, batch=16, rate=2e-3, decay=1e-4)

    def network(self, arrays: Sequence[tuple[Array, ...]]) -> nn.Module:
        """The network."""
        from merton.perception.quality.learned import patch_network

        return patch_network.PatchNetwork()


TRAINABLE.add(CNNIQA.name, CNNIQA())
