"""An annotation without an answer has no score."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from merton_studies.annotate.tables import _pairs


def test_two_silent_answers_of_an_annotation_have_no_score() -> None:
    shown = [SimpleNamespace(reference=SimpleNamespace(id="r"), level=level) for level in (0, 1, 2)]
    rows: Any = [SimpleNamespace(shown=one, task="t") for one in shown]
    silent, said = {"text": " .", "truncated": False}, {"text": "the cube", "truncated": False}
    assert _pairs(rows, [silent, silent, said]) == [(0, 2)]
    assert _pairs(rows, [said, silent, said]) == [(0, 0), (0, 1), (0, 2)]
