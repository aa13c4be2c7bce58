"""Images whose quality is judged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ImagePair:
    """A distorted image and the image that it was made from, as files.

    Attributes:
        image: the distorted image.
        reference: the undistorted one, of the same size; None where it is not known.
    """

    image: Path
    reference: Path | None = None
