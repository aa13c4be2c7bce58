"""The monitor: probability that a trial succeeds, from its first images and the policy's disagreement with itself.

Ours: a logistic regression, because a few hundred trials carry no more; every weight can be read, and its output is a
probability. Values that spread over orders of magnitude enter by their logarithm; attributes of which both too little
and too much is bad (darkness and glare) also by their square.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from merton.errors import InputError
from merton.perception.quality import METRICS
from merton_studies.iqa.gate_table import ATTRIBUTES, DISAGREEMENT

Floats = NDArray[np.float64]

RIDGE = 3.0
"""Penalty on the squares of the weights of standardised inputs, in trials. Ours."""
FURTHEST = 4.0
"""Standard deviations beyond which an input counts no further: no image is so odd that it outvotes all else."""

_LOGARITHMIC = {
    "noise_sigma": 0.1, "chrominance": 1.0, "blur": 1.0, "spatial_information": 1.0,
    "disagreement_m": 1e-5, "disagreement_rad": 1e-5,
}  # fmt: skip
"""Name to the value that is added before the logarithm: below it, differences are of no account."""
_SQUARED = ("luminance", "contrast", "chrominance", "blur")


@dataclass(frozen=True)
class MonitorModel:
    """A fitted monitor.

    Attributes:
        names: the values it looks at.
        center, scale: (inputs,) mean and standard deviation of the inputs where it was fitted.
        weights: (inputs,) of the standardised inputs, in log odds of success.
        intercept: log odds of success at the means.
    """

    names: tuple[str, ...]
    center: Floats
    scale: Floats
    weights: Floats
    intercept: float

    def chance(self, values: Mapping[str, Floats]) -> Floats:
        """(n,) the probability that a trial succeeds, 0..1, from the values (n,) of each name."""
        inputs = np.clip((_inputs(self.names, values) - self.center) / self.scale, -FURTHEST, FURTHEST)
        return np.asarray(expit(self.intercept + inputs @ self.weights))


def inputs_of(names: Sequence[str], images_only: bool = False) -> tuple[str, ...]:
    """The values of a table that a monitor may look at: those that need no reference image.

    Args:
        images_only: without the policy's disagreement.
    """
    return tuple(
        name
        for name in names
        if (name in METRICS and not METRICS[name].needs_reference)
        or name in ATTRIBUTES
        or (name in DISAGREEMENT and not images_only)
    )


def fit(names: Sequence[str], values: Mapping[str, Floats], failed: NDArray[np.bool_]) -> MonitorModel:
    """The monitor of most likelihood under a ridge penalty; the same trials in any order give the same to rounding.

    Args:
        names: values to look at, at least one.
        values: (n,) of each.
        failed: (n,) whether the trial failed.

    Raises:
        InputError: no value to look at, or outcomes that are all equal.
    """
    if not names:
        raise InputError("a monitor needs a value that can be known without a reference image")
    if failed.all() or not failed.any():
        raise InputError(f"all {len(failed)} trials {'fail' if failed.all() else 'succeed'}: nothing can be learned")
    raw = _inputs(names, values)
    center, scale = raw.mean(axis=0), raw.std(axis=0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    inputs = np.clip((raw - center) / scale, -FURTHEST, FURTHEST)
    sign = np.where(failed, -1.0, 1.0)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        margin = sign * (parameters[0] + inputs @ parameters[1:])
        pull = -sign * expit(-margin)
        value = float(np.logaddexp(0.0, -margin).sum() + 0.5 * RIDGE * (parameters[1:] ** 2).sum())
        gradient = np.concatenate(([pull.sum()], inputs.T @ pull + RIDGE * parameters[1:]))
        return value, gradient

    found = minimize(loss, np.zeros(inputs.shape[1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return MonitorModel(tuple(names), center, scale, found.x[1:], float(found.x[0]))


def _inputs(names: Sequence[str], values: Mapping[str, Floats]) -> Floats:
    """(n, inputs)."""
    columns = []
    for name in names:
        value = np.asarray(values[name], np.float64)
        if name in _LOGARITHMIC:
            value = np.log(np.maximum(value, 0.0) + _LOGARITHMIC[name])
        columns.append(value)
        if name in _SQUARED:
            columns.append((value - _TYPICAL[name]) ** 2)
    return np.stack(columns, axis=1)


_TYPICAL = {"luminance": 0.6, "contrast": 0.12, "chrominance": 3.7, "blur": 6.0}
"""About the means in undistorted images of the cell, on the scale of the inputs: where the squares have their least."""
