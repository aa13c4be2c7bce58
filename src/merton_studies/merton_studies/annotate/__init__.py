"""Models x dataset x tasks to answers, actions and scores, all cached; see `merton_studies.annotate.run`."""

__all__ = [
    "answers",
    "cache",
    "cases",
    "dataset",
    "foreign",
    "foreign_opinions",
    "identity",
    "opinions",
    "run",
    "tables",
    "views",
]
