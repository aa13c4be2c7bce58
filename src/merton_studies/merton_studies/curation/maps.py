"""Flat maps of the questions of each dimension, with those that are kept (A2Eval, Figures 3 and 6).

The paper draws UMAP; these are the first two principal components, and say so: they bend nothing, need no seed, and
show how little of the differences two directions hold.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import require
from merton_studies.curation.sampling import Vectors, by_content, one_thread
from merton_studies.curation.taxonomy import OTHER

_DIGITS = 4


def maps(assigned: Sequence[str], vectors: Vectors, kept: Collection[int]) -> dict[str, dict[str, Any]]:
    """Dimension to its map, without "Other".

    Args:
        assigned: (n,) dimension of each question.
        vectors: (n, d) rows of norm 1.
        kept: rows that are kept.

    Returns:
        For each dimension "method"; "explained", the shares of the variance that x and y show; "x", "y" and "kept" of
        its questions, the dropped ones first.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
    """
    is_kept = np.zeros(len(vectors), bool)
    is_kept[list(kept)] = True
    found = {}
    for name in sorted(set(assigned) - {OTHER}):
        own = np.flatnonzero(np.asarray(assigned) == name)
        own = own[by_content(vectors[own])]
        flat, explained = _components(vectors[own])
        order = np.argsort(is_kept[own], kind="stable")
        found[name] = {
            "method": "PCA",
            "explained": explained,
            "x": flat[order, 0].round(_DIGITS).tolist(),
            "y": flat[order, 1].round(_DIGITS).tolist(),
            "kept": is_kept[own][order].tolist(),
        }
    return found


def _components(rows: Vectors) -> tuple[NDArray[np.float64], list[float]]:
    """(n, 2) coordinates, and the share of the variance along each."""
    decomposition = require("sklearn.decomposition", "curation", "a map of questions")
    flat, explained = np.zeros((len(rows), 2)), [0.0, 0.0]
    components = min(2, *rows.shape)
    if (rows != rows[0]).any():
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = decomposition.PCA(components, svd_solver="randomized", iterated_power=7, random_state=0)
            flat[:, :components] = model.fit_transform(rows.astype(np.float64))
        explained[:components] = [round(float(share), _DIGITS) for share in model.explained_variance_ratio_]
    return flat + 0.0, explained
