"""The agreement of several rankings of the same things: Kendall's W."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def kendall_w(rankings: ArrayLike) -> float | None:
    """Kendall's coefficient of concordance: 0 (none) to 1 (all rank alike), for two rankings (rho + 1) / 2.

    With m rankers of n things, S the sum of squared deviations of the things' rank sums from their mean, and T the sum
    of t^3 - t over each ranker's groups of t tied things, W = 12 S / (m^2 (n^3 - n) - m T) (Kendall and Babington
    Smith 1939; ties: Kendall 1948).

    Args:
        rankings: (m, n) ranks or scores, a row for each ranker, m >= 2, n >= 2; ties get their mean rank.

    Returns:
        None if no ranker tells any two things apart.
    """
    from scipy.stats import rankdata  # slow to load, and most importers correlate nothing

    ranks = np.apply_along_axis(rankdata, 1, np.asarray(rankings, dtype=float))
    m, n = ranks.shape
    sums = ranks.sum(axis=0)
    spread = float(((sums - sums.mean()) ** 2).sum())
    ties = sum(float((counts**3 - counts).sum()) for counts in (np.unique(row, return_counts=True)[1] for row in ranks))
    most = m * m * (n**3 - n) - m * ties
    return 12.0 * spread / most if most > 0 else None
