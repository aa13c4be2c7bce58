"""Episodes of other programs: the condition that each gets by a design, the pictures it is shown, and its record."""

__all__ = [
    "assignment",
    "design",
    "episode",
    "folder",
    "journal",
    "names",
    "pairs",
    "results",
    "run",
    "scores",
    "shown",
]
