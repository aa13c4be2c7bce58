"""Predictions of opinions that need no metric: floors that see no image, or hardly one, and the subjects' own ceiling.

Without them a correlation means nothing: a metric that predicts less than the mean of its type and level has learned
nothing from the image, and none can agree with subjects more than these agree with one another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.seeding import generator

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

FLOORS = {
    "level alone": "the level of the distortion; sees no image",
    "mean per type and level": "the mean opinion of the training images of this type and level; sees no image",
    "mean per type, level and reference": "the same, and how far the reference's images in the training part lie above "
    "or below; sees no image, and adds nothing where no other image of the reference is in that part",
    "attributes": "quadratic regression on luminance, contrast, chrominance, blur and spatial information of the image",
}
"""Floor to the sentence about it."""
CEILING = "half of the subjects"
CEILING_ABOUT = (
    "the mean opinion of half of the subjects against that of the other half, halved anew in each repeat; where one "
    "subject is left out, the others against that one"
)
_SHRINKAGE = 1e-3


def level_alone(level: NDArray[np.int64]) -> Floats:
    """(n,) the level with its sign turned, so that higher is better."""
    return -level.astype(np.float64)


def cell_means(distortion: NDArray[np.str_], level: NDArray[np.int64], labels: Floats, train: Rows) -> Floats:
    """(n,) the mean label of the training images with the same type and level.

    A type and level without training images has the mean of its level, and a level without them that of all.
    """
    found = np.full(len(labels), labels[train].mean())
    types = np.unique(distortion, return_inverse=True)[1]
    for number in (level.astype(np.int64), types * (int(level.max(initial=0)) + 1) + level):
        count = np.bincount(number[train], minlength=int(number.max()) + 1)
        total = np.bincount(number[train], weights=labels[train], minlength=len(count))
        known = count[number] > 0
        found[known] = (total / np.maximum(count, 1))[number][known]
    return found


def with_reference_means(means: Floats, reference_id: NDArray[np.str_], labels: Floats, train: Rows) -> Floats:
    """(n,) `cell_means` and the mean residual of the training images of the same reference; 0 where there are none.

    The residual is shrunk by n / (n + 1), so that one image does not decide.
    """
    reference = np.unique(reference_id, return_inverse=True)[1]
    count = np.bincount(reference[train], minlength=int(reference.max()) + 1)
    residual = np.bincount(reference[train], weights=(labels - means)[train], minlength=len(count))
    return means + (residual / (count + 1.0))[reference]


def attributes_regression(attributes: Floats, labels: Floats, train: Rows) -> Floats:
    """(n,) labels predicted from attributes of the distorted image by a quadratic regression (ours).

    Args:
        attributes: (n, k) of each image; standardised here by the training part.
        labels: (n,).
        train: images to learn from.
    """
    center, spread = attributes[train].mean(axis=0), attributes[train].std(axis=0)
    z = np.clip((attributes - center) / np.where(spread > 0, spread, 1.0), -4.0, 4.0)
    pairs = np.triu_indices(z.shape[1])
    terms = np.column_stack((z, z[:, pairs[0]] * z[:, pairs[1]]))
    terms = terms - terms[train].mean(axis=0)
    mean = labels[train].mean()
    gram = terms[train].T @ terms[train] + _SHRINKAGE * len(train) * np.eye(terms.shape[1])
    return np.asarray(mean + terms @ np.linalg.solve(gram, terms[train].T @ (labels[train] - mean)))


def halves(subjects: int, seed: int) -> tuple[Rows, Rows]:
    """Two halves of subjects, drawn without replacement; the first has the odd one less.

    Raises InputError for fewer than two subjects.
    """
    if subjects < 2:
        raise InputError(f"a ceiling needs at least two subjects, got {subjects}")
    order = generator("halves of subjects", seed).permutation(subjects)
    return np.sort(order[: subjects // 2]), np.sort(order[subjects // 2 :])


def reliability(correlation_of_halves: float) -> float:
    """The reliability of the mean of all subjects from the correlation of two halves (Spearman 1910, Brown 1910).

    Its square root is the highest correlation that any metric can have with the mean opinion, as far as subjects err
    independently of one another.
    """
    r = max(correlation_of_halves, 0.0)
    return 2.0 * r / (1.0 + r)
