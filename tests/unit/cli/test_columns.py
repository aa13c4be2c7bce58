"""`--column PART=NAME`: read in one place."""

from __future__ import annotations

import pytest

from merton.cli.columns import columns_by_part, named_columns
from merton.errors import InputError


def test_a_part_has_the_column_that_is_named() -> None:
    assert named_columns(["score=MOS", "image=File=name"]) == {"score": "MOS", "image": "File=name"}
    assert named_columns(None) == {}


def test_a_part_that_is_named_twice_is_refused() -> None:
    with pytest.raises(InputError, match="--column names score twice: MOS and DMOS"):
        named_columns(["score=MOS", "score=DMOS"])


def test_a_part_may_have_several_columns_where_that_has_a_meaning() -> None:
    assert columns_by_part(["choices=A", "text=Q", "choices=B"]) == {"choices": ("A", "B"), "text": ("Q",)}


@pytest.mark.parametrize("text", ["score", "=MOS", "score="])
def test_another_form_is_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match=f"--column {text} is not of the form PART=NAME"):
        named_columns([text])
