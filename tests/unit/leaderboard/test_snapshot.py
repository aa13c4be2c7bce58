"""Snapshots: the same record gives the same bytes, wrong scores never reach a rating, stored ones survive faults."""

from __future__ import annotations

import io
import json
import math
import os
import random
import resource
import signal
import sqlite3
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InfrastructureError, InputError
from merton.leaderboard.board import BoardCell, rounded
from merton.leaderboard.site import write_site
from merton.leaderboard.snapshot import store as snapshot
from merton.leaderboard.snapshot.compute import compute
from merton.leaderboard.snapshot.contents import Snapshot
from merton.leaderboard.snapshot.inputs import Inputs
from merton.leaderboard.snapshot.terminal import disagreements, render_snapshot
from merton.leaderboard.submissions import rules
from merton.leaderboard.submissions.packing import make_submission
from merton.rating import agi_elo, likelihood
from merton.rating.predictions import gap
from merton.results.matrix import import_matrix, read_matrix
from merton.results.records import AgentRecord, ForeignScore, Outcome, TestCase, TrialRecord
from merton.results.schema import SNAPSHOTS
from merton.results.store import ResultStore
from merton.seeding import generator

AGENTS = ("oracle", "servo", "hold")


def trials(scenes: int = 6) -> list[TrialRecord]:
    """Three agents of different skill on tasks, scenes and levels, seeded."""
    found = []
    for skill, agent in zip((85.0, 65.0, 40.0), AGENTS, strict=True):
        for task in ("pick", "push"):
            for scene in range(scenes):
                for level in (0, 2, 4):
                    draw = generator(agent, task, scene, level)
                    score = float(np.clip(skill - 8 * level + 12 * draw.standard_normal(), 0.0, 99.0))
                    case = TestCase(task, scene, "jpeg" if level else "reference", level)
                    found.append(
                        TrialRecord("study", agent, case, Outcome.FAILURE, 0.5, 0.6, score, 0.1, wall_s=draw.random())
                    )
    return found


def imported() -> list[ForeignScore]:
    draw = np.random.default_rng(7)
    return [ForeignScore("matrix", agent, f"matrix/{i}", float(draw.random())) for agent in AGENTS for i in range(8)]


def filled(path: Path, records: list[TrialRecord], scores: list[ForeignScore]) -> ResultStore:
    """A record with these, stored one by one in the order given."""
    store = ResultStore(path)
    for record in records:
        store.record(record)
    with store.database.transaction() as connection:
        for score in scores:
            case = {"id": score.case, "source": score.source}
            for table, row in (("agents", {"id": score.agent}), ("cases", case), ("scores", vars(score))):
                store.database.insert_new(connection, sa.Table(table, sa.MetaData(), autoload_with=connection), [row])
    return store


def of(records: list[TrialRecord], **more: object) -> Snapshot:
    """By execution, by which the trials differ: all of them are failures."""
    return compute(Inputs(records, metric="execution", **more), "test", 1)  # type: ignore[arg-type]


def test_storage_order_changes_no_byte(tmp_path: Path) -> None:
    """Fault 20: the same content stored in three orders."""
    found = set()
    for order in range(3):
        records, scores = trials(), imported()
        if order:
            random.Random(order).shuffle(records)
            random.Random(order).shuffle(scores)
        with filled(tmp_path / f"{order}.sqlite", records, scores) as store:
            found.add(snapshot.to_json(snapshot.take(store, metric="execution")))
    assert len(found) == 1
    taken = snapshot.from_json(found.pop())
    assert (len(taken.agents), len(taken.cases), len(taken.matches)) == (3, 44, 132)
    assert (taken.experiments, taken.sources) == (("study",), ("matrix",))


def test_a_snapshot_without_checks_is_the_same_without_the_tests_of_the_methods(tmp_path: Path) -> None:
    """The board that a monitor renews does not take twice its time."""
    with filled(tmp_path / "r.sqlite", trials(), imported()) as store:
        checked, plain = (snapshot.take(store, checks=checks, metric="execution") for checks in (True, False))
    assert len(checked.diagnostics) == 2
    assert plain.diagnostics == ()
    assert plain.agents == checked.agents


