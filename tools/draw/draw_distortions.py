"""Draws every distortion at three levels: `python tools/draw/draw_distortions.py docs/images/distortions.jpg`.

The picture is one of the embedded cell, 640 pixels wide, as levels are defined at that width; its middle is shown pixel
for pixel.
"""

from __future__ import annotations

import sys

import cv2
import numpy as np

from merton.perception.distortion import DISTORTIONS, distort
from merton.perception.quality.fidelity import psnr, ssim
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.world.observation import Image

TASK, SEED, CAMERA = "val-cover", 2, "top"
LEVELS, COLUMNS = (1, 3, 5), 3
CROP = (slice(180, 315), slice(232, 420))
"""Rows and columns of the picture that are shown."""
INK, PAPER, TEXT_PX, GAP_PX = (40, 40, 40), (255, 255, 255), 22, 26
"""Colours, the height of a line of text and the gap between tiles [px]."""
LEGEND = "number, name and family of a distortion; below a picture, its level: PSNR [dB], SSIM over the whole picture"


def main(path: str) -> None:
    """Write one image: a tile a type, in the order of the paper, down the columns."""
    cell, cameras = SimulatedCell(), SceneCameras(640, 480, samples=8)
    cell.reset(TASK, SEED)
    picture = np.ascontiguousarray(cameras.render(TASK, SEED, cell.qpos, CAMERA).color)
    cameras.close()
    tiles = [tile(picture, name) for name in DISTORTIONS]
    rows = len(tiles) // COLUMNS
    columns = [np.vstack(tiles[start : start + rows]) for start in range(0, len(tiles), rows)]
    sheet = lettered(np.hstack(columns), LEGEND, below=False)
    sheet = cv2.copyMakeBorder(sheet, 8, 0, GAP_PX, 0, cv2.BORDER_CONSTANT, value=PAPER)
    cv2.imwrite(path, cv2.cvtColor(sheet, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 62])


def tile(picture: Image, name: str) -> Image:
    """One type with its title, its three levels, and their PSNR [dB] and SSIM over the whole picture."""
    entry, shown = DISTORTIONS[name], []
    for level in LEVELS:
        image = distort(picture, name, level, np.random.default_rng(SEED))
        label = f"{level}: {psnr(image, picture):.1f} dB, {ssim(image, picture):.2f}"
        shown.append(lettered(image[CROP], label, below=True))
    return lettered(np.hstack(shown), f"{entry.id} {name}, {entry.category}", below=False)


def lettered(image: Image, text: str, *, below: bool) -> Image:
    """The image with a line of text above or below it, and a gap at its right and at its foot."""
    top, bottom = (0, TEXT_PX) if below else (TEXT_PX, GAP_PX)
    framed = cv2.copyMakeBorder(image, top, bottom, 0, 4 if below else GAP_PX, cv2.BORDER_CONSTANT, value=PAPER)
    at = (0, framed.shape[0] - 6 if below else TEXT_PX - 7)
    cv2.putText(framed, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.5, INK, 1, cv2.LINE_AA)
    return np.asarray(framed, np.uint8)


if __name__ == "__main__":
    main(sys.argv[1])
