"""Which column of a foreign table holds which part of a row."""

from __future__ import annotations

import pytest

from merton.errors import InputError
from merton.results.parts import column_of

PARTS = {"image": "file of the picture", "reference": "its undistorted picture", "score": "the opinion"}


def test_a_part_is_held_by_the_column_of_its_name_or_that_which_is_named() -> None:
    assert column_of("t.csv", ["image", "MOS", "note"], PARTS, {"score": "MOS"}) == {"score": "MOS", "image": "image"}


def test_a_column_that_was_named_for_a_part_holds_no_other() -> None:
    assert column_of("t.csv", ["image", "reference"], PARTS, {"reference": "image"}) == {"reference": "image"}


def test_the_further_names_of_a_part_come_after_its_own() -> None:
    also = {"reference": ("reference_id",)}
    assert column_of("t.csv", ["reference_id"], PARTS, {}, also) == {"reference": "reference_id"}
    there = ["reference_id", "reference"]
    assert column_of("t.csv", there, PARTS, {}, also) == {"reference": "reference"}


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"scores": "MOS"}, "unknown part of a row 'scores'; did you mean 'score'"),
        ({"score": "mos"}, "t.csv: there is no column 'mos' for score; did you mean 'MOS'"),
        ({"score": "x"}, "the table has: image, MOS"),
    ],
)
def test_a_part_or_a_column_that_is_not_there_is_named(columns: dict[str, str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        column_of("t.csv", ["image", "MOS"], PARTS, columns)
