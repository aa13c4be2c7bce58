"""The store acknowledges only what is on the disk, and keeps what it acknowledged."""

from __future__ import annotations

import os
import re
import resource
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_run import make_fake_run
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InfrastructureError, InputError
from merton.results.comparison import compare
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore


def trial(number: int = 0, agent: str = "servo", **changes: object) -> TrialRecord:
    record = TrialRecord(
        experiment="study",
        agent=agent,
        case=TestCase("pick", number, "gaussian_blur", 3),
        outcome=Outcome.FAILURE,
        cognition=0.25,
        decision=0.5,
        execution=93.125,
        distance_m=0.06875,
        steps=4,
        simulated_s=7.5,
        wall_s=1.25,
        error_code=201,
        error_message="no inverse kinematics at delta 3",
    )
    return replace(record, **changes)  # type: ignore[arg-type]


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked process and return its exit status; the parent's connections are not touched."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1]


def test_records_are_read_back_equal_and_ordered(tmp_path: Path) -> None:
    records = [trial(number) for number in (10, 2, 1)]
    records.append(
        trial(3, outcome=Outcome.INFRASTRUCTURE, cognition=None, decision=None, execution=None, distance_m=None)
    )
    with ResultStore(tmp_path / "new" / "results.sqlite") as store:
        assert all(store.record(record) for record in records)
    with ResultStore(tmp_path / "new" / "results.sqlite") as store:
        assert store.records("study") == sorted(records, key=lambda record: record.id)
        assert store.ids("study") == sorted(record.id for record in records)
        assert store.experiments() == ["study"]
        assert store.records("another") == []


def test_the_same_trial_again_is_accepted_and_stored_once(tmp_path: Path) -> None:
    with ResultStore(tmp_path / "r.sqlite") as store:
        assert store.record(trial()) is True
        assert store.record(trial(wall_s=99.0)) is False
        assert store.record(trial(experiment="other")) is True
        assert store.records("study") == [trial()]


def test_rows_do_not_depend_on_how_many_are_written_at_once(tmp_path: Path) -> None:
    """Not even their order in the file, which is that of the records."""
    records = [trial(number, agent) for agent in ("b", "a") for number in (7, 3, 5)]
    found = []
    for size in (1, 2, 6):
        file = tmp_path / f"{size}.sqlite"
        with ResultStore(file) as store:
            for start in range(0, 6, size):
                store.record_all(records[start : start + size])
        with sqlite3.connect(file) as content:
            found.append([list(content.execute(f"select * from {name}")) for name in ("agents", "cases", "trials")])
    assert found[0] == found[1] == found[2]
    assert [row[0] for row in found[0][0]] == ["b", "a"]


def test_numpy_numbers_are_stored_as_plain_numbers(tmp_path: Path) -> None:
    with ResultStore(tmp_path / "r.sqlite") as store:
        store.record(trial(decision=np.float32(0.5), steps=np.int64(4), execution=np.float64(93.125)))
        assert store.record(trial()) is False


def test_other_content_under_a_known_id_is_refused_by_name(tmp_path: Path) -> None:
    with ResultStore(tmp_path / "r.sqlite") as store:
        store.record(trial())
        with pytest.raises(InputError, match=r"servo\.pick\.0\.gaussian_blur\.3.*execution 93.125 against 12.0"):
            store.record(trial(execution=12.0))
        assert store.records("study") == [trial()]


