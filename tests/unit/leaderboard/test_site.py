"""The leaderboard as pages: complete, escaped, without requests to other machines, the same bytes every time."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import sqlalchemy as sa
from episodes_folder import make_episodes_run
from fake_run import make_fake_run
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InfrastructureError, InputError
from merton.files import UNFINISHED
from merton.leaderboard.board import Board, BoardCell, BoardRow, missing_cell, share_cell
from merton.leaderboard.site import figures, frame, record_extras, run_directories, view, write_site, writer
from merton.leaderboard.site.footnotes import Footnotes
from merton.leaderboard.site.names import file_names
from merton.leaderboard.snapshot import store as snapshots
from merton.leaderboard.snapshot.compute import compute
from merton.leaderboard.snapshot.contents import Snapshot, Standing
from merton.leaderboard.snapshot.inputs import Inputs
from merton.leaderboard.snapshot.store import from_json, of_trials, to_json
from merton.leaderboard.submissions.receipts import Receipt
from merton.pages import svg
from merton.results.merge import merge
from merton.results.records import ForeignScore, Outcome, TestCase, TrialRecord
from merton.results.schema import ATTEMPTS
from merton.results.store import ResultStore, open_record
from merton.results.text import places
from merton.study.report import _environment as report_environment

NASTY = (
    '<script>alert("x")</script>',
    "=HYPERLINK(1)",
    "../../etc/passwd",
    "\u202egnp.exe\u2066",
    "Ann & 'Bob' \"Co\"",
    "x" * 10_000,
    "CON",
    "a\x00b\nc",
    "Ö" * 200,
)


class Page(HTMLParser):
    """Tags and text of a page; `html.parser` also unescapes, so they are those that a browser finds."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.tags, self.text = path, [], ""
        self.content = path.read_text(encoding="utf-8")
        self.feed(self.content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def links(self) -> list[str]:
        return [item["href"] for item in self.all("a")]


def trials(agents: Sequence[str], tasks: Sequence[str] = ("pick", "push")) -> list[TrialRecord]:
    """Every agent on every case; the n-th loses n points a level, so that no two are equal."""
    cases = [TestCase(task, 0, "reference", 0) for task in tasks]
    cases += [TestCase(task, 0, name, level) for task in tasks for name in ("jpeg", "webp") for level in (1, 5)]
    return [
        TrialRecord("e", agent, case, Outcome.FAILURE, 0.9, 0.8, 90.0 - 3 * place - (2 + place) * case.level)
        for place, agent in enumerate(agents)
        for case in cases
    ]


def foreign() -> Snapshot:
    """An imported matrix with a blank, beside trials of other agents: two boards, and cells that are missing."""
    scores = [ForeignScore("mteb", agent, case, value) for agent, case, value in (
        ("one", "a", 0.9), ("one", "b", 0.6), ("one", "c", 0.4), ("two", "a", 0.8), ("two", "b", 0.3),
        ("hold", "a", 0.5), ("hold", "c", 0.1), ("servo", "b", 0.55), ("servo", "c", 0.35),
    )]  # fmt: skip
    return compute(Inputs(trials(("servo", "hold")), scores), "foreign", 2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with pictures, and a record that keeps an earlier snapshot and attempts to submit."""
    folder = tmp_path_factory.mktemp("site") / "run"
    make_fake_run(folder, distortions=("gaussian_blur", "jpeg"), tasks=("pick", "push"), levels=(1, 5))
    with open_record(folder) as store:
        taken = snapshots.take(store)
        snapshots.store_snapshot(store, replace(taken, agents=taken.agents[:2], warnings=("an earlier one",)))
        with store.database.transaction() as connection:
            for accepted, reason in ((True, ""), (False, "<i>one a month</i>"), (False, "no manifest")):
                line = {"received_utc": "2026-11-02T03:04:05Z", "manufacturer": "<b>Acme</b>", "archive_sha256": ""}
                connection.execute(sa.insert(ATTEMPTS).values(**line, accepted=accepted, reason=reason))
    return folder


@pytest.fixture(scope="module")
def site(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of `run`."""
    target = tmp_path_factory.mktemp("pages") / "site"
    with open_record(run, read_only=True) as store:
        assert write_site(snapshots.take(store), target, store) == target / "index.html"
    return target


@pytest.fixture(scope="module")
def foreign_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of `foreign`, as a server has them."""
    return write_site(foreign(), tmp_path_factory.mktemp("foreign") / "site", served=True).parent


def pages(folder: Path) -> Iterator[Page]:
    found = sorted(folder.rglob("*.html"))
    assert found
    return (Page(path) for path in found)


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("which", ["site", "foreign_site"])
def test_every_link_leads_to_a_file_of_the_site(which: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(which)
    served = {"api", "apply", *(name for name, _ in writer.SERVED_PAGES)} if which == "foreign_site" else set()
    for page in pages(folder):
        addresses = page.links + [item["src"] for tag in ("img", "script") for item in page.all(tag)]
        addresses += [item["href"] for item in page.all("link")]
        for address in addresses:
            assert not re.match(r"[a-z]+:|//", address), f"{page.path}: {address}"
            name, _, anchor = address.partition("#")
            target = (page.path.parent / name).resolve() if name else page.path
            if target.name in served and target.parent == folder:
                continue
            assert target.is_file(), f"{page.path}: {address}"
            assert folder in target.parents
            if anchor:
                assert f'id="{anchor}"' in target.read_text(encoding="utf-8")
    for asset in (folder / "assets").iterdir():
        if asset.suffix != ".svg":
            assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttp|eval\(", asset.read_text())


@pytest.mark.parametrize("which", ["site", "foreign_site"])
def test_pages_can_be_read_without_seeing_them(which: str, request: pytest.FixtureRequest) -> None:
    for page in pages(request.getfixturevalue(which)):
        assert page.all("html")[0]["lang"] == "en"
        headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
        assert headings.count(1) == 1
        assert headings[0] == 1
        assert all(after - before <= 1 for before, after in itertools.pairwise(headings)), page.path
        assert page.links[0] == "#main"
        assert len(page.all("caption")) == len(page.all("table"))
        assert all(item.get("scope") in ("row", "col") for item in page.all("th")), page.path
        assert all(item.get("alt") for item in page.all("img"))
        assert all(item.get("aria-label") or item.get("aria-hidden") for item in page.all("svg"))
        identifiers = [item["id"] for _, item in page.tags if "id" in item]
        assert len(identifiers) == len(set(identifiers)), page.path
        assert all(item["aria-labelledby"] in identifiers for _, item in page.tags if "aria-labelledby" in item)
        assert not any("style" in item or any(name.startswith("on") for name in item) for _, item in page.tags)
        # the text of a label is its control's name: every control stands inside one
        assert page.content.count("<label>") == len(page.all("input")) + len(page.all("select"))


def test_a_case_shows_images_answers_and_outcomes(site: Path) -> None:
    page = Page(site / "cases" / "pick.0.jpeg.5.html")
    assert [item["alt"] for item in page.all("img")] == ["top camera, reference image", "top camera, distorted image"]
    for item in page.all("img"):
        assert (page.path.parent / item["src"]).read_bytes().startswith(b"\xff\xd8\xff")
    assert "pick up the red cube" in page.text
    assert page.text.count("I see a red cube") >= 3  # three agents, a reference answer each
    assert all(agent in page.text for agent in ("oracle", "servo", "hold"))
    assert (
        "no picture was stored" in Page(site / "cases" / "pick.0.jpeg.1.html").text
    )  # fake_run stores those of level 5
    assert len(list((site / "cases").iterdir())) == 10


def test_a_case_of_another_program_has_no_column_in_which_nothing_was_measured(site: Path, tmp_path: Path) -> None:
    def headings(page: Path) -> list[str]:
        table = page.read_text(encoding="utf-8").partition('class="answers"')[2].partition("</thead>")[0]
        return re.findall(r"<th[^>]*>([^<]*)</th>", table)

    run = make_episodes_run(tmp_path, scenes=3)
    with open_record(run, read_only=True) as store:
        write_site(snapshots.take(store), tmp_path / "site", store)
    cases = [page for page in (tmp_path / "site/cases").iterdir() if headings(page)]
    assert cases
    for page in cases:
        shown = headings(page)
        assert shown in (["agent", "outcome"], ["agent", "outcome", "decision"]), page.name
        assert "not stored" not in page.read_text(encoding="utf-8")
    answers = ["answer to the reference image", "answer to the distorted image"]
    stages = ["cognition", "decision", "execution"]
    assert headings(site / "cases" / "pick.0.jpeg.5.html") == ["agent", "outcome", *stages, *answers]


def test_an_agent_shows_its_profile_its_gaps_and_every_case(site: Path) -> None:
    page = Page(site / "agents" / "servo.html")
    assert len([link for link in page.links if link.startswith("../cases/")]) == 10
    assert page.text.count("the hardest case") >= 3
    assert "99\u00a0% of the cases" in page.text
    for name, family in (("gaussian blur", "blur"), ("jpeg", "compression")):
        assert f"{name} <small>{family}</small>" in page.content
    assert re.search(r'<td class="h\d+">', page.content)
    assert "never varies" not in page.text
    still = Page(site / "agents" / "hold.html").text
    assert "x, y, z, rotation x, rotation y, rotation z, gripper of its actions: the same whatever the image" in still


def test_history_and_attempts_come_from_the_record(site: Path) -> None:
    history = Page(site / "history.html")
    assert "not kept in the record" in history.text
    assert history.content.count('<polyline points="') >= 2
    assert "missing: not in this snapshot" in history.text  # the third agent is new
    submissions = Page(site / "submissions.html")
    assert "Nothing has been submitted yet" in submissions.text
    assert "<i>one a month</i>" in submissions.text
    assert re.search(r"<bdi>&lt;b&gt;Acme&lt;/b&gt;</bdi></th><td>3</td><td>1</td>", submissions.content)


def test_withdrawn_and_superseded_submissions_stay_visible(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipts = [
        Receipt(
            month, "<b>Acme</b>", "arm", "1", "", "0.7", "", f"{month}-02T03:04:05.6Z", month, "", status, "ab" * 32, ""
        )
        for month, status in (("2026-09", "superseded"), ("2026-10", "withdrawn"), ("2026-11", "accepted"))
    ]
    said = {"due": "2026-09-11", "evaluation": "refused", "reason": "<i>other weights</i>"}
    receipts[0] = replace(receipts[0], status="accepted", **said)
    with open_record(run, read_only=True) as store:
        taken = snapshots.take(store)
        monkeypatch.setattr(record_extras, "submissions", lambda connection: receipts)
        page = Page(write_site(taken, tmp_path / "site", store, images=()).parent / "submissions.html")
    assert "1 accepted, 1 refused, 1 withdrawn" in page.text
    assert "2026-09-11refused: <i>other weights</i>" in page.text
    assert page.text.count("Merton 0.7") == 3
    assert "<b>Acme</b>" in page.text
    assert page.text.index("2026-11-02 03:04:05") < page.text.index("2026-09-02 03:04:05")


def test_a_stored_snapshot_is_no_history_of_itself(run: Path, tmp_path: Path) -> None:
    with ResultStore(tmp_path / "own.sqlite") as store, open_record(run, read_only=True) as source:
        store.record_all(source.records())
        taken = snapshots.take(store)
        snapshots.store_snapshot(store, taken)
        page = Page(write_site(taken, tmp_path / "site", store).parent / "history.html")
    assert "This is the first snapshot" in page.text
    assert "these pages" in page.text


def test_missing_values_have_a_reason_and_are_listed_last(foreign_site: Path) -> None:
    index = Page(foreign_site / "index.html")
    assert "missing: no undistorted trials" in index.text
    rows = re.findall(r"<tr>\s*<td>(\d+)</td>", index.content)
    assert rows == sorted(rows)
    assert re.search(r"<li><sup>a</sup> no undistorted trials</li>", index.content)
    assert re.search(r"–<sup>b</sup>", index.content)
    assert re.search(r"<li><sup>b</sup> withheld: the matches leave it open, see the warnings</li>", index.content)
    matrix = Page(foreign_site / "boards" / "cases-mteb.html")
    assert [link for link in matrix.links if link.startswith("../submit")] == ["../submit"]
    assert "submit" not in {Path(link).name for link in Page(foreign_site / "methods.html").links} - {"submit"}


def test_the_first_page_has_the_table_by_every_metric(site: Path) -> None:
    index = Page(site / "index.html")
    table = index.text[index.text.index("By every metric") :]
    assert "execution (the paper’s), %" in table
    assert "agents have the same place by success as by execution" in table
    assert "By every metric" not in Page(site / "boards.html").text


def test_a_board_with_a_hole_has_no_total_and_is_last(tmp_path: Path) -> None:
    taken = compute(Inputs(trials(("servo", "hold")), metric="execution"), "test", 2)
    full = BoardRow(0, 1, BoardCell(0.5, (0.4, 0.6), 8), (BoardCell(0.5, (0.4, 0.6), 4),) * 2)
    hole = BoardRow(1, None, BoardCell(None, None, 4), (BoardCell(0.9, (0.8, 1.0), 4), BoardCell(None, None, 0)))
    board = Board("task", "By task", "A note.", ("a", "b"), (full, hole))
    cells = (share_cell([1, 1, 1, 0], 100.0), missing_cell("no items"))
    guest = BoardRow("guest", None, missing_cell("lacks y (no items)"), cells)
    arena = Board("task", "Arena", "c / k", ("x", "y"), (guest,), 100.0)
    index = write_site(replace(taken, boards=(board,)), tmp_path / "site", published=[arena])
    page = Page(index.parent / "boards" / "task.html")
    assert page.text.count("missing: ") == 3  # its rank, its total, its cell
    assert page.text.index("servo") < page.text.index("hold")
    published = Page(index.parent / "boards" / "published-task.html")
    assert "missing: no items" in published.text
    assert "75.00" in published.text
    assert "lacks y (no items)" in Page(index.parent / "boards.html").text


def test_names_of_any_kind_are_escaped_cut_and_kept_out_of_paths(tmp_path: Path) -> None:
    records = trials(NASTY)
    taken = replace(of_trials(records, "<u>board</u>\u202e"), warnings=("<img src=x onerror=alert(1)>" + "w" * 5000,))
    owners = tuple(replace(agent, owner="=1+1<i>", version="\u202e" + "v" * 10_000) for agent in taken.agents)
    folder = write_site(replace(taken, agents=owners), tmp_path / "inside" / "site").parent
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside"]
    assert [path.name for path in folder.parent.iterdir()] == ["site"]
    assert len(list((folder / "agents").iterdir())) == len(NASTY)
    for page in pages(folder):
        assert {tag for tag, _ in page.tags} & {"u", "iframe"} == set()
        assert len(page.all("script")) == 1
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00]", page.content)
        assert "x" * 200 not in page.content
        assert page.path.stat().st_size < 120_000
    assert any(NASTY[0] in page.text for page in pages(folder))
    with (folder / "board.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["id"] for line in lines} == {f"'{name}" if name[0] == "=" else name for name in NASTY}
    assert {line["owner"] for line in lines} == {"'=1+1<i>"}
    with (folder / "matches.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(records)


def test_file_names_are_safe_and_unique() -> None:
    ids = [
        *NASTY,
        "a",
        "A",
        "a.",
        ".a",
        "a/b",
        "a\\b",
        "",
        "nul",
        "com1.x",
        "x" * 61,
        "x" * 62,
        "pick.0.jpeg.3",
        "a..b",
    ]
    names = file_names(ids)
    assert len({name.lower() for name in names.values()}) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", name) and ".." not in name for name in names.values())
    assert all(len(name) <= 80 and name.split(".")[0] not in ("con", "nul", "com1") for name in names.values())
    assert names["pick.0.jpeg.3"] == "pick.0.jpeg.3"
    assert names["a"] == "a"
    assert file_names(reversed(ids)) == names
    # an id that is another one's file name does not take it away
    forged = names["A"]
    assert len(set(file_names(["A", forged]).values())) == 2


def test_the_same_snapshot_gives_the_same_bytes(site: Path, run: Path, tmp_path: Path) -> None:
    with open_record(run, read_only=True) as store:
        again = write_site(snapshots.take(store), tmp_path / "again", store).parent
    assert tree(again) == tree(site)


def test_the_downloads_are_the_snapshot(site: Path, run: Path) -> None:
    with open_record(run, read_only=True) as store:
        taken = snapshots.take(store)
    content = (site / "board.json").read_bytes()
    assert content == to_json(taken)
    assert from_json(content) == taken
    page = Page(site / "downloads.html")
    for name in ("board.json", "board.csv", "matches.csv"):
        assert hashlib.sha256((site / name).read_bytes()).hexdigest() in page.text
    assert [taken.inputs_sha256 in page.text for page in pages(site)].count(True) == 1  # on the page of downloads
    with (site / "board.csv").open(encoding="utf-8", newline="") as file:
        line = next(csv.DictReader(file))
    best = taken.agents[0]
    assert (line["id"], float(line["likelihood_rating"])) == (
        best.id,
        best.likelihood.mean if best.likelihood else None,
    )


def test_long_lists_are_divided_into_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "ROWS_A_PAGE", 3)
    monkeypatch.setattr(view, "CASES_SHOWN", 7)
    folder = write_site(of_trials(trials(("servo", "hold"))), tmp_path / "site").parent
    assert sorted(path.name for path in folder.glob("cases*.html")) == ["cases.html", "cases~2.html", "cases~3.html"]
    assert len(list((folder / "cases").iterdir())) == 7
    first, last = Page(folder / "cases.html"), Page(folder / "cases~3.html")
    assert "The 7 hardest of 10 cases" in first.text
    assert "7 to 7 of 7" in last.text
    assert (folder / "agents" / "servo~3.html").is_file()
    assert "3 more cases are in" in " ".join(Page(folder / "agents" / "servo~3.html").text.split())
    assert len((folder / "matches.csv").read_text().splitlines()) == 21


def test_an_empty_record_has_a_site_too(tmp_path: Path) -> None:
    folder = write_site(of_trials([]), tmp_path / "site").parent
    assert "no agent yet" in Page(folder / "index.html").text
    assert "no test case yet" in Page(folder / "cases.html").text


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    taken = of_trials(trials(("servo", "hold")))
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("important")
    with pytest.raises(InputError, match="holds other files"):
        write_site(taken, tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "important"
    with pytest.raises(InputError, match="is not a folder"):
        write_site(taken, tmp_path / "thesis" / "chapter.tex")
    with pytest.raises(InputError, match="no run"):
        write_site(taken, tmp_path / "site", images=[tmp_path / "thesis"])
    write_site(of_trials(trials(("old", "older"))), tmp_path / "site")
    write_site(taken, tmp_path / "site")
    assert sorted(path.name for path in (tmp_path / "site" / "agents").iterdir()) == ["hold.html", "servo.html"]


def test_a_site_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_site(of_trials(trials(("old", "older"))), tmp_path / "site")
    before = tree(tmp_path / "site")
    real = os.rename

    def full(source: Path, target: Path) -> None:
        if Path(target).name == "site" and Path(source).name.endswith(f".new{UNFINISHED}"):
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(InfrastructureError, match="No space left"):
        write_site(of_trials(trials(("new", "newer"))), tmp_path / "site")
    assert tree(tmp_path / "site") == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_page_of_the_server_has_the_layout() -> None:
    from markupsafe import Markup

    page = frame(of_trials([]), "Submit", Markup("<h1>Submit</h1>"), "submit")
    assert '<a href="submit" aria-current="page">Submit</a>' in page
    assert "<h1>Submit</h1>" in page


def test_the_histogram_counts_every_player_once() -> None:
    cases, agents = [1500.0, 1510.0, 1899.9, 2100.0], [1600.0, 2100.0]
    found = figures.bins(cases, agents)
    assert sum(item.cases for item in found) == 4
    assert sum(item.agents for item in found) == 2
    assert found[-1].share_below == pytest.approx(1.0)
    assert all(item.low < item.high for item in found)
    assert len(found) <= 44
    assert figures.bins([], []) == []
    assert len(figures.bins([1500.0], [])) == 1
    assert len(figures.bins([-900_000.0, 900_000.0], [1500.0])) <= 44
    assert figures.heat_class(-1.0) == "h0"
    assert figures.heat_class(1.0) == "h20"


def test_a_rating_that_is_only_a_bound_is_drawn_differently() -> None:
    sure, bound = Standing(1, 1600.0, 10.0, (1580.0, 1620.0)), Standing(1, 1600.0, 10.0, (1580.0, 1620.0), "only wins")
    assert 'class="dot"' in svg.interval_bar(sure, (1500.0, 1700.0))
    assert 'class="ring"' in svg.interval_bar(bound, (1500.0, 1700.0))
    assert "interval" not in svg.interval_bar(bound, (1500.0, 1700.0))
    assert 'class="dot"' in svg.interval_bar(bound, (1500.0, 1700.0), of_agent=False)  # a case's prior bounds it


def test_a_bound_is_shown_without_an_interval(tmp_path: Path) -> None:
    records = [
        replace(record, outcome=Outcome.SUCCESS if record.agent == "best" else Outcome.FAILURE)
        for record in trials(("best", "hold"))
    ]
    folder = write_site(of_trials(records), tmp_path / "site").parent
    row = re.search(r"<tr>(?:(?!<tr>).)*?>best<.*?</tr>", (folder / "index.html").read_text(), re.DOTALL)
    assert row
    assert re.search(r'>≥ \d+ <small class="flag">only wins<sup>a</sup></small>', row.group())
    assert "a won all of its 10 matches: the rating is the least that fits them" in Page(folder / "index.html").text
    page = Page(folder / "agents" / "best.html")
    assert "so this is a bound and no estimate" in page.text
    gaps = page.content[page.content.index('id="gaps"') : page.content.index('id="profile"')]
    assert len(re.findall(r">≤ −?\d+</td>", gaps)) == 6


def luminance(color: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_enough_contrast(theme: str) -> None:
    palette = getattr(report_environment().get_template("palette.css.j2").module, theme)()
    color = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6})", str(palette)))
    for ink in ("ink", "quiet", "accent", "good", "bad", "warn"):
        for paper in ("paper", "raised", "faint"):
            assert contrast(color[ink], color[paper]) >= 4.5, f"{ink} on {paper}"
    assert contrast(color["ink"], color["mark"]) >= 4.5
    assert all(contrast(background, ink) >= 4.5 for background, ink in figures.heat_colors())


def test_an_imported_matrix_is_shown_by_case(foreign_site: Path) -> None:
    """The scores of `foreign`, in percent; the colour goes from the lowest to the highest of a column."""
    page = Page(foreign_site / "boards" / "cases-mteb.html")
    table = page.content[page.content.index("<tbody>") :]
    rows = {
        name: re.findall(r'<td(?: class="(h\d+|missing )")?[^>]*>(?:<span[^>]*>)?([^<]*)', row)
        for name, row in re.findall(r"<tr>.*?<bdi>(\w+)</bdi>(.*?)</tr>", table, re.DOTALL)
    }
    cases = re.findall(r'class="upright"[^>]*><span><bdi>(\w+)', page.content)
    assert cases == ["c", "b", "a"]  # the hardest first
    assert rows["one"] == [("", "63.3"), ("h20", "40.0"), ("h20", "60.0"), ("h20", "90.0")]
    assert rows["two"] == [("missing ", "–"), ("missing ", "–"), ("h0", "30.0"), ("h15", "80.0")]
    assert "a lacks 1 of the 3 cases" in page.text
    assert "boards/cases-mteb.html" in Page(foreign_site / "boards.html").links


def test_the_title_is_that_of_the_benchmark_or_ones_own(foreign_site: Path, tmp_path: Path) -> None:
    assert re.search(r"<h1><bdi>mteb and e</bdi></h1>", Page(foreign_site / "index.html").content)
    own = write_site(foreign(), tmp_path / "site", title="Our <lab>'s board").parent
    for page in pages(own):
        assert "Our <lab>'s board" in page.text
    many = [ForeignScore(source, agent, "a", 0.5) for source in ("x", "y", "z") for agent in ("one", "two")]
    assert view.default_title(compute(Inputs([], many), "many", 2)) == "3 imported matrices"


def test_every_entry_of_the_navigation_is_marked_on_its_page(site: Path) -> None:
    for name, label in writer.PAGES:
        assert f'<a href="{name}" aria-current="page">{label}</a>' in Page(site / name).content


def test_the_first_page_shows_places_that_the_intervals_allow(foreign_site: Path) -> None:
    agents = foreign().agents
    shown = [places(agent.rank_range) for agent in agents if agent.rank_range]
    cells = re.findall(r'<td data-value="\d+\.\d+">(\d+(?: to \d+)?)</td>', Page(foreign_site / "index.html").content)
    assert [cell for cell in cells if cell in shown] == shown
    with (foreign_site / "board.csv").open(encoding="utf-8", newline="") as file:
        lines = {line["id"]: (line["rank_best"], line["rank_worst"]) for line in csv.DictReader(file)}
    assert lines == {agent.id: tuple(map(str, agent.rank_range or ("", ""))) for agent in agents}


def test_footnotes_number_reasons_once_and_begin_anew_after_a_table() -> None:
    notes = Footnotes()
    letters = [notes.letter(f"{place}") for place in range(28)]
    assert letters[0] == "a"
    assert letters[25:] == ["z", "aa", "ab"]
    assert notes.letter("3") == "d"
    assert notes.taken()[3] == ("d", "3")
    assert notes.taken() == []
    assert notes.letter("3") == "a"


def test_the_runs_of_a_merged_record_are_found_by_their_id(tmp_path: Path) -> None:
    """A renamed folder is known by run.json; an experiment without a folder is named."""
    for name in ("first", "second"):
        make_fake_run(tmp_path / "runs" / name, distortions=("jpeg",), tasks=("pick",))
    experiment = "quickstart"
    (tmp_path / "runs/first/run.json").write_text(json.dumps({"id": experiment}))
    (tmp_path / "runs/second/run.json").write_text(json.dumps({"id": "other"}))
    with open_record(tmp_path / "runs/first") as source, ResultStore(tmp_path / "lab.sqlite") as target:
        merge(source, target)
        assert run_directories(target) == ((tmp_path / "runs/first",), ()), "beside the record, in runs/"
        assert run_directories(target, tmp_path / "elsewhere") == ((), (experiment,))
        assert run_directories(source) == ((tmp_path / "runs/first",), ()), "that of the record itself"
        index = write_site(snapshots.take(target), tmp_path / "site", target)
    assert "<img" in (index.parent / "cases/pick.0.jpeg.5.html").read_text()
    (tmp_path / "runs").rename(tmp_path / "moved")
    build = ["leaderboard", "build", str(tmp_path / "lab.sqlite"), "--out", str(tmp_path / "site")]
    for more, where in ([], "in runs/ beside the record or here"), (["--runs", "away"], "below away"):
        assert f"no pictures of {experiment}: no such run is {where}\n" in CliRunner().invoke(app, build + more).stderr
    assert "no pictures" not in CliRunner().invoke(app, [*build, "--runs", str(tmp_path / "moved")]).stderr
    assert "<img" in (index.parent / "cases/pick.0.jpeg.5.html").read_text()
