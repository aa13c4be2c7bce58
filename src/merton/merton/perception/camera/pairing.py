"""Images of one exposure: depth beside colour whose stamps are not quite the same."""

from __future__ import annotations

from collections.abc import Iterable

LARGEST_GAP_NS = 17_000_000
"""How far apart the stamps of colour and depth of one exposure may be [ns]. Ours: half a frame at 30 Hz, beyond which
another colour image is nearer. Cameras that do not start both sensors at once, and drivers that stamp each image
themselves, are off by some milliseconds."""


def nearest(stamps_ns: Iterable[int], at_ns: int, largest_gap_ns: int | None = LARGEST_GAP_NS) -> int | None:
    """The stamp that is nearest to an instant [ns]; None if there is none, or none within the largest gap."""
    best = min(stamps_ns, key=lambda stamp: abs(stamp - at_ns), default=None)
    if best is None or (largest_gap_ns is not None and abs(best - at_ns) > largest_gap_ns):
        return None
    return best
