"""The choice of pictures in a dataset: the cameras, and the size, for policies that train on small ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from merton.decision.models.images import even_size, shrunk
from merton.errors import InputError
from merton.world.observation import Image

LEAST_PX = 16


@dataclass(frozen=True)
class PictureChoice:
    """The pictures that a dataset has.

    Attributes:
        cameras: their names; none means all.
        width_px: of each picture, an even number; None leaves them as they are. Pictures are never enlarged.
    """

    cameras: tuple[str, ...] = ()
    width_px: int | None = None

    def __post_init__(self) -> None:
        if self.width_px is not None and (self.width_px < LEAST_PX or self.width_px % 2):
            raise InputError(
                f"pictures of a video have an even width of at least {LEAST_PX} pixels, got {self.width_px}"
            )

    def of(self, cameras: Sequence[str]) -> tuple[str, ...]:
        """Those of these cameras that are chosen, in this order.

        Raises:
            InputError: a chosen camera is not among them; the sentence names them.
        """
        unknown = [camera for camera in self.cameras if camera not in cameras]
        if unknown:
            raise InputError(f"there is no camera {unknown[0]!r}; choose of {', '.join(cameras)}")
        return tuple(camera for camera in cameras if not self.cameras or camera in self.cameras)

    def sized(self, images: Iterable[Image]) -> Iterator[Image]:
        """(height, width, 3) uint8 images, each of `width_px`, as a policy that learned from them will get them."""
        for image in images:
            yield image if self.width_px is None else shrunk(image, even_size(image, self.width_px))

    def asked(self) -> dict[str, Any]:
        """JSON values that tell the choice; nothing if it is all pictures as they are, as in older datasets."""
        return {} if self == ALL_PICTURES else {"pictures_chosen": asdict(self)}


ALL_PICTURES = PictureChoice()