def test_the_hash_covers_everything_but_wall_times() -> None:
    records = trials()
    first = of(records)
    assert of([replace(record, wall_s=9.0) for record in records]) == first
    for change in ({"execution": 1.0}, {"decision": 0.1}, {"steps": 9}, {"error_message": "slow"}):
        assert of([replace(records[0], **change), *records[1:]]).inputs_sha256 != first.inputs_sha256
    assert of(records, agents=[AgentRecord("servo", owner="lab")]).inputs_sha256 != first.inputs_sha256


def test_ratings_are_those_of_both_methods() -> None:
    records = trials()
    taken, matches = of(records), Inputs(records, metric="execution").matches()
    fitted, ratings = likelihood.fit(matches), agi_elo.rate(matches)
    for row in taken.agents:
        assert row.likelihood is not None
        assert row.agi_elo is not None
        assert row.likelihood.mean == pytest.approx(fitted.agents[row.id].mean, abs=1e-6)
        assert row.likelihood.interval == pytest.approx(fitted.agents[row.id].interval, abs=1e-6)
        assert row.agi_elo.mean == pytest.approx(ratings.agents[row.id].mean, abs=1e-6)
        assert row.agi_elo.spread == pytest.approx(ratings.agents[row.id].spread, abs=1e-6)
        assert row.rank == row.likelihood.rank
        assert [(item.quantile, item.p) for item in row.gaps[:3]] == [(1.0, 0.5), (1.0, 0.9), (1.0, 0.99)]
        hardest = max(case.mean for case in fitted.cases.values())
        assert row.gaps[1].gap == pytest.approx(gap(row.likelihood.mean, hardest, 0.9), abs=1e-5)
        assert [(item.quantile, item.p) for item in row.gaps[3:]] == [(0.99, 0.5), (0.99, 0.9), (0.99, 0.99)]
        assert all((item.interval is None) == bool(item.no_interval) for item in row.gaps)
        assert row.agi_elo.interval is None
    assert [row.id for row in taken.agents] == list(AGENTS)
    assert [check.method for check in taken.diagnostics] == ["likelihood", "agi_elo"]
    assert all(check.held_out and check.fidelity.agent_correlation == 1.0 for check in taken.diagnostics)


def test_every_interval_is_of_scenes_and_their_number_stands_beside_n() -> None:
    """The same trials seen four times each are more trials, and no more evidence; imported cases have no scene."""
    once = trials(3)
    again = [
        replace(item, case=replace(item.case, distortion=f"{item.case.distortion}{i}"))
        for item in once
        for i in range(4)
    ]
    few, many = of(once, scores=imported()), of(again, scores=imported())
    assert [(row.trials, row.trial_scenes) for row in (few.agents[0], many.agents[0])] == [(18, 6), (72, 6)]
    assert [(row.matches, row.scenes) for row in (few.agents[0], many.agents[0])] == [(26, 6), (80, 6)]
    for one, other in zip(of(once).agents, of(again).agents, strict=True):
        assert (other.score_interval, other.success_interval) == (one.score_interval, one.success_interval)
    cells = {board.name: board.rows[0] for board in many.boards}
    assert (cells["task"].cells[0].size, cells["task"].total.size) == ("24 in 3 scenes", "48 in 6 scenes")
    assert cells["source"].total.size == "8"
    wide, narrow = (row.total.interval for row in (cells["level"], cells["task"]))
    assert wide[1] - wide[0] > 0.05, "columns that share their scenes are not independent"
    assert narrow[1] - narrow[0] > 0.05


def test_one_scene_gives_no_interval_and_says_so() -> None:
    board = of([item for item in trials(1) if item.case.task == "pick"])
    assert all(row.score_interval == (0.0, 1.0) and row.likelihood.interval is None for row in board.agents)
    assert any("of one scene" in text for text in board.warnings)
    assert "no interval" in render_snapshot(board)


