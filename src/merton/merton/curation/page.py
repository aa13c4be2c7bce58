"""The page of a curated benchmark: index.html, self-contained, without script and request."""

from __future__ import annotations

from pathlib import Path


def write_page(folder: Path, scores: Path | None = None) -> Path:
    """Write index.html into the folder of a curation, from the files that are there; returns its path.

    Args:
        folder: of the curation.
        scores: folder of `merton curate evaluate`, for the table of models by dimension; None: without it.

    Raises:
        InputError: no curation, or a file of it that is damaged.
        InfrastructureError: the page cannot be written.
    """
    raise NotImplementedError
