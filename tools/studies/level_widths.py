"""Does a level of distortion mean the same at every width? Prints the SSIM of docs/reference/distortions_measured.md.

    .venv/bin/python tools/studies/level_widths.py [--kadid] [--json OUT]

Every picture exists at 1280 x 720, is averaged down to 640 and from there to 424 pixels. The picture and its distorted
copy go down the same steps and are compared at 424 pixels, the only width that holds no detail which another lacks: the
undistorted picture is then the same whichever width was distorted. A cell is the mean over the pictures.
"""

from __future__ import annotations

import argparse
import json
import resource
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from merton.perception.dataset.sample import photographs
from merton.perception.distortion import DISTORTIONS, LevelSet, distort
from merton.perception.images import read_image
from merton.perception.quality import measure
from merton.world.observation import Image

SIZES_PX = ((1280, 720), (640, 360), (424, 240))
"""(width, height) of the steps."""
PHOTOGRAPHS = ("chelsea", "coffee", "flower", "motorcycle_left")
SCENES = (("pick", 0, "top"), ("pour", 2, "wrist"))
"""Task, scene and camera of the rendered pictures."""


def real_pictures(softened_px: float) -> Iterator[tuple[str, Image]]:
    """Photographs of the built-in sample, mirrored at their borders up to 1280 x 720.

    They are 300 to 740 pixels wide and were made smaller from larger ones, so they are sharper than any camera's own
    picture. Mirrored instead of enlarged, they keep detail in every pixel; `--softened-px` blurs them as the lens and
    the colour filter of a camera do (ours: a Gaussian of 0.7 px).
    """
    width, height = SIZES_PX[0]
    for file in (file for file, _ in photographs() if file.stem in PHOTOGRAPHS):
        small = read_image(file)
        right, below = max(0, width - small.shape[1]), max(0, height - small.shape[0])
        wide = cv2.copyMakeBorder(small, 0, below, 0, right, cv2.BORDER_REFLECT)
        wide = wide[:height, :width]
        if softened_px:
            wide = cv2.GaussianBlur(wide, (0, 0), softened_px)
        yield file.stem, np.asarray(wide, np.uint8)


def rendered_pictures() -> Iterator[tuple[str, Image]]:
    """Scenes of the embedded cell at 1280 x 720."""
    from merton.simulation.cameras import SceneCameras
    from merton.simulation.cell import SimulatedCell

    cell, cameras = SimulatedCell(), SceneCameras(*SIZES_PX[0])
    try:
        for task, seed, camera in SCENES:
            scene = cell.reset(task, seed)
            yield f"{task} {camera}", cameras.render(scene.task, scene.seed, cell.qpos, camera).color
    finally:
        cameras.close()


def averaged_to(image: Image, width_px: int) -> Image:
    """An image of one of the steps, averaged down step by step."""
    for size in SIZES_PX:
        if width_px <= size[0] < image.shape[1]:
            image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA))
    return image


def likeness(picture: Image, name: str, level: float, width_px: int, levels: LevelSet) -> float:
    """SSIM at 424 pixels of a picture (720, 1280, 3) and its copy that was distorted at `width_px`."""
    distorted = distort(averaged_to(picture, width_px), name, level, np.random.default_rng(0), levels=levels)
    return measure("ssim", averaged_to(distorted, 424), averaged_to(picture, 424))


def main() -> None:
    """Print the table; with --json also keep every value."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--kadid", action="store_true", help="KADID-10k's own level values")
    arguments.add_argument("--names", nargs="+", default=list(DISTORTIONS))
    arguments.add_argument("--softened-px", type=float, default=0.7, help="blur of the photographs [px], or 0")
    arguments.add_argument("--json", type=Path)
    chosen = arguments.parse_args()
    cv2.setNumThreads(1)
    levels: LevelSet = "kadid" if chosen.kadid else "merton"
    widths = [width for width, _ in reversed(SIZES_PX)]
    pictures = [*real_pictures(chosen.softened_px), *rendered_pictures()]
    print(f"{len(pictures)} pictures: {', '.join(name for name, _ in pictures)}")
    print(f"| id | name | SSIM at {', '.join(map(str, widths))} px of levels 1 .. 5 | largest difference |")
    print("|---|---|---|---|")
    table, worst = {}, 0.0
    for name in chosen.names:
        entry = DISTORTIONS[name]
        if chosen.kadid and entry.kadid is None:
            continue
        values = np.array(
            [
                [[likeness(picture, name, level, width, levels) for _, picture in pictures] for width in widths]
                for level in range(1, 6)
            ]
        )  # (level, width, picture)
        means = values.mean(axis=2)
        spread = float(np.ptp(means, axis=1).max())
        worst = max(worst, spread)
        cells = " · ".join("/".join(f"{mean:.3f}".lstrip("0") for mean in row) for row in means)
        print(f"| {entry.id} | `{name}` | {cells} | {spread:.3f} |", flush=True)
        table[name] = values.tolist()
    print(f"largest difference of a mean: {worst:.4f}; {resource.getrusage(resource.RUSAGE_SELF).ru_utime:.0f} s")
    if chosen.json:
        chosen.json.write_text(json.dumps({"widths": widths, "ssim": table}))


if __name__ == "__main__":
    main()
