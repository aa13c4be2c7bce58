"""The settings of a build: besides the references, all that the bytes of a dataset depend on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import scipy
import simplejpeg

import merton
from merton.errors import InputError, UnknownNameError
from merton.perception.distortion import DISTORTIONS, REFERENCE_WIDTH_PX
from merton.perception.quality import METRICS

ALIGNED = "aligned"
LEVEL_CHOICES = ("random", "all", ALIGNED)
"""One random level per reference and type, as in Embodied-IQA, section 3.1, or all five; "aligned", or
"aligned:METRIC": five levels of equal quality, see `alignment`, by SSIM or another metric."""

REFERENCE_METRICS = ("blur_effect", "noise_sigma")
"""Metrics of every reference: lower is better, and no other image is needed."""

_SHOWS_OR_SERVES = ("depth.py", "faults.py", "gallery.py", "setting.py", "stream.py", "temporal.py")
"""Files of `perception/distortion` that decide no pixel of a dataset."""
_SHARED = (
    *("perception/attributes.py", "perception/quality/fidelity.py", "perception/quality/faults.py"),
    *("seeding.py", "world/opencv.py"),
)
"""Files elsewhere that decide pixels or values of the manifest."""


def build_settings(levels: str, seed: int, bounds: Mapping[str, float]) -> dict[str, Any]:
    """The content of `build.json`.

    Raises:
        InputError: unknown levels or metric, an unknown metric in `bounds`, or a bound that is not finite.
    """
    choice, _, metric = levels.partition(":")
    if choice not in LEVEL_CHOICES or (metric and choice != ALIGNED):
        raise UnknownNameError("choice of levels", levels, LEVEL_CHOICES)
    if choice == ALIGNED and metric:
        METRICS[metric].build()
    for name, bound in bounds.items():
        if name not in REFERENCE_METRICS:
            raise UnknownNameError("metric of references", name, REFERENCE_METRICS)
        if not math.isfinite(bound):
            raise InputError(f"the bound of {name} must be a finite number, got {bound!r}")
    return {
        "levels": levels,
        "seed": seed,
        "bounds": dict(bounds),
        "reference_width_px": REFERENCE_WIDTH_PX,
        "distortions": {name: [float(level) for level in entry.levels] for name, entry in DISTORTIONS.items()},
        "versions": versions(),
        "code_sha256": code_sha256(),
    }


def versions() -> dict[str, str]:
    """Versions of Merton and of the libraries that decide pixels, by name."""
    return {
        "merton": merton.__version__,
        "numpy": np.__version__,
        "opencv": cv2.__version__,
        "scipy": scipy.__version__,
        "simplejpeg": simplejpeg.__version__,
    }


def code_sha256() -> str:
    """Hash of the files that decide pixels and values: a version does not change when a distortion is edited."""
    library = Path(merton.__file__).parent
    distortions = sorted((library / "perception/distortion").glob("*.*"))
    digest = hashlib.sha256()
    for file in (*distortions, *(library / name for name in _SHARED)):
        if file.name not in _SHOWS_OR_SERVES:
            digest.update(file.read_bytes())
    return digest.hexdigest()