def test_neighbours_that_the_shuffles_swap_are_counted() -> None:
    """Two agents that nothing tells apart change places in about half of the orders; a third never."""
    twins = [(agent, f"case {i}", float((i + k) % 2)) for k, agent in enumerate(("one", "other")) for i in range(60)]
    scores = [
        ForeignScore("m", *match) for match in [*twins, *(("last", f"case {i}", float(i == 1)) for i in range(60))]
    ]
    taken = of([], scores=scores)
    passes = agi_elo.rate([(item.agent, item.case, item.score) for item in scores]).passes
    assert [{swap.upper, swap.lower} for swap in taken.swaps] == [{"one", "other"}]
    swap = taken.swaps[0]
    ahead = sum(b > a for a, b in zip(passes[swap.upper], passes[swap.lower], strict=True))
    assert swap.share == ahead / 20
    assert 0.2 <= swap.share <= 0.8
    assert disagreements(taken)[0].startswith("By AGI-Elo, 1 of 2 pairs of neighbours change places")


def test_agents_without_a_score_are_listed_last_and_never_rated() -> None:
    """Fault 19, missing: infrastructure faults, and agents that are only registered."""
    lost = TrialRecord("study", "broken", TestCase("pick", 0, "jpeg", 2), Outcome.INFRASTRUCTURE)
    taken = of([*trials(), lost], agents=[AgentRecord("absent", "1.0", "a" * 64, "lab")])
    assert [row.rank for row in taken.agents] == [1, 2, 3, None, None]
    absent, broken = taken.agents[-2:]
    assert (absent.id, absent.owner, absent.missing) == ("absent", "lab", "Registered, but nothing was scored.")
    assert (broken.infrastructure, broken.matches, broken.score, broken.gaps) == (1, 0, None, ())
    assert "1 ended in an infrastructure fault" in broken.missing
    assert [row.likelihood for row in taken.agents[:3]] == [row.likelihood for row in of(trials()).agents]


@pytest.mark.parametrize("score", [math.nan, math.inf, -0.01, 1.01])
def test_no_wrong_score_reaches_a_rating(score: float) -> None:
    """Fault 19: refused when it is computed, also if the record let it in."""
    with pytest.raises(InputError, match=r"0\.\.1"):
        of(trials(), scores=[ForeignScore("m", "servo", "m/1", score)])
    with pytest.raises(InputError, match=r"0\.\.1"):
        of([*trials(), replace(trials()[0], agent="new", execution=100 * score)])


def test_the_database_refuses_wrong_scores(tmp_path: Path) -> None:
    filled(tmp_path / "r.sqlite", trials(1), imported()).close()
    with sqlite3.connect(tmp_path / "r.sqlite") as connection:
        for value in ("2.0", "-0.1", "9e999"):
            with pytest.raises(sqlite3.IntegrityError, match="in_range"):
                connection.execute(f"UPDATE scores SET score = {value}")
        with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
            connection.execute("UPDATE scores SET score = NULL")


def test_one_agent_is_rated_by_agi_elo_alone() -> None:
    taken = of([record for record in trials() if record.agent == "servo"])
    assert (taken.agents[0].rank, taken.agents[0].likelihood) == (1, None)
    assert taken.agents[0].agi_elo
    assert any("no likelihood rating" in warning for warning in taken.warnings)
    assert of([]).agents == ()


def test_boards_show_missing_cells_and_rank_them_last() -> None:
    """Means by hand; the agent that lacks a task has no total, though its mean would be the highest."""
    scores = {("a", "pick"): 40.0, ("a", "push"): 60.0, ("b", "pick"): 30.0, ("b", "push"): 50.0, ("c", "pick"): 99.0}
    taken = of(
        [
            TrialRecord("e", agent, TestCase(task, scene, "reference", 0), Outcome.FAILURE, execution=score)
            for (agent, task), score in scores.items()
            for scene in (0, 1)
        ]
    )
    board = taken.boards[0]
    assert (board.name, board.columns) == ("task", ("pick", "push"))
    assert [taken.agents[row.agent].id for row in board.rows] == ["a", "b", "c"]
    assert [(row.rank, row.total.score, row.total.n) for row in board.rows] == [
        (1, 0.5, 4),
        (2, 0.4, 4),
        (None, None, 2),
    ]
    assert board.rows[2].cells[1] == BoardCell(None, None, 0)


