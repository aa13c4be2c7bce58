"""A record from elsewhere, whose tables let everything in: a row that no Merton writes is refused when it is opened."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from fake_run import make_fake_run
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InfrastructureError
from merton.results import rows
from merton.results.database import Database
from merton.results.schema import METADATA
from merton.results.store import ResultStore

PERSON = "INSERT INTO people_projects VALUES ('p', '{}', '2026-01-01'); INSERT INTO people_raters VALUES "
CHANGES = {
    "UPDATE trials SET cognition = 'good'": "cognition is not a number",
    "UPDATE trials SET execution = x'00'": "execution is not a number",
    "UPDATE trials SET decision = 17": "the check decision_in_range does not hold",
    "UPDATE trials SET angle_rad = -1": "the check angle_rad_in_range does not hold",
    "UPDATE trials SET distance_m = 9e999": "distance_m is not finite",
    "UPDATE trials SET simulated_s = -3": "simulated_s is below 0",
    "UPDATE trials SET steps = 'many'": "steps is not a whole number",
    "UPDATE trials SET steps = 1.5": "steps is not a whole number",
    "UPDATE trials SET wall_s = NULL": "wall_s is missing",
    "UPDATE trials SET success = 1 - success": "success does not follow from the rest of its row",
    "UPDATE trials SET \"case\" = 'no.0.such.1'": "case is not in the table cases",
    "UPDATE trials SET error_message = x'ff'": "error_message is not text",
    "UPDATE agents SET version = zeroblob(200000000)": "version is not text",
    "UPDATE agents SET owner = printf('%.*c', 2000000, 'x')": "owner has more than 1000000 characters",
    "UPDATE cases SET level = 'high'": "level is not a whole number",
    "UPDATE cases SET seed = -1": "seed is below 0",
    "INSERT INTO cases SELECT * FROM cases": "two rows have the same id",
    "INSERT INTO trials SELECT * FROM trials": "two rows have the same experiment and id",
    "INSERT INTO cases VALUES ('c', 's', NULL, NULL, NULL, NULL, NULL, ''); "
    "INSERT INTO scores VALUES ('s', 'servo', 'c', 'NaN')": "score is not a number",
    PERSON + "('p', 'R01', 'first', 'Ada', 'rater', NULL, '2026-01-01', NULL)": "position is not a whole number",
    PERSON + "('p', 'R01', 1, 'Ada', 'rater', NULL, '2026-01-01', NULL); "
    "INSERT INTO people_slots VALUES ('p', 'R01', 1, 'i', 'bribe', '2026-01-01')": "the check known_kind does not hold",
}


def loosened(path: Path, change: str = "") -> None:
    """The same content in tables without a rule, changed."""
    with sqlite3.connect(path, isolation_level=None) as connection:
        for table in METADATA.tables:
            connection.execute(f"CREATE TABLE copied AS SELECT * FROM {table}")
            connection.execute(f"DROP TABLE {table}")
            connection.execute(f"ALTER TABLE copied RENAME TO {table}")
        connection.executescript(change)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    make_fake_run(tmp_path / "run", agents=("servo",), distortions=("jpeg",), tasks=("pick",), seeds=1)
    return tmp_path / "run" / "results.sqlite"


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_a_row_that_no_merton_writes_is_refused_in_one_sentence(run: Path, change: str, read_only: bool) -> None:
    loosened(run, change)
    with pytest.raises(InfrastructureError) as raised:
        ResultStore(run, read_only)
    sentence = str(raised.value)
    assert CHANGES[change] in sentence
    assert f"{run} is damaged: in the table " in sentence
    assert len(sentence) < 500
    assert sentence.isprintable()


@pytest.mark.parametrize(
    "command",
    [
        "leaderboard show",
        "results list",
        "results merge RECORD INTO",
        "results export RECORD --out INTO",
        "leaderboard build RECORD --out INTO",
    ],
)
def test_no_command_takes_text_for_a_score(run: Path, tmp_path: Path, command: str) -> None:
    loosened(run, "UPDATE trials SET cognition = 'good', execution = 'x'")
    words = command.split() if "RECORD" in command else [*command.split(), "RECORD"]
    places = {"RECORD": str(run), "INTO": str(tmp_path / ("into.sqlite" if "merge" in command else "into.csv"))}
    ended = CliRunner().invoke(app, [places.get(word, word) for word in words])
    assert isinstance(ended.exception, InfrastructureError), ended.output
    assert not Path(places["INTO"]).exists()


def test_tables_without_rules_are_read_where_their_rows_are_right(run: Path) -> None:
    with ResultStore(run, read_only=True) as store:
        before = store.records()
    loosened(run)
    with ResultStore(run, read_only=True) as store:
        assert store.records() == before


def test_every_column_has_a_rule() -> None:
    """A table or type that is new to the schema is checked, or this ends with an error."""
    for table in METADATA.sorted_tables:
        assert len(list(rows._faults(table))) >= len(table.c)


def test_an_own_record_has_no_impossible_row(run: Path) -> None:
    with Database(run, read_only=True) as database, database.reading() as connection:
        assert rows.impossible_row(connection) == ""
