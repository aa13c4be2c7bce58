"""Images of one exposure: depth beside colour whose stamps are not quite the same."""

from __future__ import annotations

from collections.abc import Iterable

from merton.errors import InputError
from merton.results.text import one_line

LARGEST_GAP_NS = 17_000_000
"""Largest gap between the stamps of colour and depth of one exposure [ns]. Ours: half a frame at 30 Hz, beyond which
another colour image is nearer at that rate; at a lower rate, where it could be more, depth of a moving thing would be
too old. Cameras that do not start both sensors at once, and drivers that stamp each image
themselves, are off by some milliseconds."""


def check_aligned(color_frame: str, depth_frame: str) -> None:
    """Raises InputError if an image of depth is of another frame than the colour image; an empty frame is not known.

    Depth of the same size may still be that of another sensor, whose pixels lie elsewhere.
    """
    if color_frame and depth_frame and color_frame != depth_frame:
        raise InputError(
            f"depth is in the frame {one_line(depth_frame)!r}, colour in {one_line(color_frame)!r}: give depth that is "
            f"aligned to colour, of realsense-ros aligned_depth_to_color"
        )


def nearest(stamps_ns: Iterable[int], at_ns: int, largest_gap_ns: int | None = LARGEST_GAP_NS) -> int | None:
    """The stamp that is nearest to an instant [ns]; None if there is none, or none within the largest gap."""
    best = min(stamps_ns, key=lambda stamp: abs(stamp - at_ns), default=None)
    if best is None or (largest_gap_ns is not None and abs(best - at_ns) > largest_gap_ns):
        return None
    return best