@pytest.mark.parametrize(
    "change",
    [
        {"cognition": 1.01},
        {"cognition": float("nan")},
        {"decision": -0.001},
        {"decision": float("inf")},
        {"execution": 100.5},
        {"execution": "high"},
        {"distance_m": -1.0},
        {"distance_m": float("nan")},
        {"wall_s": float("nan")},
        {"steps": -1},
        {"steps": 1.5},
        {"case": TestCase("pick", 0, "gaussian_blur", 6)},
        {"case": TestCase("pick", -1, "gaussian_blur", 1)},
        {"case": TestCase("pick", 2**63, "gaussian_blur", 1)},
        {"outcome": "victory"},
        {"outcome": Outcome.INFRASTRUCTURE},
        {"agent": ""},
        {"agent": "evil\u202egnp"},
        {"agent": "torn\ud800"},
    ],
)
def test_impossible_content_never_reaches_the_file(tmp_path: Path, change: dict[str, Any]) -> None:
    with ResultStore(tmp_path / "r.sqlite") as store:
        with pytest.raises(InputError):
            store.record(trial(**change))
        assert store.ids("study") == []


def test_an_error_text_with_torn_bytes_does_not_lose_the_result(tmp_path: Path) -> None:
    with ResultStore(tmp_path / "r.sqlite") as store:
        assert store.record(trial(error_message="server said \udcff"))
        assert store.records("study")[0].error_message == "server said ?"


def test_hostile_text_is_data(tmp_path: Path) -> None:
    name = "a'); DROP TABLE trials; --<script>"
    with ResultStore(tmp_path / "r.sqlite") as store:
        store.record(trial(agent=name))
        assert store.records("study")[0].agent == name


def test_reading_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no result store at .*absent\.sqlite"):
        ResultStore(tmp_path / "absent.sqlite", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_sees_a_running_writer_and_cannot_write(tmp_path: Path) -> None:
    with ResultStore(tmp_path / "r.sqlite") as writer, ResultStore(tmp_path / "r.sqlite", read_only=True) as reader:
        writer.record(trial(1))
        assert reader.ids("study") == [trial(1).id]
        with pytest.raises(InfrastructureError, match="readonly"):
            reader.record(trial(2))
        writer.record(trial(2))
        assert len(reader.ids("study")) == 2


def test_strange_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("this is not a database at all, it is only text\n" * 40)
    with pytest.raises(InputError, match=r"text\.sqlite is not a result store"):
        ResultStore(tmp_path / "text.sqlite")
    with pytest.raises(InputError, match="not a result store"):
        ResultStore(tmp_path / "text.sqlite", read_only=True)
    with sqlite3.connect(tmp_path / "future.sqlite") as connection:
        connection.execute("PRAGMA user_version = 77")
    with pytest.raises(InputError, match="schema version 77"):
        ResultStore(tmp_path / "future.sqlite")
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="folder"):
        ResultStore(tmp_path / "file" / "r.sqlite")


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "browser.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    for read_only in (False, True):
        with pytest.raises(InputError, match="is not a result store"):
            ResultStore(path, read_only)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]


def damaged(path: Path, content: bytes, offset: int) -> None:
    """A record with 4 kB of its bytes flipped from an offset on."""
    end = min(offset + 4096, len(content))
    path.write_bytes(content[:offset] + bytes(byte ^ 0xFF for byte in content[offset:end]) + content[end:])


def test_4_kB_of_flipped_bytes_are_noticed_by_reading_wherever_they_are(tmp_path: Path) -> None:
    """Before: a quarter of the places, in an index or a table that was not read, went unnoticed."""
    with ResultStore(tmp_path / "whole.sqlite") as store:
        store.record_all([trial(number) for number in range(200)])
    content = (tmp_path / "whole.sqlite").read_bytes()
    assert len(content) > 16 * 4096
    path = tmp_path / "damaged.sqlite"
    named = set()
    for number, offset in enumerate(range(1000, len(content), 4500)):  # wherever in a page, most across two
        damaged(path, content, offset)
        with pytest.raises((InfrastructureError, InputError), match=r"damaged\.sqlite is") as caught:
            ResultStore(path, read_only=number % 2 == 0)
        assert str(caught.value).count("\n") == 0
        named.update(re.findall(r"damaged tables: (.*); whole: (.*); restore it from a copy", str(caught.value)))
    assert any("trials" in bad and "agents" in whole for bad, whole in named)
    assert any("agents" in bad and "trials" in whole for bad, whole in named)


