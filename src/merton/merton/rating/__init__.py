"""Ratings of agents and test cases from matches, by maximum likelihood and by AGI-Elo, and predictions from them."""

__all__ = [
    "agi_elo",
    "battles",
    "bradley_terry",
    "checking",
    "convergence",
    "diagnostics",
    "glicko",
    "likelihood",
    "metric",
    "paired",
    "placing",
    "predictions",
    "scoring",
]
