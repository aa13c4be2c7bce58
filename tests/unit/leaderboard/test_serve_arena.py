"""An Arena's boards on a served site: pages, the list of boards, renewal when a table changes, a record that is new."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from merton.cli import leaderboard as commands
from merton.errors import InputError
from merton.leaderboard import serve
from merton.leaderboard.published import tables as tables_module
from merton.leaderboard.published.tables import Tables
from merton.leaderboard.submissions.evaluated import EvaluatedItem
from merton.results.store import ResultStore

HEADER = "agent,benchmark,item,dimension,score,type,source\n"
ROWS = "a,ERQA,1,Object Type,1,general,self-reported\nb,ERQA,1,Object Type,0,embodied,evaluated by the host\n"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    with ResultStore(tmp_path / "record.sqlite"):
        return tmp_path / "record.sqlite"


@pytest.fixture
def items(tmp_path: Path) -> Path:
    (tmp_path / "items.csv").write_text(HEADER + ROWS)
    return tmp_path / "items.csv"


def client(app: FastAPI) -> TestClient:
    return TestClient(app, base_url="http://localhost:8080", raise_server_exceptions=False)


def test_one_site_has_tasks_benchmarks_capabilities_and_submissions(record: Path, items: Path) -> None:
    asking = client(serve.create_app(record, tables=Tables((items,))))
    listed = asking.get("/api/boards")
    assert [board["name"] for board in listed.json()] == [
        "published-task-embodied-question-answering",
        "published-core-capabilities",
        "published-fine-dimensions",
        "published-benchmark-erqa",
        "published-capabilities-erqa",
    ]
    for board in listed.json():
        page = asking.get(f"/{board['page']}")
        assert (page.status_code, board["rows"]) == (200, 2)
        assert "evaluated by the host" in page.text
        assert 'data-type="embodied AI model"' in page.text
    assert "Core capabilities" in asking.get("/").text  # the record has no agent, so the first page lists the boards
    assert asking.get("/submissions.html").status_code == 200
    assert asking.get("/submit").status_code == 200
    etag = listed.headers["etag"]
    assert asking.get("/api/boards", headers={"If-None-Match": etag}).status_code == 304


def test_a_board_is_given_whole(record: Path, items: Path) -> None:
    asking = client(serve.create_app(record, tables=Tables((items,))))
    board = asking.get("/api/boards/published-benchmark-erqa").json()
    assert (board["title"], board["columns"], board["maximum"]) == ("ERQA", ["Object Type"], 100.0)
    first = board["rows"][0]
    assert (first["agent"], first["type"], first["source"], first["total"]["score"]) == (
        "a",
        "general",
        "self-reported",
        100.0,
    )
    answer = asking.get("/api/boards/nothing")
    assert (answer.status_code, answer.json()["detail"]) == (
        404,
        "there is no board of that name; /api/boards lists them",
    )


def test_pages_are_renewed_when_a_table_changes_and_kept_when_it_breaks(record: Path, items: Path) -> None:
    app = serve.create_app(record, tables=Tables((items,)))
    asking, publisher = client(app), app.state.publisher
    assert not publisher.refresh()
    before = asking.get("/api/boards").headers["etag"]
    items.write_text(HEADER + ROWS + "c,ERQA,1,Object Type,2,general,\n")
    assert not publisher.refresh()
    assert asking.get("/health").json()["problem"] == "a table of the boards cannot be used"
    assert asking.get("/api/boards").headers["etag"] == before
    items.write_text(HEADER + ROWS + "c,ERQA,1,Object Type,1,general,\n")
    assert publisher.refresh()
    assert asking.get("/health").json()["status"] == "ok"
    assert asking.get("/api/boards").headers["etag"] != before
    assert {row["agent"] for row in asking.get("/api/boards/published-benchmark-erqa").json()["rows"]} == {
        "a",
        "b",
        "c",
    }


def test_a_wrong_table_ends_the_start_with_its_line(record: Path, items: Path) -> None:
    items.write_text(HEADER + "a,ERGA,1,Object Type,1,general,\n")
    with pytest.raises(InputError, match=r"items\.csv, line 2: unknown benchmark 'ERGA'"):
        serve.create_app(record, tables=Tables((items,)))
    with pytest.raises(InputError, match="need a sheet of scores: name one by --world-model"):
        serve.create_app(record, tables=Tables(ground_truth=items))


def test_applications_that_the_host_evaluated_stand_beside_the_tables(
    record: Path, items: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [EvaluatedItem("a", "ERQA", "1", "Object Type", 0.0, "", "evaluated by the host", "general")]
    monkeypatch.setattr(tables_module, "evaluated_items", lambda database: rows)
    asking = client(serve.create_app(record, tables=Tables((items,))))
    board = asking.get("/api/boards/published-benchmark-erqa").json()
    assert [(row["agent"], row["source"], row["total"]["score"]) for row in board["rows"]] == [
        ("a", "self-reported", 100.0),
        ("a", "evaluated by the host", 0.0),
        ("b", "evaluated by the host", 0.0),
    ]
    alone = client(serve.create_app(record))  # without a table as well
    assert alone.get("/api/boards").json()


def test_a_record_may_be_new_where_tables_are_named(tmp_path: Path, items: Path) -> None:
    new = tmp_path / "arena.sqlite"
    with pytest.raises(InputError, match="there is no result store"):
        commands.build(str(new), tmp_path / "site")
    with pytest.raises(InputError, match="No such file"):
        commands.build(str(new), tmp_path / "site", arena=[tmp_path / "none.csv"])
    assert not new.exists()
    commands.build(str(new), tmp_path / "site", arena=[items])
    assert new.exists()
    assert "evaluated by the host" in (tmp_path / "site" / "boards" / "published-core-capabilities.html").read_text()
