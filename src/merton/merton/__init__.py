"""Merton measures how well embodied AI can use what it sees; docs/use/python.md shows programs that use it."""

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "calibration",
    "cli",
    "cluster",
    "cognition",
    "config",
    "decision",
    "errors",
    "execution",
    "experiment",
    "files",
    "graph",
    "hosts",
    "leaderboard",
    "models",
    "monitor",
    "pages",
    "perception",
    "processes",
    "rating",
    "recording",
    "results",
    "seeding",
    "simulation",
    "statistics",
    "study",
    "web",
    "world",
]
