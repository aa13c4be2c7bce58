"""Which roles the options of a curation choose; no LLM is asked but the stand-in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted_llm import llm_entry, scripted_llm

from merton.cognition.models.base import MODELS
from merton.errors import InputError, UnknownNameError
from merton_studies.curation.budget import CALLS
from merton_studies.curation.llm.agents import LlmProposer, LlmReviewer, LlmVoter
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.curation.roles import TEMPERATURE, Chosen, roles
from merton_studies.curation.taxonomy import OTHER, Dimension, Taxonomy
from wire import Wire

pytest.importorskip("httpx2", reason="the extra `remote` is not installed")

QUESTION = Question(id="one", source="made", text="How many?", answer_kind="free_text")
POOL = Pool.of([QUESTION], [BenchmarkSource(name="made")])
SET = Taxonomy(name="t", dimensions=(Dimension(name="Many", definition="Counting."),))


class Computed:
    """Stands for a voter without an LLM."""

    name = "computed"

    def vote(self, questions: Sequence[Question], taxonomy: Taxonomy) -> list[str | None]:
        return [OTHER] * len(questions)


def computed() -> tuple[Computed, ...]:
    return (Computed(),)


def not_needed() -> tuple[Computed, ...]:
    raise AssertionError("the computed voters are made only where they are needed")


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """The stand-in, twice in the catalogue; one of them has a price."""
    with scripted_llm('{"votes": [{"id": "q1", "dimension": "Many"}]}') as wire:
        len(MODELS)  # reads the catalogue
        for entry in (llm_entry(wire), llm_entry(wire, "dear", cost_per_1000=2.0)):
            monkeypatch.setitem(MODELS._entries, entry.name, entry)
        yield wire


def made(tmp_path: Path, of: Any = computed, seed: int = 0, **chosen: Any) -> Any:
    return roles(Chosen(**chosen), of, POOL, tmp_path, tmp_path / "answers.sqlite", seed)


def test_without_a_model_computed_voters_vote_and_nothing_is_counted(tmp_path: Path) -> None:
    with made(tmp_path) as found:
        assert (found.proposer, found.reviewer, found.budget) == (None, None, None)
        assert [type(voter) for voter in found.voters] == [Computed]
    assert list(tmp_path.iterdir()) == []


def test_each_role_is_of_the_model_that_is_named_for_it(tmp_path: Path, wire: Wire) -> None:
    with made(tmp_path, reviewer="scripted") as found:
        assert isinstance(found.reviewer, LlmReviewer)
        assert (found.proposer, [type(voter) for voter in found.voters]) == (None, [Computed])
    chosen = {"proposer": "scripted", "reviewer": "dear", "assigners": ("scripted",)}
    with made(tmp_path, not_needed, **chosen, seed=2) as found:
        assert isinstance(found.proposer, LlmProposer)
        assert [voter.name for voter in found.voters] == [f"scripted seed {number}" for number in range(10, 15)]
        assert [voter.vote([QUESTION], SET) for voter in found.voters] == [["Many"]] * 5
        assert (found.budget.calls, found.budget.cost) == (5, 0.0)
        models = [(model["name"], model["temperature"]) for model in found.about["models"]]
        assert models == [("scripted", 0.0), ("dear", 0.0), ("scripted", TEMPERATURE)]
        assert set(found.about["prompts"]) == {"propose", "review", "assign", "retry"}
        json.dumps(found.about)
    assert [request.body["seed"] for request in wire.requests] == list(range(10, 15))
    assert len((tmp_path / CALLS).read_text(encoding="utf-8").splitlines()) == 5


def test_several_models_vote_by_turns(tmp_path: Path, wire: Wire) -> None:
    with made(tmp_path, assigners=("scripted", "dear"), voters=3) as found:
        assert [voter.name for voter in found.voters] == ["scripted seed 0", "dear seed 1", "scripted seed 2"]
        assert all(isinstance(voter, LlmVoter) for voter in found.voters)
        for voter in found.voters:
            voter.vote([QUESTION], SET)
    assert [one.body["temperature"] for one in wire.requests] == [TEMPERATURE, 0.0, TEMPERATURE]


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"proposer": "nothing"}, "unknown vlm 'nothing'"),
        ({"proposer": "describe"}, "describe answers questions about pictures alone"),
        ({"voters": 3}, "--voters is of voters that ask a model: name one with --assigner"),
        ({"pictures": 3, "proposer": "scripted"}, "--pictures is of voters that ask a model"),
        ({"max_calls": 3}, "--max-calls limits calls of models: name one with --proposer"),
        ({"max_calls": 0, "proposer": "scripted"}, "needs at least one call, got --max-calls 0"),
        ({"max_cost": 3.0, "proposer": "scripted"}, "--max-cost needs a price: set cost_per_1000 of scripted"),
        ({"assigners": ("scripted", "dear"), "voters": 1}, "2 models vote, so --voters must be at least that, got 1"),
    ],
)
def test_options_that_cannot_be_are_refused_in_a_sentence(
    tmp_path: Path, wire: Wire, chosen: dict[str, Any], said: str
) -> None:
    with pytest.raises((InputError, UnknownNameError), match=said), made(tmp_path, **chosen):
        pass
