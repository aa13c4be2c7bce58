"""Statistics that every table and page uses: means and their intervals, agreement of raters, correlations, tests."""

__all__ = [
    "alpha",
    "best",
    "clustered",
    "coefficients",
    "concordance",
    "correlation",
    "falling",
    "intervals",
    "intraclass",
    "means",
    "paired",
    "ranking",
    "rater_draws",
    "raters",
    "resampling",
    "risk",
    "sequential",
    "unpaired",
]
