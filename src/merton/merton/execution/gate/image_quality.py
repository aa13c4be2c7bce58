"""The gate's look at the images behind a chunk: are they good enough to act on?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from merton.errors import ErrorCode
from merton.execution.gate.safety import Verdict


@dataclass(frozen=True)
class ImageQuality:
    """The quality of an image, by a metric that needs no reference image.

    Attributes:
        value: in the metric's own units.
        metric: its name.
        higher_is_better: whether a higher value means a better image.
    """

    value: float
    metric: str
    higher_is_better: bool

    def is_worse_than(self, limit: float) -> bool:
        """Whether the image is worse than one of the value `limit`; NaN is worse than everything."""
        return not (self.value >= limit if self.higher_is_better else self.value <= limit)


def quality_verdict(minimum: float, images: Mapping[str, ImageQuality | None] | None) -> Verdict:
    """Whether a chunk may be carried out, by the images that it was decided on. Ours: each of them must be good enough.

    Args:
        minimum: the worst value that passes, in the metric's own units; of a metric of which lower is better it is the
            highest value that passes.
        images: camera to the quality of its image, None where that is not known; None altogether if it is not known
            which images there were. Empty for a chunk that was decided on no image.

    Returns:
        OK; `IMAGE_QUALITY` if an image is too bad; `STALE` if a quality is not known: that is no fault of the image.
    """
    if images is None:
        return Verdict(ErrorCode.STALE, "min_image_quality is set, and the chunk does not name the images it is about")
    for camera, quality in images.items():
        if quality is None:
            return Verdict(
                ErrorCode.STALE, f"the quality of the image of camera {camera!r} is not known: does quality_node run?"
            )
    for camera, quality in images.items():
        if quality is not None and quality.is_worse_than(minimum):
            return Verdict(
                ErrorCode.IMAGE_QUALITY,
                f"the image of camera {camera!r} has the quality {quality.value:.3g} by {quality.metric}, worse than "
                f"min_image_quality {minimum:g}",
            )
    return Verdict()
