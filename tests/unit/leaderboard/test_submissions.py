"""One submission a manufacturer and month, by the server's clock, also when many arrive at the same time."""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from postgres import new_database
from typer.testing import CliRunner

from merton import __version__
from merton.cli.submissions import app
from merton.errors import InfrastructureError, InputError
from merton.leaderboard.submissions import receipts, rules
from merton.leaderboard.submissions.archive import pack, unpack
from merton.leaderboard.submissions.entrance import LONGEST_REASON, RefusedError
from merton.leaderboard.submissions.evaluation import EvaluationRules, due_day, steps
from merton.leaderboard.submissions.manifest import (
    FORMAT,
    Manifest,
    dataset_sha256,
    manifest_bytes,
    read_submission,
    scores_bytes,
    verify,
)
from merton.leaderboard.submissions.packing import (
    EXAMPLE_EXECUTIONS,
    EXAMPLE_SUCCESSES,
    example_submission,
    make_submission,
)
from merton.leaderboard.submissions.receipts import FIRST_WINDOW, current_window, next_window, on_board
from merton.leaderboard.submissions.rules import evaluate, submit, withdraw
from merton.results.database import Database
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.schema import SUBMISSION_SCORES, SUBMISSIONS
from merton.results.store import ResultStore

ITEMS = [TestCase("pick", seed, "gaussian_blur", level).id for seed in range(2) for level in (1, 3)]
NOVEMBER = datetime(2026, 11, 21, 8, 0, tzinfo=timezone.utc)
AT_ONCE = 50
PROCESSES = 10


