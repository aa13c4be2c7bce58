"""Agreement of voters with people, by hand and on planted families; the two commands that find and test dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from computed_roles import FAMILIES, embed, family_pool
from numpy.typing import NDArray
from typer.testing import CliRunner

import merton_studies.curation.embedding
import merton_studies.curation.voter_agreement
from merton.cli.main import app
from merton.errors import InputError
from merton_studies.curation.assignment import assign
from merton_studies.curation.computed.learners import Shot, shot_voters
from merton_studies.curation.computed.matchers import zero_shot_voters
from merton_studies.curation.induction import Embed
from merton_studies.curation.pool import Pool, write_pool
from merton_studies.curation.taxonomy import OTHER, Taxonomy, read_taxonomy
from merton_studies.curation.voter_agreement import BASELINE, VOTE, voter_agreement

TAXONOMY = read_taxonomy("a2eval")
POOL = family_pool(10)


class FakeEmbedder:
    """In the place of the sentence model."""

    made: ClassVar = {"model": "fake"}

    def embed(self, texts: Sequence[str], on_progress: Callable[[int, int], None] | None = None) -> NDArray[np.float32]:
        return embed(texts)


def muddled() -> Pool:
    """People who call every third question of a family something else."""
    questions = [
        question.model_copy(update={"dimension": "DecPlan"}) if place % 3 == 0 else question
        for place, question in enumerate(POOL.questions)
    ]
    return Pool.of(questions, POOL.sources.values())


def test_the_numbers_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import (  # here: it takes a second, in every worker that collects this file
        accuracy_score,
        cohen_kappa_score,
    )

    pool = muddled()
    found = voter_agreement(pool, TAXONOMY, embed, shots=0)
    assigned = assign(pool, TAXONOMY, zero_shot_voters(embed))
    truth = [question.dimension for question in pool.questions]
    assert found.of[VOTE].accuracy == pytest.approx(accuracy_score(truth, assigned.dimension))
    assert found.of[VOTE].kappa == pytest.approx(cohen_kappa_score(truth, assigned.dimension))
    for column, name in enumerate(assigned.voters):
        votes = [one[column] or OTHER for one in assigned.votes]
        assert found.of[name].kappa == pytest.approx(cohen_kappa_score(truth, votes))
    assert found.of[BASELINE] == found.of["words"]
    assert found.confusion.sum() == found.questions == len(truth)
    assert (found.scenes, found.draws, found.contested) == (10, 1, assigned.contested.mean())
    low, high = found.of[VOTE].kappa_interval or (1, 0)
    assert low < found.of[VOTE].kappa < high


def test_no_question_is_judged_by_what_its_scene_taught(monkeypatch: pytest.MonkeyPatch) -> None:
    taught: list[set[str]] = []
    judged: list[set[str]] = []

    def watched(taxonomy: Taxonomy, shots: Sequence[Shot], embed: Embed) -> object:
        taught.append({shot.question.scene for shot in shots})
        assert len(shots) == 2 * len(FAMILIES)
        return shot_voters(taxonomy, shots, embed)

    def watching(pool: Pool, *rest: object) -> object:
        judged.append({question.scene for question in pool.questions})
        return assign(pool, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(merton_studies.curation.voter_agreement, "shot_voters", watched)
    monkeypatch.setattr(merton_studies.curation.voter_agreement, "assign", watching)
    found = voter_agreement(POOL, TAXONOMY, embed, shots=2, folds=2, draws=2)
    assert len(taught) == len(judged) == 4
    assert all(known and not known & asked for known, asked in zip(taught, judged, strict=True))
    assert set().union(*judged[:2]) == set().union(*judged[2:]) == {question.scene for question in POOL.questions}
    assert judged[:2] != judged[2:]
    assert found.of[VOTE].kappa > 0.9
    assert found.confusion.sum() == pytest.approx(found.questions)
    assert found.gain[0] == pytest.approx(found.of[VOTE].kappa - found.of[BASELINE].kappa)
    again = voter_agreement(POOL, TAXONOMY, embed, shots=2, folds=2, draws=2)
    assert (again.of, again.gain, again.confusion.tolist()) == (found.of, found.gain, found.confusion.tolist())
    voter_agreement(POOL, TAXONOMY, embed, shots=2, folds=2, draws=1, seed=1)
    assert judged[4:6] == judged[:2]
    assert judged[8:] != judged[:2]


def test_what_cannot_be_compared_is_refused() -> None:
    silent = Pool.of([one.model_copy(update={"dimension": ""}) for one in POOL.questions], POOL.sources.values())
    with pytest.raises(InputError, match="no question of this pool has a dimension"):
        voter_agreement(silent, TAXONOMY, embed)
    with pytest.raises(InputError, match="'PhysCaus', which the taxonomy 'open_eqa' does not have: ObjectRecognition"):
        voter_agreement(POOL, read_taxonomy("open_eqa"), embed)
    with pytest.raises(InputError, match="11 folds by scene need at least 2 folds and as many scenes; there are 10"):
        voter_agreement(POOL, TAXONOMY, embed, folds=11)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(merton_studies.curation.embedding, "text_embedder", FakeEmbedder)
    monkeypatch.setattr(merton_studies.curation.embedding, "embed_texts", FakeEmbedder().embed)
    write_pool(POOL, tmp_path / "pool")
    return tmp_path


def called(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["curate", *map(str, words)], catch_exceptions=False)
    return result.exit_code, " ".join(result.output.split())


def test_the_command_compares_without_and_with_examples(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voter_agreement, "__defaults__", (10, 5, 0, 1, None))
    code, output = called("voters", folder / "pool", "--taxonomy", "a2eval", "--shots", 2, "--folds", 2)
    assert code == 0
    for words in ("no examples of each dimension: 40 questions in 10 scenes", "2 examples", "baseline", "8 DynScene"):
        assert words in output
