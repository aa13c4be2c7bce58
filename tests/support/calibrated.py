"""Cells whose arm has a made-up calibration of the size that published ones have."""

from __future__ import annotations

from dataclasses import astuple
from math import pi
from pathlib import Path

import numpy as np
from ruamel.yaml import YAML
from scipy.spatial.transform import Rotation

from merton.world.arms import ARMS
from merton.world.cell import cell_file
from merton.world.kinematic_calibration import LINKS


def calibration_of(model: str, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """The content of `ur_calibration`'s file, by the rule of the controller's own numbers.

    Those are differences to theta [rad], a [m], d [m] and alpha [rad] of each row of the standard Denavit-Hartenberg
    convention; the last row's a and alpha have none. A link of the file goes from x and alpha of one row to theta and d
    of the next.
    """
    d1, a2, a3, d4, d5, d6 = astuple(ARMS[model].lengths)
    random = np.random.default_rng(seed)
    theta = random.normal(scale=1e-3, size=6)
    a = np.array([0, a2, a3, 0, 0, 0]) + random.normal(scale=4e-4, size=6) * [1, 1, 1, 1, 1, 0]
    d = np.array([d1, 0, 0, d4, d5, d6]) + random.normal(scale=4e-4, size=6)
    alpha = np.array([pi / 2, 0, 0, pi / 2, -pi / 2, 0]) + random.normal(scale=1e-3, size=6) * [1, 1, 1, 1, 1, 0]
    links = {}
    for n, link in enumerate(LINKS):
        turned = Rotation.from_euler("x", alpha[n - 1] if n else 0.0)
        x, y, z = np.add(turned.apply([0.0, 0.0, d[n]]), [a[n - 1] if n else 0.0, 0.0, 0.0])
        roll, pitch, yaw = (turned * Rotation.from_euler("z", theta[n])).as_euler("xyz")
        values = {"x": x, "y": y, "z": z, "roll": roll, "pitch": pitch, "yaw": yaw}
        links[link] = {key: float(value) for key, value in values.items()}
    return {"kinematics": links}


def calibrated_cell(model: str, folder: Path, seed: int = 0) -> Path:
    """A cell's file in `folder`, with that arm and a calibration beside it."""
    yaml = YAML()
    cell = yaml.load(cell_file())
    cell["robot"]["model"] = model
    cell["robot"]["calibration"] = "my_arm.yaml"
    yaml.dump(cell, folder / "cell.yaml")
    yaml.dump(calibration_of(model, seed), folder / "my_arm.yaml")
    return folder / "cell.yaml"
