"""Fit the model of undistorted images of `niqe-merton`: `perception/quality/niqe_merton.npz`, in some two minutes.

    python tools/train/fit_niqe.py [--scenes 200]

Mittal et al. (2013), section II.C: the mean and covariance of the features of sharp blocks. The images are those of the
three cameras in scenes of the split "train", which neither the sample nor any test shows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from merton.perception.quality import naturalness
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.varied import make_layout

OUT = Path(naturalness.__file__).with_name("niqe_merton.npz")
CAMERAS = ("wrist", "top", "side")


def main(scenes: int) -> None:
    """Render, fit and write."""
    cell, cameras = SimulatedCell(), SceneCameras()
    sharp = []
    try:
        for seed in range(scenes):
            task = f"train-{next(iter(make_layout('train', seed).jobs))}"
            scene = cell.reset(task, seed)
            for camera in CAMERAS:
                image = cameras.render(scene.task, seed, cell.qpos, camera).color
                features, sharpness = naturalness.niqe_features(image)
                kept = (sharpness > naturalness.SHARP * sharpness.max()) & np.isfinite(features).all(axis=1)
                sharp.append(features[kept])
            print(f"{seed + 1} of {scenes} scenes", end="\r", flush=True)
    finally:
        cameras.close()
    blocks = np.concatenate(sharp)
    np.savez(OUT, mean=blocks.mean(axis=0), covariance=np.cov(blocks, rowvar=False), blocks=len(blocks), scenes=scenes)
    print(f"{len(blocks)} blocks of {scenes} scenes: {OUT}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=int, default=200)
    main(parser.parse_args().scenes)
