"""The camera of pictures that a benchmark makes at sizes of its own."""

from __future__ import annotations

from merton.world.observation import Intrinsics


def lens_of(width: int, height: int) -> Intrinsics:
    """Intrinsics of a picture of this size [px]: 90 degrees across, as `example_observation` has, square pixels.

    A view refuses a picture whose intrinsics are for another size.
    """
    return Intrinsics(width, height, width / 2, width / 2, (width - 1) / 2, (height - 1) / 2)
