"""Statistics of features as LeRobot reads them to normalize states, actions and pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SHARES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
"""Names of quantiles."""
Statistics = dict[str, list]
"""Name to a value for each number of a feature; `count` to one number, that of the frames."""


def of_values(values: NDArray) -> Statistics:
    """Of (n,) or (n, d) numbers, n >= 1: exact, over all frames."""
    rows = np.asarray(values, dtype=float).reshape(len(values), -1)
    quantiles = np.quantile(rows, list(SHARES.values()), axis=0)
    return {
        "min": rows.min(axis=0).tolist(),
        "max": rows.max(axis=0).tolist(),
        "mean": rows.mean(axis=0).tolist(),
        "std": rows.std(axis=0).tolist(),
        "count": [len(rows)],
        **{name: quantile.tolist() for name, quantile in zip(SHARES, quantiles, strict=True)},
    }


def of_shades(shades: NDArray[np.int64], frames: int) -> Statistics:
    """Of all pixels of so many pictures, by channel in the shape (3, 1, 1), 0 black .. 1 full.

    Args:
        shades: (3, 256), how many values of each brightness there are.
    """
    brightness = np.arange(256) / 255
    total = shades.sum(axis=1)
    mean = shades @ brightness / total
    below = np.cumsum(shades, axis=1)
    found = {
        "min": brightness[(shades > 0).argmax(axis=1)],
        "max": brightness[255 - (shades[:, ::-1] > 0).argmax(axis=1)],
        "mean": mean,
        "std": np.sqrt(np.maximum(shades @ brightness**2 / total - mean**2, 0.0)),
        **{name: brightness[(below >= share * total[:, None]).argmax(axis=1)] for name, share in SHARES.items()},
    }
    return {name: values.reshape(3, 1, 1).tolist() for name, values in found.items()} | {"count": [frames]}
