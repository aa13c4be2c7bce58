"""The pages of a site: the template of each, and its values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import jinja2
from markupsafe import Markup

from merton.leaderboard.board import Board
from merton.leaderboard.published.items import TYPES
from merton.leaderboard.site import figures
from merton.leaderboard.site.downloads import write_downloads
from merton.leaderboard.site.footnotes import Footnotes
from merton.leaderboard.site.ratings import history_page, ratings_page
from merton.leaderboard.site.record_extras import RecordExtras
from merton.leaderboard.site.run_trials import RunTrials
from merton.leaderboard.site.view import LEVELS, View
from merton.leaderboard.snapshot.by_metric import metric_table
from merton.leaderboard.snapshot.contents import AgentRow, Snapshot
from merton.leaderboard.submissions.packing import example_submission
from merton.pages.environment import environment
from merton.pages.svg import rating_scale
from merton.results.metrics import METRICS
from merton.results.text import count_of, one_line, places

ROWS_A_PAGE = 500
"""Entries of a list on one page."""

SUBMISSIONS_SHOWN = 2_000
"""The most submissions, and attempts, that are listed, the latest; the counts are of all."""

PAGES = (
    ("index.html", "Leaderboard"),
    ("boards.html", "Breakdown"),
    ("cases.html", "Cases"),
    ("ratings.html", "Ratings"),
    ("history.html", "History"),
    ("submissions.html", "Submissions"),
    ("methods.html", "Methods"),
    ("downloads.html", "Downloads"),
)
SERVED_PAGES = (("submit", "Submit"),)
"""Pages in the navigation that a server adds; see `served`."""

PREVIEW = 12
"""Rows of a board, or of a matrix that is not the only one, on the page of all boards."""

EXAMPLE = "example-submission.zip"
"""The file of an invented submission, to look at."""

EVENTS = (
    ("emergency_stops", ("emergency", "stops")),
    ("invalid_actions", ("invalid", "actions")),
    ("infrastructure", ("infrastructure", "faults")),
    ("abstained", ("abstained", "trials")),
)
"""Outcomes that have a column where an agent has one, and their headings of two lines."""

METHOD_LABELS = {"likelihood": "likelihood", "agi_elo": "AGI-Elo"}

Item = TypeVar("Item")


@dataclass(frozen=True)
class ListPage:
    """One page of a long list: the `number`-th of the files `names`, with entries `first` to `last` of `total`."""

    number: int
    names: tuple[str, ...]
    first: int
    last: int
    total: int

    @property
    def name(self) -> str:
        """The file of this page."""
        return self.names[self.number - 1]

    @property
    def count(self) -> int:
        """Number of pages of the list."""
        return len(self.names)


def frame(
    snapshot: Snapshot,
    title: str,
    body: Markup,
    current: str = "",
    served: bool = True,
    root: str = "",
    site_title: str | None = None,
) -> str:
    """A page of a server in the site's layout.

    Args:
        snapshot: whose name and hash the page carries.
        title: of the browser's window.
        body: HTML of the main part, with its h1.
        current: its entry of the navigation, such as "submit".
        served: as in `write_site`.
        root: from the page's address to index.html, such as "../".
        site_title: as `title` of `write_site`.
    """
    return (
        _environment()
        .get_template("layout.html.j2")
        .render(
            title=title,
            body=body,
            current=current,
            root=root,
            snapshot=snapshot,
            view=View(snapshot, title=site_title),
            pages=_pages(served),
            served=served,
            notes=Footnotes(),
        )
    )


class SiteWriter:
    """Renders the pages of one snapshot into a folder.

    The folder is empty, `trials` has the pictures and answers of the cases, and `served` is as in `write_site`.
    """

    def __init__(self, snapshot: Snapshot, folder: Path, view: View, trials: RunTrials, served: bool) -> None:
        self._folder, self._snapshot, self._view, self._trials = folder, snapshot, view, trials
        self._environment = _environment()
        self._common: dict[str, Any] = {
            "snapshot": snapshot,
            "view": view,
            "pages": _pages(served),
            "served": served,
        }

    def write(self, extras: RecordExtras) -> None:
        """Write all files; OSError if one cannot be written."""
        for name in ("agents", "assets", "boards", "cases", "pictures"):
            (self._folder / name).mkdir()
        self._assets()
        snapshot, view = self._snapshot, self._view
        standings = [agent.standing for agent in snapshot.agents]
        self._page(
            "index.html",
            "index.html",
            "Leaderboard",
            scale=rating_scale(standings),
            by_metric=metric_table(snapshot.agents),
            has_trials=snapshot.has_trials,
            events=[event for event in EVENTS if any(getattr(agent, event[0]) for agent in snapshot.agents)],
        )
        only = len(view.matrices) == 1 and not view.boards
        self._page("boards.html", "boards.html", "Breakdown", most=PREVIEW, only=only)
        for matrix in view.matrices:
            name = f"boards/{matrix.file}.html"
            self._page("matrix.html", name, f"{matrix.source} by case", current="boards.html", matrix=matrix)
        for board in view.boards:
            name = f"boards/{view.board_files[board.name]}.html"
            self._page("board.html", name, board.title, current="boards.html", board=board)
        self._cases()
        for index in range(len(snapshot.agents)):
            self._agent(index)
        self._page("ratings.html", "ratings.html", "Ratings", **ratings_page(view))
        self._page("history.html", "history.html", "History", **history_page(extras, snapshot))
        self.write_submissions(extras)
        (self._folder / EXAMPLE).write_bytes(example_submission())
        self._page("methods.html", "methods.html", "Methods")
        listed = write_downloads(snapshot, self._folder)
        self._page("downloads.html", "downloads.html", "Downloads", files=listed)

    def write_submissions(self, extras: RecordExtras) -> None:
        """Write the page of submissions and attempts alone; OSError if it cannot be written."""
        self._page("submissions.html", "submissions.html", "Submissions", log=extras, limit=SUBMISSIONS_SHOWN)

    def _assets(self) -> None:
        templates = files("merton.leaderboard.site") / "templates"
        for name in ("site.js", "icon.svg"):
            (self._folder / "assets" / name).write_bytes((templates / name).read_bytes())
        style = self._environment.get_template("site.css.j2").render(colors=figures.heat_colors())
        (self._folder / "assets" / "site.css").write_text(style, encoding="utf-8")

    def _cases(self) -> None:
        snapshot, view = self._snapshot, self._view
        shown = [snapshot.cases[index] for index in view.shown]
        scale = rating_scale((view.standing(case) for case in shown), of_agents=False)
        for page, part in list_pages(view.shown, "cases"):
            self._page(
                "cases.html",
                page.name,
                "Test cases",
                current="cases.html",
                cases=part,
                list_page=page,
                scale=scale,
                beyond=len(snapshot.cases) - len(view.shown),
                task_choices=_choices(view.task(case) for case in shown),
                family_choices=_choices(view.family(case) for case in shown),
                level_choices=_choices(str(case.level) for case in shown if case.level is not None),
            )
        rated = sum(view.standing(case) is not None for case in snapshot.cases)
        for place, index in enumerate(view.shown):
            self._case(place, index, rated)

    def _case(self, place: int, index: int, rated: int) -> None:
        view, case = self._view, self._snapshot.cases[index]
        trials = self._trials.of(case.id)
        self._page(
            "case.html",
            f"cases/{view.case_files[case.id]}.html",
            case.id,
            current="cases.html",
            item=case,
            standing=view.standing(case),
            rated=rated,
            harder=view.shown[place - 1] if place else None,
            easier=view.shown[place + 1] if place + 1 < len(view.shown) else None,
            meetings=sorted(view.by_case[index], key=lambda meeting: (-meeting.score, meeting.agent)),
            trials=trials,
            pictures=[self._picture(picture) for picture in trials.pictures] if trials else (),
        )

    def _picture(self, content: bytes | None) -> str | None:
        """Write a JPEG, once for all pages that show it, and return its address."""
        if content is None:
            return None
        name = f"pictures/{hashlib.sha256(content).hexdigest()[:20]}.jpg"
        path = self._folder / name
        if not path.exists():
            path.write_bytes(content)
        return name

    def _agent(self, index: int) -> None:
        snapshot, view = self._snapshot, self._view
        agent, met = snapshot.agents[index], view.meetings_shown(index)
        cases = [snapshot.cases[meeting.case] for meeting in met]
        for page, part in list_pages(met, view.agent_files[agent.id]):
            self._page(
                "agent.html",
                f"agents/{page.name}",
                agent.id,
                current="index.html",
                agent=agent,
                inert=self._trials.inert(agent.id) if page.number == 1 else (),
                rated=sum(other.rank is not None for other in snapshot.agents),
                heat=view.heat(index) if page.number == 1 else (),
                tasks=view.by_task(index) if page.number == 1 else (),
                families=view.by_family(index) if page.number == 1 else (),
                boards=view.board_rows(index) if page.number == 1 else (),
                met=part,
                beyond=len(view.by_agent[index]) - len(met),
                list_page=page,
                task_choices=_choices(view.task(case) for case in cases),
                family_choices=_choices(view.family(case) for case in cases),
            )

    def _page(self, template: str, name: str, title: str, current: str = "", **values: Any) -> None:
        page = self._environment.get_template(f"{template}.j2").render(
            **self._common,
            **values,
            title=title,
            current=current or name,
            root="../" * name.count("/"),
            notes=Footnotes(),
        )
        # A character that is no Unicode, such as half a surrogate pair out of broken JSON, becomes a question mark.
        (self._folder / name).write_text(page, encoding="utf-8", errors="replace")


@cache
def _environment() -> jinja2.Environment:
    return environment(
        "merton.leaderboard.site",
        figures=figures,
        levels=LEVELS,
        method_labels=METHOD_LABELS,
        METRICS=METRICS,
        places=places,
        example=EXAMPLE,
        sizes_of=_sizes,
        TYPES=TYPES,
        choices=_choices_of_rows,
    )


def _pages(served: bool) -> tuple[tuple[str, str], ...]:
    return (*PAGES, *SERVED_PAGES) if served else PAGES


def list_pages(items: Sequence[Item], name: str) -> list[tuple[ListPage, Sequence[Item]]]:
    """A list divided into pages, at least one, with the items of each; their files are name.html, name~2.html, ..."""
    starts = range(0, max(len(items), 1), ROWS_A_PAGE)
    # "~" is in no file name made from an id, so a second page is not another agent's.
    names = tuple(f"{name}{f'~{number}' if number > 1 else ''}.html" for number in range(1, len(starts) + 1))
    parts = [items[start : start + ROWS_A_PAGE] for start in starts]
    return [
        (ListPage(number, names, start + 1, start + len(part), len(items)), part)
        for number, (start, part) in enumerate(zip(starts, parts, strict=True), start=1)
    ]


def _sizes(agents: Iterable[AgentRow]) -> list[str]:
    """The different numbers of scores that the agents were rated from, with their scenes."""
    return sorted({count_of(agent.matches, agent.scenes) for agent in agents})


def _choices(values: Iterable[str]) -> list[str]:
    """The choices of a filter, written as in the rows."""
    return sorted({one_line(value) for value in values if value})


def _choices_of_rows(board: Board, key: str) -> list[str]:
    """The choices of a filter by the `type` or `source` of a board's rows."""
    return _choices(TYPES.get(getattr(row, key), getattr(row, key)) for row in board.rows)