def test_json_is_canonical_and_is_read_back() -> None:
    taken = of(trials(), scores=imported())
    data = snapshot.to_json(taken)
    assert snapshot.from_json(data) == taken
    assert data == json.dumps(json.loads(data), sort_keys=True, separators=(",", ":")).encode() + b"\n"
    torn = [
        data[:-100],
        b"",
        b"[]",
        data.replace(b'"rank":1', b'"rank":"1"'),
        data.replace(b'"score":0', b'"score":NaN', 1),
    ]
    for wrong in torn:
        with pytest.raises(InputError, match="not a snapshot of a leaderboard"):
            snapshot.from_json(wrong)


def test_snapshots_are_kept_and_only_new_ones_appended(tmp_path: Path) -> None:
    with filled(tmp_path / "r.sqlite", trials(3), []) as store:
        first = snapshot.take(store)
        assert snapshot.store_snapshot(store, first) is True
        assert snapshot.store_snapshot(store, snapshot.take(store)) is False
        store.record_all(trials(4))
        second = snapshot.take(store)
        assert snapshot.store_snapshot(store, second) is True
        assert [kept.inputs_sha256 for kept in snapshot.snapshots(store)] == [first.inputs_sha256, second.inputs_sha256]
        assert [snapshot.load(store, kept.id) for kept in snapshot.snapshots(store)] == [first, second]
        assert snapshot.latest(store) == second
        with store.database.transaction() as connection:  # a torn page, a hand in the file
            connection.execute(sa.update(SNAPSHOTS).where(SNAPSHOTS.c.id == 2).values(content="{"))
        with pytest.raises(InfrastructureError, match="damaged"):
            snapshot.load(store, 2)
        assert snapshot.latest(store) == first


def test_verify_compares_every_byte(tmp_path: Path) -> None:
    with filled(tmp_path / "r.sqlite", trials(3), imported()) as store:
        data = snapshot.to_json(snapshot.take(store, "board of November"))
        assert snapshot.verify(store, data) == ()
        better = data.replace(b'"score":', b'"score": ', 1)
        assert snapshot.verify(store, better) == (
            "the content is the same, but the bytes are not in their canonical form",
        )
        taken = snapshot.from_json(data)
        forged = replace(taken, agents=(replace(taken.agents[0], score=0.999), *taken.agents[1:]))
        assert snapshot.verify(store, snapshot.to_json(forged)) == ("these parts differ: agents",)
        store.record(replace(trials(1)[0], experiment="later"))
        assert "other content" in snapshot.verify(store, data)[0]


def test_submissions_are_on_the_board_from_their_window_on(tmp_path: Path) -> None:
    with filled(tmp_path / "r.sqlite", trials(2), []) as store:
        never = snapshot.take(store, metric="execution")
        assert never.window == ""
        (tmp_path / "s.zip").write_bytes(make_submission(store, "servo", "Acme", "2.0", "b" * 64))
        receipt = rules.submit(store.database, tmp_path / "s.zip", now=datetime(2026, 11, 18, tzinfo=timezone.utc))
        before, after = (snapshot.take(store, window=day, metric="execution") for day in ("2026-11-18", receipt.window))
        assert [row.id for row in before.agents] == list(AGENTS)
        row = next(row for row in after.agents if row.id == receipt.agent_id)
        servo = next(row for row in after.agents if row.id == "servo")
        assert (row.owner, row.version, row.weights_sha256) == ("Acme", "2.0", "b" * 64)
        assert (row.score, row.matches, row.trials) == (servo.score, servo.matches, 0)
        assert {row.id: row.submission for row in after.agents if row.submission} == {row.id: receipt.id}
        assert "Measured by the manufacturers themselves:\n  servo 2.0 (Acme)\n" in render_snapshot(
            after, everything=True
        )
        assert "servo 2.0 (Acme) (self-reported)" in render_snapshot(after)
        index = write_site(after, tmp_path / "site", store)
        assert index.read_text().count("self-reported") == 1
        assert index.with_name("board.csv").read_text().count(receipt.id) == 1
        assert after.window == receipt.window
        for taken in (after, before, never):  # those of earlier days have not changed
            assert snapshot.verify(store, snapshot.to_json(taken)) == ()
        with pytest.raises(InputError, match="2026-11-30"):
            snapshot.take(store, window="soon", metric="execution")


