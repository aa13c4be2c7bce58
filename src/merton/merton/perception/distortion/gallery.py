"""All distortions of one image: each type at each level, with PSNR and SSIM, as a page or as one picture."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np

from merton.errors import InputError
from merton.pages.environment import environment
from merton.perception.distortion import DISTORTIONS, Distortion, distort
from merton.perception.images import encode_image
from merton.perception.quality import measure
from merton.progress import OnProgress, unseen
from merton.seeding import generator
from merton.world.observation import Image

_LABEL_PX = 150
_CAPTION_PX = 16
_PAGE_TILE_PX = (216, 162)
"""Largest width and height of a picture on the page, the whole as well as the middle: they bound the page's size."""
_PICTURE_TILE_PX = (160, 120)
"""Largest width and height of a tile, which shows the middle of an image."""
_PICTURE_ROWS = 10
"""Types in a block; blocks stand side by side, because one column of all types is too high for a screen."""

Cell = tuple[int, Image, float, float]
"""Level, distorted image, PSNR [dB], SSIM."""


def gallery(
    image: Image,
    path: Path,
    seed: int = 0,
    levels: Sequence[int] = (1, 2, 3, 4, 5),
    on_progress: OnProgress = unseen,
    name: str = "",
) -> None:
    """Write the gallery of an image.

    A page has the whole picture, made smaller, and its middle, pixel for pixel. It is about 4 MB large for a
    photograph and never above 15 MB, whatever the size of the image.

    Args:
        image: (height, width, 3) uint8 RGB. All of it is measured; its middle is shown, pixel for pixel, because
            noise and the artefacts of codecs vanish from an image that is scaled down.
        path: ends in .html (one file that works offline), .png or .jpg.
        seed: of the stochastic types.
        levels: the columns.
        on_progress: called with the number of distorted images, done and in all.
        name: of the picture, for the page's title.

    Raises:
        InputError: another ending, or a folder that does not exist or is not writable.
    """
    if path.suffix not in (".html", ".png", ".jpg"):
        raise InputError(f"a gallery is .html, .png or .jpg, not {path.name!r}")
    if not path.parent.is_dir():  # checked before the work, not after it
        raise InputError(f"cannot write {path}: there is no folder {str(path.parent)!r}")
    total = len(DISTORTIONS) * len(levels)
    count = itertools.count(1)

    def cells(entry: Distortion) -> list[Cell]:
        found = []
        for cell in _cells(image, entry, seed, levels):
            found.append(cell)
            on_progress(next(count), total)
        return found

    rows = ((entry, cells(entry)) for entry in DISTORTIONS.values())
    if path.suffix == ".html":
        content = _as_page(image, rows, name).encode()
    else:
        content = encode_image(_as_picture(rows), path.suffix, jpeg_quality=80)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _cells(image: Image, entry: Distortion, seed: int, levels: Sequence[int]) -> Iterator[Cell]:
    for level in levels:
        distorted = distort(image, entry.name, level, generator(seed, entry.name))
        yield level, distorted, measure("psnr", distorted, image), measure("ssim", distorted, image)


def _middle(image: Image, size_px: tuple[int, int]) -> Image:
    """The middle of an image, at most `size_px` (width, height), as a view."""
    width, height = (min(side, limit) for side, limit in zip(image.shape[1::-1], size_px, strict=True))
    top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
    return image[top : top + height, left : left + width]


def _as_page(image: Image, rows: Iterable[tuple[Distortion, list[Cell]]], name: str) -> str:
    shown = []
    for entry, cells in rows:
        tiles = [
            {
                "level": level,
                "value": f"{entry.levels[level - 1]:g}",
                "psnr": f"{psnr:.1f}",
                "ssim": f"{ssim:.3f}",
                "whole": _jpeg(_smaller(picture)),
                "middle": _jpeg(_middle(picture, _PAGE_TILE_PX)),
            }
            for level, picture, psnr, ssim in cells
        ]
        shown.append((entry, tiles))
    return (
        environment("merton.perception.distortion")
        .get_template("gallery_page.html.j2")
        .render(
            title=f"Distortions of {name}" if name else "Distortions of a picture",
            rows=shown,
            levels=len(shown[0][1]) if shown else 0,
            size=image.shape[1::-1],
            original=(_jpeg(_smaller(image)), _jpeg(_middle(image, _PAGE_TILE_PX))),
        )
    )


def _smaller(image: Image) -> Image:
    """The whole image at `_PAGE_TILE_PX` at most; never larger than it is."""
    scale = min(1.0, *(limit / side for limit, side in zip(_PAGE_TILE_PX, image.shape[1::-1], strict=True)))
    size_px = [max(1, round(side * scale)) for side in image.shape[1::-1]]
    return np.asarray(cv2.resize(image, size_px, interpolation=cv2.INTER_AREA), np.uint8)


def _jpeg(picture: Image) -> str:
    content = base64.b64encode(encode_image(picture, ".jpg", jpeg_quality=85)).decode()
    return f"data:image/jpeg;base64,{content}"


def _as_picture(rows: Iterable[tuple[Distortion, list[Cell]]]) -> Image:
    strips = []
    for entry, cells in rows:
        tiles = [_middle(picture, _PICTURE_TILE_PX) for _, picture, _, _ in cells]
        height, width = tiles[0].shape[:2]
        strip = np.full((height + _CAPTION_PX, _LABEL_PX + len(tiles) * (width + 2), 3), 255, np.uint8)
        _write(strip, f"{entry.id} {entry.name}", 2, 14)
        _write(strip, entry.category, 2, 30)
        for column, (tile, (level, _, psnr, ssim)) in enumerate(zip(tiles, cells, strict=True)):
            left = _LABEL_PX + column * (width + 2)
            strip[:height, left : left + width] = tile
            _write(strip, f"{level}: {psnr:.1f} dB, {ssim:.3f}", left, height + 12)
        strips.append(strip)
    strips += [np.full_like(strips[0], 255)] * (-len(strips) % _PICTURE_ROWS)  # the last block is as high as the others
    blocks = [np.concatenate(strips[first : first + _PICTURE_ROWS]) for first in range(0, len(strips), _PICTURE_ROWS)]
    return np.concatenate(blocks, axis=1)


def _write(image: Image, text: str, x: int, y: int) -> None:
    cv2.putText(image, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.36, (0, 0, 0), 1, cv2.LINE_AA)
