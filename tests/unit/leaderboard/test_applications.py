"""Applications of models and benchmarks: received by the rules of submissions, or refused with a sentence."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from postgres import new_database
from typer.testing import CliRunner

from merton.cli.submissions import app
from merton.errors import InputError
from merton.leaderboard.published.joining import taxonomy_entry
from merton.leaderboard.published.taxonomy import load_taxonomy
from merton.leaderboard.submissions.application import repository_of
from merton.leaderboard.submissions.applications import (
    NOT_EVALUATED,
    Received,
    add_step,
    application,
    applications,
    apply,
    decide,
    step_in,
    withdraw,
)
from merton.leaderboard.submissions.entrance import RefusedError
from merton.leaderboard.submissions.evaluated import BY_THE_HOST, evaluated_items, keep_items
from merton.leaderboard.submissions.receipts import attempts
from merton.results.database import Database

NOVEMBER = datetime(2026, 11, 21, 8, 0, tzinfo=timezone.utc)
MODEL: dict[str, Any] = {
    "kind": "model",
    "manufacturer": "Lab X",
    "name": "seer",
    "version": "1.0",
    "type": "embodied",
    "licence": "apache-2.0",
    "contact": "lab@example.org",
    "api_url": "https://models.example.org/v1",
    "api_model": "seer-large",
}
BENCHMARK: dict[str, Any] = {
    "kind": "benchmark",
    "manufacturer": "Lab X",
    "name": "DrawerQA",
    "licence": "cc-by-4.0",
    "contact": "lab@example.org",
    "link": "https://example.org/drawers",
    "task": "Embodied Question Answering",
    "description": "Questions about drawers.",
    "metrics": ["exact match"],
    "dimensions": ["Object State", "Object Count"],
    "questions": "https://example.org/drawers.jsonl",
}


def written(values: dict[str, Any], **changes: Any) -> bytes:
    """An application as JSON; a change to None leaves the key out."""
    return json.dumps({key: value for key, value in {**values, **changes}.items() if value is not None}).encode()


def sent(database: Database, values: dict[str, Any] = MODEL, now: datetime = NOVEMBER, **changes: Any) -> Received:
    return apply(database, written(values, **changes), "mine.json", now=now)


def refusal(database: Database, values: dict[str, Any] = MODEL, **changes: Any) -> str:
    with pytest.raises(RefusedError) as caught:
        sent(database, values, **changes)
    return str(caught.value)


@pytest.fixture
def database(tmp_path: Path) -> Any:
    with Database(tmp_path / "record.sqlite") as opened:
        yield opened


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_application_is_received_and_every_step_stays(kind: str, tmp_path: Path) -> None:
    with Database(tmp_path / "record.sqlite" if kind == "sqlite" else new_database()) as database:
        found = sent(database)
        assert (found.status, found.due, found.shown_name) == ("received", "2026-12-01", "seer 1.0 (Lab X)")
        add_step(database, found.id, "evaluating", "begun", now=NOVEMBER)
        # a clock that is set back does not change the order
        add_step(database, found.id, NOT_EVALUATED, "the server\nis gone", 3, 0.5, now=NOVEMBER - timedelta(days=1))
        with database.reading() as connection:
            (stored,) = applications(connection)
        told = [(step.status, step.note, step.calls, step.cost) for step in stored.steps]
        assert told == [
            ("received", "", 0, 0),
            ("evaluating", "begun", 0, 0),
            ("not evaluated", "the server is gone", 3, 0.5),
        ]
        assert stored.steps[2].at_utc == stored.steps[1].at_utc
        assert stored.is_overdue(datetime(2026, 12, 2).date())
        assert not stored.is_overdue(datetime(2026, 12, 1).date())


@pytest.mark.parametrize(
    ("values", "changes", "said"),
    [
        (MODEL, {"licence": None}, "licence"),
        (MODEL, {"licence": ""}, "licence"),
        (MODEL, {"type": "huge"}, "'general' or 'embodied'"),
        (MODEL, {"api_key": "sk-1"}, "api_key"),
        (MODEL, {"api_url": "https://user:secret@example.org/v1"}, "no user name or password"),
        (MODEL, {"api_url": "https://example.org/v1?key=secret"}, "before ? and #"),
        (MODEL, {"api_url": "file:///etc/passwd"}, "begins with http"),
        (MODEL, {"api_url": "https://example.org:99999/v1"}, "port of 0 to 65535"),
        (MODEL, {"api_model": None}, "belong together"),
        (MODEL, {"api_url": None, "api_model": None}, "either weights"),
        (MODEL, {"weights": "https://huggingface.co/lab/seer"}, "either weights"),
        (MODEL, {"api_url": None, "api_model": None, "weights": "https://example.org/lab/seer"}, "OWNER/NAME"),
        (MODEL, {"kind": "robot"}, "'model' or 'benchmark'"),
        (MODEL, {"kind": None}, "kind"),
        (MODEL, {"contact": None}, "contact"),
        (BENCHMARK, {"dimensions": []}, "dimensions"),
        (BENCHMARK, {"version": "1"}, "version"),
        (BENCHMARK, {"link": None}, "link"),
    ],
    ids=lambda value: None,
)
def test_an_application_that_is_wrong_is_refused_by_the_key_and_logged(
    database: Database, values: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    assert said in refusal(database, values, **changes)
    with database.reading() as connection:
        (attempt,) = attempts(connection)
        assert applications(connection) == []
    assert not attempt.accepted
    assert said in attempt.reason


def test_the_second_model_of_a_month_is_refused_and_a_benchmark_is_not(database: Database) -> None:
    first = sent(database)
    assert sent(database).repeated
    assert first.id in refusal(database, manufacturer="LAB  x".replace("  ", " "), version="1.1")
    assert "the next from 2026-12-01 on" in refusal(database, version="1.1")
    assert sent(database, BENCHMARK).kind == "benchmark"
    assert "in 2026-11 already" in refusal(database, BENCHMARK, name="Other")
    withdraw(database, first.id, now=NOVEMBER)
    assert "already" in refusal(database, version="1.2"), "withdrawing does not give the month back"
    assert sent(database, version="1.1", now=NOVEMBER + timedelta(days=10)).month == "2026-12"


def test_a_name_that_looks_like_an_applicants_is_refused(database: Database) -> None:
    sent(database)
    assert "looks like" in refusal(database, manufacturer="L\u0430b X")


def test_a_sender_applies_for_itself_alone(database: Database) -> None:
    with pytest.raises(RefusedError, match="the sender is 'Lab Y'"):
        apply(database, written(MODEL), "mine.json", "Lab Y", NOVEMBER)


@pytest.mark.parametrize(
    ("link", "repository"),
    [
        ("https://huggingface.co/lab/seer-7b", "lab/seer-7b"),
        ("https://modelscope.cn/models/lab/seer", "lab/seer"),
        ("https://modelscope.cn/lab/seer", ""),
        ("http://huggingface.co/lab/seer", ""),
        ("https://huggingface.co.example.org/lab/seer", ""),
    ],
    ids=lambda value: None,
)
def test_links_to_hubs(link: str, repository: str) -> None:
    assert repository_of(link) == repository


def scored(database: Database, found: Received, score: float, now: datetime = NOVEMBER) -> None:
    with database.transaction() as connection:
        rows = [{"item": "q1", "dimension": "Object State", "original": "", "score": score}]
        keep_items(connection, found.id, "ERQA", rows)
        step_in(connection, found.id, "scored", "1 score", now=now)


def test_the_newest_scored_application_is_on_the_boards_and_none_returns(database: Database) -> None:
    assert evaluated_items(database) == []
    old = sent(database)
    scored(database, old, 0.25)
    (row,) = evaluated_items(database)
    assert row == ("seer 1.0 (Lab X)", "ERQA", "q1", "Object State", 0.25, "", BY_THE_HOST, "embodied")
    december = NOVEMBER + timedelta(days=15)
    new = sent(database, version="2.0", now=december)
    assert [row.agent for row in evaluated_items(database)] == ["seer 1.0 (Lab X)"]
    scored(database, new, 0.75, december)
    assert [row.agent for row in evaluated_items(database)] == ["seer 2.0 (Lab X)"]
    decide(database, new.id, "refused", "the model is another one", now=december)
    assert evaluated_items(database) == []


def test_what_a_host_cannot_say_is_refused(database: Database) -> None:
    found = sent(database)
    for status, said in (("scored", "merton leaderboard evaluate"), ("accepted", "choose"), ("refused", "--reason")):
        with pytest.raises(InputError, match=said):
            decide(database, found.id, status, now=NOVEMBER)
    withdraw(database, found.id, now=NOVEMBER)
    with pytest.raises(InputError, match="is withdrawn"):
        decide(database, found.id, "refused", "too late", now=NOVEMBER)
    with database.reading() as connection, pytest.raises(InputError, match="no application 'model-x'"):
        application(connection, "model-x")


def test_a_record_older_than_the_tables_takes_applications_in(tmp_path: Path) -> None:
    place = tmp_path / "record.sqlite"
    Database(place).close()
    with sqlite3.connect(place) as connection:
        for table in ("arena_items", "application_events", "applications"):
            connection.execute(f"DROP TABLE {table}")
    with Database(place) as database:
        assert evaluated_items(database) == []
        assert sent(database).status == "received"


def test_the_commands_lead_from_a_benchmark_that_joins_to_its_taxonomy(tmp_path: Path) -> None:
    record, file, entry = tmp_path / "record.sqlite", tmp_path / "mine.json", tmp_path / "entry.yaml"

    def run(*words: object) -> str:
        return CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False).output

    file.write_bytes(written(BENCHMARK))
    told = run("send", record, file)
    id = next(word for word in told.split() if word.startswith("benchmark-")).rstrip(",")
    assert "received: benchmark DrawerQA (Lab X)" in told
    assert "received" in run("list", record)
    with pytest.raises(InputError, match="--out"):
        run("status", record, id, "accepted")
    assert str(entry) in run("status", record, id, "accepted", "--out", entry)
    assert load_taxonomy(entry).benchmarks != load_taxonomy().benchmarks
    assert "DrawerQA" in [one.name for one in load_taxonomy(entry).benchmarks]
    assert "accepted" in run("log", record, id)


def test_a_benchmark_of_unknown_names_has_no_taxonomy(database: Database) -> None:
    for number, (changes, said) in enumerate(
        [
            ({"dimensions": ["Object Colour"]}, "unknown dimension 'Object Colour'"),
            ({"metrics": ["BLEU"]}, "unknown metric 'BLEU'"),
            ({"task": "Cooking"}, "unknown task 'Cooking'"),
            ({"name": "OpenEQA"}, "OpenEQA"),
        ]
    ):
        found = sent(database, BENCHMARK, manufacturer=f"Lab {number}", **changes)
        with pytest.raises(InputError, match=said):
            taxonomy_entry(found)
