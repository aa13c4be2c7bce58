"""A model that applied is evaluated by the host, by a stand-in of its API; refusals say why, and nobody pays twice."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from scripted_llm import prompts, replying_to, scripted_llm
from unguarded import Unguarded

from merton.cognition.models.base import MODELS, ModelEntry
from merton.errors import InfrastructureError, InputError, MissingDependencyError
from merton.leaderboard.published.taxonomy import load_taxonomy
from merton.leaderboard.submissions.applications import Received, application, apply, decide
from merton.leaderboard.submissions.evaluated import evaluated_items
from merton.results.database import Database
from merton_studies.curation.budget import BudgetExhaustedError
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.harness.hosting import ITEMS, LOG, DeadlineError, Limits, host_evaluation
from wire import Wire, replying

NOVEMBER = datetime(2026, 11, 21, 8, 0, tzinfo=timezone.utc)
QUICK = {"patience": {"attempts": 1, "pause_s": 0.0, "failures": 1}, "parallel": 1}


def pool(source: str = "erqa", count: int = 4, dimension: str = "Spatial Reasoning") -> Pool:
    """Questions that are answered by yes; no picture is needed by a chat model."""
    made = [
        Question(
            id=f"q{number}",
            source=source,
            text=f"Is {number} of {source} a number?",
            answer_kind="yes_no",
            answer="yes",
            scene=f"s{number}",
            dimension=dimension,
        )
        for number in range(count)
    ]
    return Pool.of(made, [BenchmarkSource(name=source)])


def answer(prompt: str) -> str:
    """Right but for question 3."""
    return "no" if "Is 3 " in prompt else "yes"


@pytest.fixture
def wire() -> Iterator[Wire]:
    with scripted_llm(replying_to(answer)) as serving:
        yield serving


@pytest.fixture
def database(tmp_path: Path) -> Any:
    with Database(tmp_path / "record.sqlite") as opened:
        yield opened


def applied(database: Database, wire: Wire | None = None, **changes: Any) -> str:
    values = {
        "kind": "model",
        "manufacturer": "Lab X",
        "name": "stand-in",
        "version": "1.0",
        "type": "general",
        "licence": "mit",
        "contact": "lab@example.org",
        "api_url": f"{wire.http}/v1" if wire else None,
        "api_model": "stand-in" if wire else None,
        **changes,
    }
    content = json.dumps({key: value for key, value in values.items() if value is not None})
    return apply(database, content.encode(), "mine.json", now=NOVEMBER).id


def hosted(database: Database, id: str, out: Path, *pools: Pool, now: datetime = NOVEMBER, **limits: Any) -> Received:
    chosen = Limits(**{"settings": QUICK, "own_network": True, **limits})
    sandbox = Unguarded()
    return host_evaluation(
        database, id, pools or [pool()], out, load_taxonomy(), sandbox=sandbox, limits=chosen, now=lambda: now
    )


def last(database: Database, id: str) -> tuple[str, str]:
    with database.reading() as connection:
        found = application(connection, id)
    return found.status, found.note


def test_an_application_ends_as_rows_of_its_own_source(database: Database, wire: Wire, tmp_path: Path) -> None:
    id = applied(database, wire, cost_per_1000=500.0)
    found = hosted(database, id, tmp_path / "out", pool(), pool("vsi_bench", 2, "Object Count"))
    assert (found.status, found.note) == ("scored", "6 scores on ERQA, VSI-Bench")
    assert (found.steps[-1].calls, found.steps[-1].cost) == (6, 3.0)
    rows = evaluated_items(database)
    assert [(row.benchmark, row.item, row.score) for row in rows] == [
        *(("ERQA", f"q{number}", float(number != 3)) for number in range(4)),
        *(("VSI-Bench", f"q{number}", 1.0) for number in range(2)),
    ]
    assert {(row.agent, row.source, row.type) for row in rows} == {
        ("stand-in 1.0 (Lab X)", "evaluated by the host", "general")
    }
    with (tmp_path / "out" / ITEMS).open() as file:
        written = list(csv.DictReader(file))
    assert [row["item"] for row in written] == [row.item for row in rows]
    assert written[0]["source"] == "evaluated by the host"
    log = [json.loads(line) for line in (tmp_path / "out" / LOG).read_text().splitlines()]
    assert [(step["status"], step["note"], step["calls"]) for step in log] == [
        ("received", "", 0),
        ("evaluating", "begun on ERQA, VSI-Bench: 6 questions", 0),
        ("evaluating", "ERQA: 4 scores", 4),
        ("evaluating", "VSI-Bench: 2 scores", 6),
        ("scored", "6 scores on ERQA, VSI-Bench", 6),
    ]


def test_a_budget_ends_it_and_the_same_call_goes_on_without_paying_twice(
    database: Database, wire: Wire, tmp_path: Path
) -> None:
    id = applied(database, wire, cost_per_1000=1000.0)
    for limit, calls in (({"max_calls": 2}, 2), ({"max_cost": 3.0}, 3)):
        with pytest.raises(BudgetExhaustedError, match="is spent"):
            hosted(database, id, tmp_path / "out", **limit)
        assert len(wire.requests) == calls
        status, note = last(database, id)
        assert status == "not evaluated"
        assert f"after {calls} calls" in note
    assert evaluated_items(database) == [], "no score of 0"
    found = hosted(database, id, tmp_path / "out")
    assert found.status == "scored"
    assert [step.calls for step in found.steps] == [0, 0, 2, 2, 3, 3, 4, 4], "a new start knows what was paid before"
    assert len(wire.requests) == len(set(prompts(wire))) == 4


def test_a_deadline_ends_it_and_paid_answers_are_free(database: Database, wire: Wire, tmp_path: Path) -> None:
    id = applied(database, wire)
    late = datetime(2026, 12, 2, tzinfo=timezone.utc)
    with pytest.raises(DeadlineError, match=r"deadline of 2026-12-01 23:59 UTC has passed after 0 calls"):
        hosted(database, id, tmp_path / "out", now=late)
    assert last(database, id)[0] == "not evaluated"
    assert wire.requests == []
    assert hosted(database, id, tmp_path / "out", now=late, deadline=late + timedelta(days=1)).status == "scored"
    assert hosted(database, id, tmp_path / "out", now=late).status == "scored", "each answer is there"
    assert len(wire.requests) == 4


def test_scores_stay_where_a_later_evaluation_fails(database: Database, tmp_path: Path) -> None:
    """The boards have the rows, so the status says that they stand, and why the later one ended."""
    with scripted_llm("yes") as wire:
        id = applied(database, wire)
        hosted(database, id, tmp_path / "out")
    with pytest.raises(InfrastructureError):
        hosted(database, id, tmp_path / "again")
    status, note = last(database, id)
    assert status == "scored"
    assert note.startswith("the scores of before stand; evaluated again, it ended: ")
    assert len(evaluated_items(database)) == 4


def test_a_dead_address_is_no_score(database: Database, tmp_path: Path) -> None:
    with scripted_llm("yes") as wire:
        id = applied(database, wire)
    with pytest.raises(InfrastructureError):
        hosted(database, id, tmp_path / "out")
    status, note = last(database, id)
    assert status == "not evaluated"
    assert "gave no answer" in note
    assert evaluated_items(database) == []


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "2130706433", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254", "192.168.0.7", "localhost"],
    ids=["this", "number", "six", "mapped", "link", "private", "name"],
)
def test_an_address_in_the_hosts_own_network_is_not_asked(
    database: Database, wire: Wire, tmp_path: Path, host: str
) -> None:
    id = applied(database, api_url=f"http://{host}:{wire.port}/v1", api_model="stand-in")
    with pytest.raises(InputError, match="in the host's own network"):
        hosted(database, id, tmp_path / "out", own_network=False)
    assert last(database, id)[0] == "not evaluated"
    assert wire.requests == []


def test_the_reason_that_all_see_does_not_name_the_address(database: Database, tmp_path: Path) -> None:
    with scripted_llm(replying(404, {"error": "no such model"})) as wire:
        id = applied(database, wire)
        with pytest.raises(InfrastructureError, match=r"127\.0\.0\.1"):
            hosted(database, id, tmp_path / "out")
    with database.reading() as connection:
        found = application(connection, id)
    assert "127.0.0.1" in found.note, "the host sees it"
    assert found.receipt.note.startswith("its API/chat/completions refuses with HTTP 404")


def test_a_folder_holds_one_application(database: Database, wire: Wire, tmp_path: Path) -> None:
    first, second = applied(database, wire), applied(database, wire, manufacturer="Lab Y")
    hosted(database, first, tmp_path / "out")
    kept = (tmp_path / "out" / ITEMS).read_bytes()
    with pytest.raises(InputError, match="holds the evaluation of another application"):
        hosted(database, second, tmp_path / "out")
    assert last(database, second)[0] == "received"
    assert (tmp_path / "out" / ITEMS).read_bytes() == kept


def test_questions_without_an_answer_have_no_score(database: Database, tmp_path: Path) -> None:
    broken = replying(200, {"choices": [{"message": {"role": "assistant", "content": None}, "finish_reason": "stop"}]})
    with scripted_llm("yes", broken) as wire:
        found = hosted(database, applied(database, wire), tmp_path / "out")
    assert found.status == "scored"
    assert "1 score; 3 without a score, the first because:" in found.steps[-2].note
    assert [row.score for row in evaluated_items(database)] == [1.0]
    with scripted_llm(broken) as wire:
        id = applied(database, wire, manufacturer="Lab Y")
        with pytest.raises(InfrastructureError, match="not one of 4 questions has a score"):
            hosted(database, id, tmp_path / "other")
    assert last(database, id)[0] == "not evaluated"


@pytest.mark.parametrize(
    ("pools", "said"),
    [
        (lambda: [pool("drawers")], "unknown benchmark 'drawers'"),
        (lambda: [pool(dimension="Object Count")], "which ERQA does not cover"),
        (lambda: [pool(), pool()], "in another folder, too"),
    ],
    ids=["benchmark", "dimension", "twice"],
)
def test_a_benchmark_that_does_not_fit_is_the_hosts_mistake(
    database: Database, wire: Wire, tmp_path: Path, pools: Callable[[], list[Pool]], said: str
) -> None:
    id = applied(database, wire)
    with pytest.raises(InputError, match=said):
        hosted(database, id, tmp_path / "out", *pools())
    assert last(database, id)[0] == "received"


def test_keys_and_prices_are_asked_for(
    database: Database, wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = applied(database, wire, api_needs_key=True)
    with pytest.raises(InputError, match="--api-key-env"):
        hosted(database, id, tmp_path / "out")
    with pytest.raises(InputError, match="states no cost_per_1000"):
        hosted(database, id, tmp_path / "out", max_cost=1.0, api_key_env="STAND_IN_KEY")
    monkeypatch.setenv("STAND_IN_KEY", "very-secret")
    hosted(database, id, tmp_path / "out", api_key_env="STAND_IN_KEY")
    assert wire.requests[0].headers["authorization"] == "Bearer very-secret"
    files = [file for file in [tmp_path / "record.sqlite", *(tmp_path / "out").rglob("*")] if file.is_file()]
    assert not any(b"very-secret" in file.read_bytes() for file in files)


def test_weights_are_evaluated_by_the_entry_that_loads_them(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = applied(database, weights="https://huggingface.co/lab/seer")
    with pytest.raises(InputError, match="no model of the catalogue loads lab/seer"):
        hosted(database, id, tmp_path / "out")
    assert last(database, id)[0] == "not evaluated"
    entry = ModelEntry(name="seer", description="-", adapter="describe", checkpoint="lab/seer", unpinned="made here")
    monkeypatch.setattr(MODELS, "_entries", {**MODELS._entries, "seer": entry})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingDependencyError):
        hosted(database, id, tmp_path / "out")


def test_a_refused_application_and_a_benchmark_are_not_evaluated(
    database: Database, wire: Wire, tmp_path: Path
) -> None:
    id = applied(database, wire)
    decide(database, id, "refused", "no contact", now=NOVEMBER)
    with pytest.raises(InputError, match="is refused"):
        hosted(database, id, tmp_path / "out")
    with pytest.raises(InputError, match="no application"):
        hosted(database, "model-none", tmp_path / "out")
