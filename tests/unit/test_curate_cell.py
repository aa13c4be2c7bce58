"""The pool of questions of the cell: laws of the simulator's truth, the choice of facts, repetitions, same bytes."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from merton.curation.cell import make_cell_pool
from merton.curation.cell.choosing import SHARES, TWIN_SHARE, numbers_of
from merton.curation.pool import Pool, read_pool

pytest.importorskip("mujoco")
pytest.importorskip("pyarrow")

QUESTIONS = 20


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Pool:
    return make_cell_pool(tmp_path_factory.mktemp("cell") / "pool", QUESTIONS, workers=1)


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_dimensions_are_as_lopsided_as_in_the_paper() -> None:
    counts = numbers_of(3000)
    assert sum(counts.values()) == 3000
    assert all(abs(counts[name] / 30 - share) < 0.05 for name, share in SHARES.items())


def test_twins_repeat_a_question_that_is_there_in_other_words(pool: Pool) -> None:
    by_id = {question.id: question for question in pool.questions}
    twins = [question for question in pool.questions if question.twin_of]
    assert abs(len(twins) / QUESTIONS - TWIN_SHARE) < 0.08
    for twin in twins:
        first = by_id[twin.twin_of]
        assert not first.twin_of
        assert (twin.answer, twin.scene, twin.dimension, twin.media) == (
            first.answer, first.scene, first.dimension, first.media,
        )  # fmt: skip
        assert sorted(twin.choices) == sorted(first.choices)
        assert twin.text != first.text


def test_a_pool_is_whole_and_the_same_after_an_interruption(pool: Pool, tmp_path: Path) -> None:
    assert pool.folder is not None
    out = tmp_path / "pool"

    def interrupt(done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_cell_pool(out, QUESTIONS, on_progress=interrupt, workers=1)
    made = make_cell_pool(out, QUESTIONS, workers=1)
    assert digests(out) == digests(pool.folder)
    assert read_pool(out) == made
    assert all(pool.images(question) for question in pool.questions[:3])
    assert Counter(question.source for question in pool.questions).keys() == set(pool.sources)
