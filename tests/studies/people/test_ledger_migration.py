"""A record of an older Merton is not lost: it is read as it is, and brought up to date when it is written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from test_store import trial

from merton.results.records import Outcome
from merton.results.schema import SCHEMA_VERSION
from merton.results.store import ResultStore
from merton_studies.people.ledger import Ledger


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


SETTLED = [
    replace(trial(number), outcome=outcome, progress=progress, execution=score, error_code=code, cut_short=cut_short)
    for number, (outcome, progress, score, code, cut_short) in enumerate(
        [
            (Outcome.SUCCESS, 1.0, 100.0, 0, False),
            (Outcome.FAILURE, None, 93.125, 0, False),
            (Outcome.FAILURE, None, 93.125, 303, None),
            (Outcome.EMERGENCY_STOP, 0.0, 0.0, 304, None),
            (Outcome.INVALID_ACTION, 0.0, 0.0, 101, None),
            (Outcome.INFRASTRUCTURE, None, None, 400, None),
        ]
    )
]


def test_version_4_learns_of_peoples_answers(tmp_path: Path) -> None:
    """Its tables were today's without those of people, and without the steps of evaluations."""
    path = tmp_path / "results.sqlite"
    with ResultStore(path) as store:
        store.record_all(SETTLED)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE submission_events")
        for table in ("undos", "answers", "slots", "raters", "projects"):
            connection.execute(f"DROP TABLE people_{table}")
        connection.execute("PRAGMA user_version = 4")
    with Ledger(path, "study", "{}") as ledger, ResultStore(path, read_only=True) as store:
        assert ledger.register("Ada").id == "R01"
        assert sorted(store.records(), key=lambda item: item.case) == sorted(SETTLED, key=lambda item: item.case)
    assert version(path) == SCHEMA_VERSION