EXPERIMENT = Path(__file__).parents[3] / "config" / "experiments" / "emergency_stop.yaml"
COMMANDS = (
    "report RUN",
    "compare RUN RUN",
    "leaderboard show RUN",
    "results list RUN",
    "results export RUN --out out.csv",
    "submission list RUN",
    "leaderboard build RUN --out pages",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_meets_a_damaged_record_ends_with_one_sentence(tmp_path: Path, command: str) -> None:
    run = tmp_path / "run"
    make_fake_run(run, agents=("servo",), distortions=("jpeg",), tasks=("pick",), seeds=1)
    shutil.copy(EXPERIMENT, run / "experiment.yaml")
    content = (run / "results.sqlite").read_bytes()
    damaged(run / "results.sqlite", content, len(content) - 5000)
    ended = CliRunner().invoke(app, [str(run) if word == "RUN" else word for word in command.split()])
    assert isinstance(ended.exception, InfrastructureError), ended.output
    assert "results.sqlite is damaged: " in str(ended.exception)


def test_a_value_that_no_trial_has_is_named(tmp_path: Path) -> None:
    with ResultStore(tmp_path / "results.sqlite") as store:
        store.record(trial())
    with sqlite3.connect(tmp_path / "results.sqlite") as connection:
        connection.execute("UPDATE trials SET outcome = 'bailure'")
    with (
        ResultStore(tmp_path / "results.sqlite", read_only=True) as store,
        pytest.raises(InfrastructureError, match=r"the record is damaged: the outcome of trial .* is 'bailure'"),
    ):
        store.records("study")


def test_a_trial_whose_file_was_removed_is_not_acknowledged(tmp_path: Path) -> None:
    with ResultStore(tmp_path / "r.sqlite") as store:
        store.record(trial(1))
        (tmp_path / "r.sqlite").unlink()
        with pytest.raises(InfrastructureError, match=r"r\.sqlite was removed or replaced while it was in use"):
            store.record(trial(2))
        ResultStore(tmp_path / "r.sqlite").close()  # another file of this name is another record
        with pytest.raises(InfrastructureError, match=r"r\.sqlite was removed or replaced while it was in use"):
            store.record(trial(3))


def test_the_file_is_set_up_to_be_durable(tmp_path: Path) -> None:
    with ResultStore(tmp_path / "r.sqlite") as store, store.database.transaction() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2  # FULL


def test_a_full_disk_is_an_infrastructure_error_and_costs_no_earlier_record(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"

    def fill() -> None:
        store = ResultStore(path)
        store.record(trial(0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (64_000, 64_000))
        try:
            for number in range(1, 1000):
                store.record(trial(number, error_message="x" * 2000))
        except InfrastructureError:
            os._exit(42)

    assert os.waitstatus_to_exitcode(in_child(fill)) == 42
    with ResultStore(path) as store:
        records = store.records("study")
        assert trial(0) in records
        assert store.record(trial(1000)) is True


def test_compare_ignores_time_and_names_the_rest() -> None:
    first = [trial(0), trial(1), trial(2)]
    assert compare(first, [trial(2, wall_s=50.0), trial(1, experiment="again"), trial(0)]) == []
    assert compare(first, [trial(0, decision=0.75, outcome=Outcome.SUCCESS), trial(1), trial(2)]) == [
        "servo.pick.0.gaussian_blur.3: outcome failure against success",
        "servo.pick.0.gaussian_blur.3: decision 0.5 against 0.75",
    ]
    assert compare(first, [trial(0), trial(2), trial(3)]) == [
        "not the same trials: 2 in both; 1 only in the first (servo.pick.1.gaussian_blur.3); "
        "1 only in the second (servo.pick.3.gaussian_blur.3)"
    ]