def old_format(data: bytes, folder: Path) -> Path:
    """A submission of format 2 as one of format 1, whose only scores are its executions."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        rows = [line.split(",") for line in archive.read("scores.csv").decode().split()[1:]]
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": 1}))
    (folder / "scores.csv").write_text("item,score\n" + "".join(f"{item},{execution}\n" for item, _, execution in rows))
    return folder


def test_a_submission_is_on_the_boards_of_what_it_states(tmp_path: Path) -> None:
    """Of format 2 by success, with its drop, and by execution; of format 1 by execution alone, and warnings say so."""
    when = datetime(2026, 11, 18, tzinfo=timezone.utc)
    with filled(tmp_path / "r.sqlite", trials(2), []) as store:
        new = make_submission(store, "servo", "Acme", "2.0", "b" * 64)
        (tmp_path / "new.zip").write_bytes(new)
        day = rules.submit(store.database, tmp_path / "new.zip", now=when).window
        old = make_submission(store, "hold", "Emca", "1.0", "none")
        rules.submit(store.database, old_format(old, tmp_path / "old"), now=when)
        for metric, there in (("success", ["servo"]), ("execution", ["hold", "servo"])):
            board = snapshot.take(store, window=day, metric=metric)
            rows = {row.id.split()[0]: row for row in board.agents if row.submission}
            measured = {row.id: row for row in board.agents}
            assert sorted(rows) == there
            for agent, row in rows.items():
                assert (row.score, row.score_interval) == (measured[agent].score, measured[agent].score_interval)
            assert rows["servo"].drop == measured["servo"].drop, "it is one function for trials and what is stated"
            said = [text for text in board.warnings if "submission" in text]
            assert said == (
                ["1 submission states no success of trials and is not on this board: hold 1.0 (Emca). One of format 1 "
                 "states execution alone."] if metric == "success" else []
            )  # fmt: skip
        assert rows["hold"].no_drop == "its submission states no success"


def test_a_submission_of_trials_states_success(tmp_path: Path) -> None:
    with filled(tmp_path / "r.sqlite", trials(2), []) as store:
        folder = old_format(make_submission(store, "servo", "Acme", "2.0", "none"), tmp_path / "old")
        manifest = (folder / "manifest.json").read_text().replace('"format": 1', '"format": 2')
        (folder / "manifest.json").write_text(manifest)
        with pytest.raises(InputError, match=r"scores\.csv, line 1: study is of trials, so the columns must"):
            rules.submit(store.database, folder)


def in_child(work: Callable[[], None]) -> int:
    """Exit code of `work` in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_full_disk_costs_neither_records_nor_the_old_snapshot(tmp_path: Path) -> None:
    """Fault 13."""
    path = tmp_path / "r.sqlite"
    with filled(path, trials(2), []) as store:
        old = snapshot.take(store)
        snapshot.store_snapshot(store, old)
        store.record_all(trials(12))
        new = snapshot.take(store)

    def fill() -> None:
        store = ResultStore(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, path.stat().st_size))
        try:
            for number in range(100):
                snapshot.store_snapshot(store, replace(new, name=f"copy {number}"))
        except InfrastructureError:
            os._exit(42)

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    assert in_child(fill) == 42
    with ResultStore(path) as store:
        assert snapshot.load(store, 1) == old
        assert len(store.records()) == len(trials(12))
        assert snapshot.verify(store, snapshot.to_json(new)) == ()


def test_a_record_that_cannot_be_written_is_served_as_it_is(tmp_path: Path) -> None:
    """Fault 13, read-only: a clear error, and all that is there can be read."""
    path = tmp_path / "r.sqlite"
    with filled(path, trials(2), []) as store:
        snapshot.store_snapshot(store, snapshot.take(store))
        store.record_all(trials(3))
    with ResultStore(path, read_only=True) as store:
        with pytest.raises(InfrastructureError, match="readonly"):
            snapshot.store_snapshot(store, snapshot.take(store))
        assert snapshot.latest(store) is not None


