"""Studies on Merton's loop: annotated datasets, image quality, curated benchmarks, people, papers, releases, twins."""

__all__ = [
    "annotate",
    "cli",
    "curation",
    "harness",
    "iqa",
    "opinions",
    "papers",
    "people",
    "release",
    "twins",
]