def fill(where: str | Path, agent: str = "servo", experiment: str = "study") -> None:
    """A record with one agent's trials on `ITEMS`; its execution scores are 0, 25, 50, 75."""
    with ResultStore(where) as store:
        for number, item in enumerate(ITEMS):
            task, seed, distortion, level = item.split(".")
            case = TestCase(task, int(seed), distortion, int(level))
            store.record(TrialRecord(experiment, agent, case, Outcome.FAILURE, execution=25.0 * number))


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A record that can be submitted to."""
    place = str(tmp_path / "record.sqlite") if request.param == "sqlite" else new_database()
    fill(place)
    return place


@pytest.fixture
def database(where: str) -> Any:
    with Database(where) as opened:
        yield opened


@pytest.fixture
def local(tmp_path: Path) -> Any:
    """The same on SQLite alone, for what does not depend on the database."""
    fill(tmp_path / "record.sqlite")
    with Database(tmp_path / "record.sqlite") as opened:
        yield opened


def archived(
    scores: dict[str, float] | None = None, executions: dict[str, float] | None = None, **changes: object
) -> io.BytesIO:
    """A submission that is in order but for the changes."""
    scores = dict.fromkeys(ITEMS, 0.5) if scores is None else scores
    fields: dict[str, Any] = {
        "format": FORMAT,
        "manufacturer": "ACME",
        "agent": "servo",
        "version": "1",
        "weights_sha256": "none",
        "harness_version": __version__,
        "dataset_sha256": dataset_sha256(ITEMS),
        **changes,
    }
    manifest = Manifest.model_construct(**fields)
    return io.BytesIO(pack({"manifest.json": manifest_bytes(manifest), "scores.csv": scores_bytes(scores, executions)}))


def refusal(database: Database, source: io.BytesIO, now: datetime = NOVEMBER, who: str | None = None) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        submit(database, source, who, now=now)
    return caught.value


def logged(database: Database) -> list[receipts.Attempt]:
    with database.reading() as connection:
        return receipts.attempts(connection)


def taken(database: Database, now: datetime = NOVEMBER) -> list[receipts.Receipt]:
    with database.reading() as connection:
        return receipts.submissions(connection, now)


def shown(database: Database, now: datetime, metric: str = "success") -> dict[str, dict[str, float]]:
    with database.reading() as connection:
        return {entry.receipt.agent_id: dict(entry.of_trials(metric)) for entry in on_board(connection, now)}


def test_an_accepted_submission_is_in_the_record_with_its_receipt(database: Database) -> None:
    scores = {item: number / 3 for number, item in enumerate(ITEMS)}
    sent = archived(scores)
    receipt = submit(database, sent, now=NOVEMBER)
    assert (receipt.manufacturer, receipt.agent_id, receipt.status) == ("ACME", "servo 1 (ACME)", "accepted")
    assert (receipt.month, receipt.window) == ("2026-11", "2026-11-30")
    assert receipt.received_utc == "2026-11-21T08:00:00.000000Z"
    assert receipt.archive_sha256 == verify(io.BytesIO(sent.getvalue())).archive_sha256
    assert not receipt.repeated
    assert taken(database) == [receipt]
    assert [(a.manufacturer, a.accepted, a.reason) for a in logged(database)] == [("ACME", True, "")]
    with database.reading() as connection:
        stored = connection.execute(sa.select(SUBMISSION_SCORES.c.item, SUBMISSION_SCORES.c.score)).all()
    assert {row.item: row.score for row in stored} == scores


@pytest.mark.parametrize("name", ["ACME", "acme", "ＡＣＭＥ", "Acme"])
def test_the_second_of_a_month_is_refused_however_the_name_is_spelt(local: Database, name: str) -> None:
    first = submit(local, archived(), now=NOVEMBER)
    error = refusal(local, archived(manufacturer=name, agent="another"), NOVEMBER + timedelta(days=9))
    assert error.kind == "limit"
    assert first.id in str(error)
    assert "2026-12-01" in str(error)
    assert taken(local) == [first]
    assert [attempt.accepted for attempt in logged(local)] == [True, False]
    assert logged(local)[1].reason == str(error)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ACME", "\u0410\u0421\u041c\u0415"),  # all of it Cyrillic
        ("ACME", "A\u0421ME"),
        ("Ozone", "\u039fzone"),  # Greek
        ("\u0420\u043e\u0441\u0430", "Poca"),  # the first one keeps the name, in any script
        ("IBM", "\u0406\u0412\u041c"),
    ],
)
def test_a_name_that_looks_like_another_manufacturers_is_refused(local: Database, first: str, second: str) -> None:
    submit(local, archived(manufacturer=first), now=NOVEMBER)
    error = refusal(local, archived(manufacturer=second))
    assert error.kind == "invalid"
    assert f"looks like {first!r}" in str(error)
    assert [attempt.accepted for attempt in logged(local)] == [True, False]
    assert [receipt.manufacturer for receipt in taken(local)] == [first]


def test_names_that_differ_to_the_eye_or_are_plain_are_accepted(local: Database) -> None:
    names = (
        "Lab 1",
        "Lab l",
        "modern",
        "modem",
        "\u042f\u043d\u0434\u0435\u043a\u0441 AI",
        "日立 Hitachi",
        "Ärzte",
        "Arzte",
    )
    for name in names:
        submit(local, archived(manufacturer=name), now=NOVEMBER)
    assert {receipt.manufacturer for receipt in taken(local)} == set(names)
    next_month = datetime(2026, 12, 2, tzinfo=timezone.utc)
    submit(local, archived(manufacturer=names[0], scores=dict.fromkeys(ITEMS, 0.25)), now=next_month)


def test_another_manufacturer_and_another_month_are_accepted(database: Database) -> None:
    submit(database, archived(), now=NOVEMBER)
    submit(database, archived(manufacturer="Emca"), now=NOVEMBER + timedelta(seconds=1))
    submit(database, archived(version="2"), now=datetime(2026, 12, 1, tzinfo=timezone.utc))
    assert [(r.manufacturer, r.month) for r in taken(database)] == [
        ("ACME", "2026-11"), ("Emca", "2026-11"), ("ACME", "2026-12"),
    ]  # fmt: skip


def test_a_month_is_a_month_of_utc_for_clocks_of_any_zone(local: Database) -> None:
    in_tokyo = timezone(timedelta(hours=9))
    receipt = submit(local, archived(), now=datetime(2026, 12, 1, 3, 0, tzinfo=in_tokyo))
    assert receipt.month == "2026-11"
    assert submit(local, archived(version="2"), now=datetime(2026, 12, 1, 9, 0, tzinfo=in_tokyo)).month == "2026-12"


def test_the_same_archive_again_gives_the_same_receipt_and_uses_up_no_month(database: Database) -> None:
    first = submit(database, archived(), now=NOVEMBER)
    for now, evaluation in ((NOVEMBER, "received"), (datetime(2026, 12, 3, tzinfo=timezone.utc), "scored")):
        assert submit(database, archived(), now=now) == replace(first, evaluation=evaluation, repeated=True)
    assert submit(database, archived(version="2"), now=datetime(2026, 12, 4, tzinfo=timezone.utc)).month == "2026-12"
    assert [attempt.accepted for attempt in logged(database)] == [True, False, False, True]
    assert first.id in logged(database)[1].reason


def test_a_clock_that_is_set_back_gives_no_advantage(local: Database) -> None:
    """Row 14 of the table of faults."""
    december = datetime(2026, 12, 1, 0, 30, tzinfo=timezone.utc)
    submit(local, archived(), now=NOVEMBER)
    submit(local, archived(version="2"), now=december)
    for back in (timedelta(hours=1), timedelta(days=400)):
        assert refusal(local, archived(version="3"), december - back).kind == "limit"
    times = [attempt.received_utc for attempt in logged(local)]
    assert times == sorted(times)
    assert submit(local, archived(manufacturer="Emca"), now=NOVEMBER).month == "2026-12"


@pytest.mark.parametrize(
    ("source", "kind", "reason"),
    [
        (lambda: io.BytesIO(b""), "invalid", "empty"),
        (lambda: io.BytesIO(b"PK\x03\x04"), "invalid", "cut off"),
        (lambda: io.BytesIO(bytes(17 * 2**20)), "too large", "16 MiB"),
        (lambda: archived(agent="=cmd()"), "invalid", "line 4: agent"),
        (lambda: archived(agent="<b>servo</b>"), "invalid", "line 4: agent"),
        (lambda: archived(agent="evil\u202etxt"), "invalid", "U+202E"),
        (lambda: archived(manufacturer="x" * 10_000), "invalid", "line 3: longer"),
        (lambda: archived(dataset_sha256="0" * 64), "invalid", "of no dataset in this record; it has 1: study "),
        (lambda: archived({ITEMS[0]: float("nan")}), "invalid", "line 2: the score is missing"),
        (lambda: archived({ITEMS[0]: 1.5}), "invalid", "line 2: a score is"),
        (
            lambda: archived({ITEMS[0]: 0.5}),
            "invalid",
            f"line 2: the table ends without the score of {ITEMS[1]!r} and 2 more",
        ),
        (lambda: archived(dict.fromkeys([*ITEMS, "~"], 0.5)), "invalid", "line 6: '~' is not an item of study"),
        (lambda: archived(dict.fromkeys([*ITEMS, "=1+1"], 0.5)), "invalid", "line 2: '=1+1' is not an item of study"),
    ],
)
def test_an_invalid_submission_is_refused_and_logged(
    local: Database, source: Callable[[], io.BytesIO], kind: str, reason: str
) -> None:
    error = refusal(local, source())
    assert error.kind == kind
    assert reason in str(error)
    assert len(str(error)) <= LONGEST_REASON
    assert str(error).isprintable()
    (attempt,) = logged(local)
    assert (attempt.accepted, attempt.reason) == (False, str(error))
    assert taken(local) == []
    assert submit(local, archived(), now=NOVEMBER).month == "2026-11"  # a refusal uses nothing up


def test_a_known_sender_can_submit_for_itself_alone(local: Database) -> None:
    error = refusal(local, archived(), who="Emca")
    assert error.kind == "not yours"
    assert logged(local)[0].manufacturer == "Emca"
    assert submit(local, archived(), "acme", now=NOVEMBER).manufacturer == "ACME"
    with pytest.raises(InputError, match="manufacturer"):
        submit(local, archived(), "=cmd()", now=NOVEMBER)


def at_once(where: str, number: int) -> None:
    """One process's share of the fifty, a thread each, through one connection."""
    with Database(where) as database:
        ready = threading.Barrier(AT_ONCE // PROCESSES)

        def send(version: int) -> None:
            source = archived(version=str(version))
            ready.wait(60)
            with contextlib.suppress(RefusedError):  # the log says why
                submit(database, source)

        errors: list[BaseException] = []
        threads = [
            threading.Thread(target=lambda version=version: _kept(errors, send, version))
            for version in range(number, AT_ONCE, PROCESSES)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]


def _kept(errors: list[BaseException], work: Callable[[int], None], version: int) -> None:
    try:
        work(version)
    except BaseException as error:
        errors.append(error)


def test_of_fifty_at_once_exactly_one_is_accepted(where: str) -> None:
    """Row 15 of the table of faults: ten processes of five threads, all let go by the closing of one pipe."""
    starting, gate = os.pipe()
    children = []
    for number in range(PROCESSES):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(gate)
                os.read(starting, 1)
                at_once(where, number)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        children.append(child)
    os.close(starting)
    os.close(gate)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * PROCESSES
    with Database(where, read_only=True) as database:
        (receipt,) = taken(database)
        tried = logged(database)
        assert len(tried) == AT_ONCE
        assert [attempt.archive_sha256 for attempt in tried if attempt.accepted] == [receipt.archive_sha256]
        assert all(receipt.id in attempt.reason for attempt in tried if not attempt.accepted)
        times = [attempt.received_utc for attempt in tried]
        assert times == sorted(times)
        assert len({attempt.archive_sha256 for attempt in tried}) == AT_ONCE


def test_the_database_itself_refuses_a_second_one(database: Database) -> None:
    """The unique index stands behind the code: even an insert that looks at nothing cannot break the rule."""
    receipt = submit(database, archived(), now=NOVEMBER)
    with database.reading() as connection:
        row = dict(connection.execute(sa.select(SUBMISSIONS)).mappings().one())

    def insert() -> None:
        with database.transaction() as connection:
            connection.execute(sa.insert(SUBMISSIONS).values({**row, "id": "other"}))

    with pytest.raises(InputError, match=r"one_a_month|UNIQUE"):
        insert()
    assert taken(database) == [receipt]


def test_a_failure_in_the_middle_leaves_nothing(local: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise sa.exc.OperationalError("INSERT", {}, OSError("disk full"))

    monkeypatch.setattr(rules, "log_attempt", fails)
    with pytest.raises(InfrastructureError):
        submit(local, archived(), now=NOVEMBER)
    assert (taken(local), logged(local)) == ([], [])
    with local.reading() as connection:
        assert connection.execute(sa.select(SUBMISSION_SCORES)).all() == []


@given(st.datetimes(datetime(2024, 1, 1), datetime(2100, 1, 1)))
def test_windows_are_fortnights_that_begin_on_mondays(moment: datetime) -> None:
    window = next_window(moment)
    assert window.weekday() == FIRST_WINDOW.weekday() == 0
    assert (window - FIRST_WINDOW).days % 14 == 0
    assert timedelta(0) < datetime.combine(window, datetime.min.time()) - moment <= timedelta(days=14)
    assert current_window(moment) + timedelta(days=14) == window


def test_windows_have_the_dates_that_the_document_names() -> None:
    assert current_window(NOVEMBER) == date(2026, 11, 16)
    assert next_window(NOVEMBER) == date(2026, 11, 30)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def test_a_submission_is_on_the_board_from_its_window_on(database: Database) -> None:
    submit(database, archived(), now=NOVEMBER)
    assert shown(database, day("2026-11-29T23:59:59")) == {}
    assert shown(database, day("2026-11-30")) == {"servo 1 (ACME)": dict.fromkeys(ITEMS, 0.5)}


def test_a_newer_version_replaces_the_older_when_its_window_begins(database: Database) -> None:
    old = submit(database, archived(), now=NOVEMBER)
    new = submit(database, archived(dict.fromkeys(ITEMS, 0.75), agent="SERVO", version="2"), now=day("2026-12-02"))
    assert new.window == "2026-12-14"
    assert [(r.id, r.status) for r in taken(database)] == [(old.id, "superseded"), (new.id, "accepted")]
    assert list(shown(database, day("2026-12-13"))) == ["servo 1 (ACME)"]
    assert shown(database, day("2026-12-14")) == {"SERVO 2 (ACME)": dict.fromkeys(ITEMS, 0.75)}


def test_accepted_submissions_are_shown_after_a_change_of_the_rules_for_names(local: Database) -> None:
    receipt = submit(local, archived(), now=NOVEMBER)
    with local.transaction() as connection:
        said = connection.scalar(sa.select(SUBMISSIONS.c.manifest)).replace('"ACME"', '"ACME*"')
        connection.execute(sa.update(SUBMISSIONS).values(manifest=said))
    assert taken(local) == [replace(receipt, manufacturer="ACME*")]
    assert list(shown(local, day("2026-11-30"))) == ["servo 1 (ACME*)"]


def test_other_agents_of_a_manufacturer_stay(local: Database) -> None:
    submit(local, archived(), now=NOVEMBER)
    submit(local, archived(agent="describe"), now=day("2026-12-02"))
    assert list(shown(local, day("2027-01-01"))) == ["describe 1 (ACME)", "servo 1 (ACME)"]


def test_a_withdrawn_submission_stays_in_the_list_and_no_older_one_returns(local: Database) -> None:
    old = submit(local, archived(), now=NOVEMBER)
    new = submit(local, archived(version="2"), now=day("2026-12-02"))
    assert withdraw(local, new.id, now=day("2026-12-20")).status == "withdrawn"
    assert shown(local, day("2026-12-20")) == {}
    assert [r.status for r in taken(local)] == ["superseded", "withdrawn"]
    assert refusal(local, archived(version="3"), day("2026-12-21")).kind == "limit"
    with pytest.raises(InputError, match="withdrawn already"):
        withdraw(local, new.id)
    with pytest.raises(InputError, match="no submission 'nothing'"):
        withdraw(local, "nothing")
    assert withdraw(local, old.id).status == "withdrawn"


@pytest.mark.parametrize(
    ("received", "due"),
    [
        (
            "2026-11-16T00:00:00",
            "2026-11-25",
        ),  # a Monday; Tuesday is the first day
        ("2026-11-20T23:59:59", "2026-12-01"),  # a Friday
        ("2026-11-21T08:00:00", "2026-12-01"),  # Saturday and Sunday are no working days
        ("2026-11-22T08:00:00", "2026-12-01"),
        ("2026-12-31T12:00:00", "2027-01-11"),  # holidays are
    ],
)
def test_due_days_by_hand(received: str, due: str) -> None:
    assert due_day(day(received), 7).isoformat() == due


@given(st.datetimes(datetime(2024, 1, 1), datetime(2100, 1, 1)), st.integers(1, 40))
def test_as_many_working_days_lie_before_the_due_day(received: datetime, days: int) -> None:
    due = due_day(received, days)
    later = [received.date() + timedelta(days=passed + 1) for passed in range((due - received.date()).days)]
    assert sum(one.weekday() < 5 for one in later) == days
    assert due.weekday() < 5


def test_an_evaluation_has_a_due_day_and_every_step_stays(database: Database) -> None:
    """Received on a Saturday, on the board from the 30th, due on the 1st."""
    id = submit(database, archived(), now=NOVEMBER).id

    def state(now: str) -> tuple[str, str, str, bool, int]:
        (one,) = taken(database, day(now))
        return one.evaluation, one.reason, one.due, one.is_overdue(day(now).date()), len(shown(database, day(now)))

    assert state("2026-11-22") == ("received", "", "2026-12-01", False, 0)
    assert state("2026-11-30") == ("scored", "", "2026-12-01", False, 1)
    assert evaluate(database, id, "evaluating", now=day("2026-11-25")).evaluation == "evaluating"
    assert state("2026-12-01T23:59:59") == ("evaluating", "", "2026-12-01", False, 1)
    assert state("2026-12-02") == ("evaluating", "", "2026-12-01", True, 1)
    evaluate(database, id, "refused", "  the weights are\nnot those ", now=day("2026-12-02"))
    assert state("2026-12-03") == ("refused", "the weights are not those", "2026-12-01", False, 0)
    assert taken(database)[0].standing == "refused"
    assert evaluate(database, id, "scored", now=NOVEMBER).reason == ""  # the clock was set back
    assert state("2026-12-03") == ("scored", "", "2026-12-01", False, 1)
    assert refusal(database, archived(version="2"), NOVEMBER).kind == "limit"  # the month is used up
    assert withdraw(database, id, now=day("2026-12-04")).evaluation == "withdrawn"
    with database.reading() as connection:
        kept = [(step.at_utc[:10], step.status, step.due) for step in steps(connection)[id]]
    assert kept == [
        ("2026-11-21", "received", "2026-12-01"),
        ("2026-11-25", "evaluating", ""),
        ("2026-12-02", "refused", ""),
        ("2026-12-02", "scored", ""),
        ("2026-12-04", "withdrawn", ""),
    ]


def test_what_a_host_cannot_say_is_refused(local: Database) -> None:
    id = submit(local, archived(), now=NOVEMBER).id
    evaluate(local, id, "evaluating", now=NOVEMBER)
    for word, reason, message in (
        ("lost", "", "unknown status 'lost'; choose one of: evaluating, refused, scored"),
        ("refused", " ", "a refusal needs a --reason"),
        ("refused", "\u202ereversed", "printable text of at most 400 characters"),
        ("refused", "x" * 401, "printable text of at most 400 characters"),
        ("evaluating", "", "is evaluating already, since 2026-11-21"),
    ):
        with pytest.raises(InputError, match=message):
            evaluate(local, id, word, reason, NOVEMBER)
    with pytest.raises(InputError, match="no submission 'nothing'"):
        evaluate(local, "nothing", "scored")
    withdraw(local, id, NOVEMBER)
    with pytest.raises(InputError, match="is withdrawn; its status does not change"):
        evaluate(local, id, "scored", now=NOVEMBER)


def test_the_rule_of_the_due_day_is_the_hosts(local: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    first = submit(local, archived(), now=NOVEMBER)
    monkeypatch.setattr(rules, "load_rules", lambda: EvaluationRules(evaluation_working_days=1))
    assert submit(local, archived(manufacturer="Other"), now=NOVEMBER).due == "2026-11-23"
    assert taken(local)[0].due == first.due == "2026-12-01"  # what was promised stays


def test_the_host_sees_what_is_overdue_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = str(tmp_path / "record.sqlite")
    fill(record)
    with Database(record) as database:
        ids = [
            submit(database, archived(manufacturer=name), now=day(received)).id
            for name, received in (("Early", "2026-11-01"), ("Late", "2026-11-16"), ("Later", "2026-11-17"))
        ]
    monkeypatch.setattr(receipts, "clock", lambda: day("2026-11-26"))
    for id in ids[1:]:
        said = CliRunner().invoke(app, ["status", record, id, "evaluating"], catch_exceptions=False).output
        assert said.startswith("evaluating: servo 1 (Late")
    listed = CliRunner().invoke(app, ["list", record], catch_exceptions=False).output
    order = sorted(ids, key=listed.index)
    assert order == [ids[1], ids[0], ids[2]]  # due on the 25th; the first is on the board; due on the 26th
    assert listed.count("overdue") == 1


def test_a_packed_submission_is_accepted_and_has_the_trials_scores(local: Database, tmp_path: Path) -> None:
    with ResultStore(tmp_path / "record.sqlite", read_only=True) as store:
        data = make_submission(store, "servo", "ACME", version="1.0", weights_sha256="none")
        assert data == make_submission(store, "servo", "ACME", version="1.0", weights_sha256="none")
    files = unpack(data).files
    assert sorted(files) == ["manifest.json", "scores.csv"]
    submit(local, io.BytesIO(data), now=NOVEMBER)
    expected = {item: 0.25 * number for number, item in enumerate(ITEMS)}
    assert shown(local, day("2026-11-30"), "execution") == {"servo 1.0 (ACME)": expected}
    assert shown(local, day("2026-11-30")) == {"servo 1.0 (ACME)": dict.fromkeys(ITEMS, 0.0)}
    assert shown(local, day("2026-11-30"), "progress") == {"servo 1.0 (ACME)": {}}


def test_a_record_older_than_the_table_of_executions_takes_them_in(tmp_path: Path) -> None:
    fill(tmp_path / "record.sqlite")
    with sqlite3.connect(tmp_path / "record.sqlite") as connection:
        connection.execute("DROP TABLE submission_executions")
    with Database(tmp_path / "record.sqlite") as database:
        assert shown(database, day("2026-11-30")) == {}
        submit(database, archived(executions=dict.fromkeys(ITEMS, 0.25)), now=NOVEMBER)
        assert shown(database, day("2026-11-30"), "execution") == {"servo 1 (ACME)": dict.fromkeys(ITEMS, 0.25)}


def test_packing_uses_the_record_and_names_missing_facts(tmp_path: Path) -> None:
    fill(tmp_path / "r.sqlite")
    with ResultStore(tmp_path / "r.sqlite") as store:
        with pytest.raises(InputError, match="version"):
            make_submission(store, "servo", "ACME")
        store.register_agent("servo", version="7", weights_sha256="b" * 64)
        store.register_experiment("study", merton_version="0.0.9")
        files = unpack(make_submission(store, "servo", "ACME")).files
        assert b'"version": "7"' in files["manifest.json"]
        assert b'"harness_version": "0.0.9"' in files["manifest.json"]
        with pytest.raises(InputError, match="choose one of: servo"):
            make_submission(store, "nobody", "ACME")
        with pytest.raises(InputError, match="manufacturer"):
            make_submission(store, "servo", "=cmd()")
        store.record(TrialRecord("study", "servo", TestCase("push", 0, "fog", 1), Outcome.INFRASTRUCTURE))
        with pytest.raises(InputError, match=r"no score for 1 of the 5 items of study, such as 'push\.0\.fog\.1'"):
            make_submission(store, "servo", "ACME")
    fill(tmp_path / "r.sqlite", experiment="again")
    with ResultStore(tmp_path / "r.sqlite") as store:
        with pytest.raises(InputError, match="choose one of: again, study"):
            make_submission(store, "servo", "ACME")
        assert unpack(make_submission(store, "servo", "ACME", dataset="again")).files["manifest.json"]


def test_the_commands_lead_from_a_run_to_the_board(tmp_path: Path) -> None:
    record, out = str(tmp_path / "record.sqlite"), str(tmp_path / "mine.zip")
    fill(record)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
        assert result.exit_code == 0
        return result.output

    options = ["--agent", "servo", "--manufacturer", "ACME", "--version", "1", "--weights-sha256", "none"]
    run("pack", record, *options, "--out", out)
    assert "servo 1 of ACME: 4 scores of study" in run("check", out, "--record", record)
    accepted = run("send", record, out)
    assert "accepted: servo 1 (ACME)" in accepted
    assert "was received before" in run("send", record, out)
    Path(out).rename(tmp_path / "first.zip")
    run("pack", record, *options[:-4], "--version", "2", "--weights-sha256", "none", "--out", out)
    with pytest.raises(RefusedError, match="one a calendar month"):
        run("send", record, out)
    assert "withdrawn: servo 1 (ACME)" in run("withdraw", record, accepted.split(", ")[1])
    assert "withdrawn" in run("list", record)
    sent_again = run("send", record, str(tmp_path / "first.zip"))
    assert "withdrawn" in sent_again
    assert "on the board" not in sent_again
    assert run("list", record, "--attempts").count("ACME") >= 3
    with pytest.raises(InputError, match="there is no file"):
        run("send", record, "absent.zip")


def test_the_example_is_a_submission_and_always_the_same() -> None:
    submission = read_submission(unpack(example_submission()))
    assert (submission.scores, submission.table.executions) == (EXAMPLE_SUCCESSES, EXAMPLE_EXECUTIONS)
    assert submission.manifest.manufacturer == "My Lab"
    assert example_submission() == example_submission()