def test_kill_9_again_and_again_and_the_same_ratings(tmp_path: Path) -> None:
    """Fault 12: killed at random moments; after unacknowledged results are sent again, the bytes are the same."""
    wanted, draw, path, done = trials(6), random.Random(7), tmp_path / "r.sqlite", 0
    for _ in range(40):
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            with ResultStore(path) as store:
                for record in wanted[done:]:
                    store.record(record)
                    os.write(send, b"+")
            os._exit(0)
        os.close(send)
        done += sum(len(os.read(receive, 1)) for _ in range(draw.randrange(1, 3)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while chunk := os.read(receive, 100):  # acknowledged between the last read and the kill
            done += len(chunk)
        os.close(receive)
        with ResultStore(path, read_only=True) as store:
            stored = store.records()
        assert set(wanted[:done]) <= set(stored) <= set(wanted)
    with ResultStore(path) as store:
        store.record_all(wanted[done:])
        again = snapshot.to_json(snapshot.take(store))
    with filled(tmp_path / "calm.sqlite", wanted, []) as store:
        assert snapshot.to_json(snapshot.take(store)) == again


def test_rate_and_verify_on_the_command_line(tmp_path: Path) -> None:
    record, file = str(tmp_path / "r.sqlite"), tmp_path / "snapshot.json"
    filled(tmp_path / "r.sqlite", trials(3), []).close()
    runner = CliRunner()
    rated = runner.invoke(app, ["leaderboard", "show", record, "--out", str(file), "--all"])
    assert rated.exit_code == 0
    for text in ("likelihood [95 %]", "AGI-Elo (RD)", "pairs of neighbours", "oracle", "inputs"):
        assert text in rated.output
    assert runner.invoke(app, ["leaderboard", "verify", record, str(file)]).exit_code == 0
    with ResultStore(tmp_path / "r.sqlite") as store:
        store.record_all(trials(4))
    changed = runner.invoke(app, ["leaderboard", "verify", record, str(file)])
    assert (changed.exit_code, "other content" in changed.output) == (1, True)
    absent = runner.invoke(app, ["leaderboard", "show", str(tmp_path / "absent.sqlite")])
    assert isinstance(absent.exception, InputError)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_response_matrix_is_rated_as_if_it_were_imported(tmp_path: Path, ending: str) -> None:
    draw, file, record = np.random.default_rng(3), tmp_path / f"matrix{ending}", tmp_path / "r.sqlite"
    scores = draw.random((4, 20)).round(2)
    columns = {"agent": [f"a{i}" for i in range(4)], "version": ["1", "2", "", "4"]}
    columns |= {
        f"case {i}": [None if i == 3 and agent == 2 else scores[agent, i] for agent in range(4)] for i in range(20)
    }
    if ending == ".csv":
        lines = [columns, *zip(*columns.values(), strict=True)]
        file.write_text("".join(",".join("" if cell is None else str(cell) for cell in line) + "\n" for line in lines))
    else:
        pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
        parquet.write_table(pyarrow.table(columns), file)
    with ResultStore(record) as store:
        import_matrix(store, read_matrix(file))
    shown = [
        CliRunner().invoke(app, ["leaderboard", "show", str(path), "--out", f"{path}.json"]).output
        for path in (file, record)
    ]
    assert shown[0] == shown[1]
    assert "a3" in shown[0]
    assert Path(f"{file}.json").read_bytes() == Path(f"{record}.json").read_bytes()


def test_a_file_that_is_no_matrix_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("agent,one\na,2\n")
    refused = CliRunner().invoke(app, ["leaderboard", "show", str(tmp_path / "m.csv")]).exception
    assert isinstance(refused, InputError)
    assert "the score 2.0 is not in 0 .. 1" in str(refused)
    assert isinstance(
        CliRunner().invoke(app, ["leaderboard", "show", str(tmp_path / "none.csv")]).exception, InputError
    )


def test_progress_names_the_long_steps() -> None:
    steps: list[str] = []
    compute(Inputs(trials()), "test", 1, progress=steps.append)
    assert steps[0] == "rating 3 agents on 36 cases: 108 matches, 20 orders"
    assert len(steps) == 5


def test_floats_are_rounded_everywhere() -> None:
    assert rounded((1 / 3, -1e-9, 7, None, "x")) == (0.333333, 0.0, 7, None, "x")
    assert str(rounded(-1e-9)) == "0.0"
