"""What the scores of a trial are computed from."""

from __future__ import annotations

from dataclasses import dataclass

from merton.world.action import ActionChunk
from merton.world.geometry import Matrix


@dataclass(frozen=True)
class Evidence:
    """Everything the scores of a trial follow from, but for its outcome.

    Attributes:
        answers: to the reference and to the distorted image.
        corpus: all reference answers of the study, for CIDEr.
        first_chunks: decided on the reference and on the distorted images; None if there were none.
        reference_tcp: final tool pose (4, 4) in `base_link` of the run measured against; None if there was none.
        final_tcp: final tool pose (4, 4) of the trial.
    """

    answers: tuple[str, str]
    corpus: tuple[str, ...]
    first_chunks: tuple[ActionChunk, ActionChunk] | None
    reference_tcp: Matrix | None
    final_tcp: Matrix
