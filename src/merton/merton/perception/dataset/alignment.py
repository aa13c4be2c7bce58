"""Levels of equal quality: for every type the severities at which a metric has the same value.

The paper's level 3 is near the original for some types and far from it for others. A quality level 1..5 is a value of a
metric instead, its target: the median over the types of the mean at the paper's level, over the references. Ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from merton.config import Model
from merton.errors import InputError
from merton.perception.dataset import layout
from merton.perception.dataset.intake import decode
from merton.perception.dataset.settings import code_sha256, versions
from merton.perception.distortion import DISTORTIONS, LEVELS, distort
from merton.perception.quality import METRICS, measure
from merton.processes import carried_out
from merton.progress import OnProgress, unseen
from merton.seeding import derive_seed

PICTURES = 8
"""Most reference pictures that are measured. Ours: their mean is within the tolerance on other pictures."""
GRID = (0.1, 0.25, 0.5, *np.arange(1.0, 5.01, 0.5).tolist())
"""Levels at which a type whose parameter is continuous is measured before the search."""
STEPS = 4
"""Further measurements towards each target."""
TOLERANCE = 0.25
"""Largest distance of a mean from its target, in distances to the nearest other target."""

QUALITY_LEVELS = LEVELS[1:]


class Reached(Model):
    """A type at a quality level.

    Attributes:
        severity: the level 0..5 of the type's own scale, as `distort` takes it.
        value: mean of the metric over the pictures.
    """

    severity: float
    value: float


class Alignment(Model):
    """The table of severities of equal quality.

    Attributes:
        metric: its name.
        targets: value at each of the quality levels 1..5.
        pictures: file name to SHA-256 of the reference pictures that were measured.
        types: type to quality level, as text, to its severity; levels that a type cannot reach are missing.
        left_out: type to sentences about those levels.
        not_monotone: types whose quality rises again with the level, by more than the tolerance.
        versions, code_sha256: of what decides pixels.
    """

    metric: str
    targets: tuple[float, ...]
    pictures: dict[str, str]
    types: dict[str, dict[str, Reached]]
    left_out: dict[str, tuple[str, ...]]
    not_monotone: tuple[str, ...]
    versions: dict[str, str]
    code_sha256: str

    def severities(self) -> dict[str, dict[int, float]]:
        """Type to quality level to severity."""
        return {name: {int(level): one.severity for level, one in found.items()} for name, found in self.types.items()}

    def content(self) -> bytes:
        """As a file."""
        return (self.model_dump_json(indent=1) + "\n").encode()


def align(
    pictures: Sequence[Path], metric: str = "ssim", *, workers: int | None = None, on_progress: OnProgress = unseen
) -> Alignment:
    """Find the severities of equal quality on reference pictures; same pictures, same table.

    Args:
        pictures: files; at most `PICTURES` of them are measured, those with the first hashes.
        metric: a name of `METRICS`.
        workers: processes; None: one for each usable core.
        on_progress: called with types done, and twice their number.

    Raises:
        InputError: no picture, or one that cannot be read or measured.
        UnknownNameError: no such metric.
        MissingDependencyError: the metric needs a package that is not installed.
    """
    METRICS[metric].build()
    hashes = {file: layout.sha256_of(file) or "" for file in pictures}
    chosen = sorted(pictures, key=lambda file: (hashes[file], file.name))[:PICTURES]
    if not chosen:
        raise InputError("levels of equal quality need at least one reference picture")
    names = list(DISTORTIONS)
    curves: dict[str, dict[float, float]] = {}
    for done, (place, curve) in enumerate(carried_out(_curve, [(name, chosen, metric) for name in names], workers), 1):
        curves[names[place]] = curve
        on_progress(done, 2 * len(names))
    targets = tuple(float(np.median([curves[name][float(level)] for name in names])) for level in QUALITY_LEVELS)
    if len(set(targets)) < len(targets) or not np.isfinite(targets).all():
        raise InputError(f"{metric} has no five different values on these pictures: align by another metric")
    jobs = [(name, chosen, metric, curves[name], targets) for name in names]
    found = {}
    for done, (place, reached) in enumerate(carried_out(_search, jobs, workers), 1):
        found[names[place]] = reached
        on_progress(len(names) + done, 2 * len(names))
    least = min(tolerances(targets))
    return Alignment(
        metric=metric,
        targets=targets,
        pictures={file.name: hashes[file] for file in chosen},
        types={name: found[name][0] for name in names},
        left_out={name: found[name][1] for name in names if found[name][1]},
        not_monotone=tuple(name for name in names if _departure(curves[name], targets) > least),
        versions=versions(),
        code_sha256=code_sha256(),
    )


def tolerances(targets: Sequence[float]) -> list[float]:
    """The largest distance from each target at which a type counts as aligned."""
    gaps = np.abs(np.diff(targets))
    return [TOLERANCE * float(min(gaps[max(at - 1, 0) : at + 1])) for at in range(len(targets))]


def _search(
    name: str, files: Sequence[Path], metric: str, curve: Mapping[float, float], targets: Sequence[float]
) -> tuple[dict[str, Reached], tuple[str, ...]]:
    """Quality level to severity, and a sentence for each level that the type cannot reach."""
    known = dict(curve)
    mean = partial(_mean, _decoded(files), name, metric)
    reached, missed = {}, []
    for level, target, tolerance in zip(QUALITY_LEVELS, targets, tolerances(targets), strict=True):
        if DISTORTIONS[name].continuous:
            _approach(known, target, tolerance / 5, mean)
        best = min((one for one in known if one > 0), key=lambda one: (abs(known[one] - target), one))
        if abs(known[best] - target) <= tolerance:
            reached[str(level)] = Reached(severity=best, value=known[best])
        else:
            missed.append(f"level {level} ({metric} {target:.4g}): nearest is {known[best]:.4g} at severity {best:g}")
    return reached, tuple(missed)


def _approach(known: dict[float, float], target: float, near: float, mean: Callable[[float], float]) -> None:
    """Measure further severities between the two neighbours that first enclose a target, until one is near it."""
    for _ in range(STEPS):
        levels = sorted(known)
        excess = [known[one] - target for one in levels]
        at = next((at for at in range(len(levels) - 1) if excess[at] * excess[at + 1] <= 0), None)
        if at is None or min(abs(one) for one in excess) <= near:
            return
        low, high = levels[at], levels[at + 1]
        fall = excess[at] - excess[at + 1]
        share = excess[at] / fall if fall and np.isfinite(fall) else 0.5  # the PSNR of the image itself is infinite
        severity = round(low + min(max(share, 0.05), 0.95) * (high - low), 4)
        if severity in known:
            return
        known[severity] = mean(severity)


def _curve(name: str, files: Sequence[Path], metric: str) -> dict[float, float]:
    """Severity to the mean of the metric, from 0 on."""
    images = _decoded(files)
    levels = GRID if DISTORTIONS[name].continuous else tuple(map(float, QUALITY_LEVELS))
    return {level: _mean(images, name, metric, level) for level in (0.0, *levels)}


def _mean(images: Sequence[Any], name: str, metric: str, severity: float) -> float:
    values = []
    for place, image in enumerate(images):
        rng = np.random.default_rng(derive_seed("alignment", place, name))
        values.append(measure(metric, distort(image, name, severity, rng), image))
    return round(float(np.mean(values)), 6)


def _departure(curve: Mapping[float, float], targets: Sequence[float]) -> float:
    """Largest distance of a curve from the monotone one that is nearest to it."""
    values = np.array([curve[level] for level in sorted(curve) if np.isfinite(curve[level])])
    monotone = isotonic_regression(values, increasing=targets[-1] > targets[0]).x
    return float(np.abs(values - monotone).max())


def _decoded(files: Sequence[Path]) -> list[Any]:
    found = []
    for file in files:
        try:
            found.append(decode(file.read_bytes()))
        except (InputError, OSError) as error:
            raise InputError(f"{file} cannot be read: {error}") from None
    return found
