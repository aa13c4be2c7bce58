"""Writing the site: which page holds what, and how a new site takes the place of the old one."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import jinja2
from markupsafe import Markup

from merton.errors import InfrastructureError, InputError
from merton.leaderboard.board import PublishedBoard
from merton.leaderboard.published.world_model import Evaluation
from merton.leaderboard.site import beside, figures
from merton.leaderboard.site.downloads import write_downloads
from merton.leaderboard.site.evidence import Evidence
from merton.leaderboard.site.ratings import history_page, ratings_page
from merton.leaderboard.site.view import LEVELS, View
from merton.leaderboard.snapshot.contents import Snapshot
from merton.leaderboard.terminal import bound_sign
from merton.pages.environment import environment
from merton.pages.svg import rating_domain
from merton.results.store import ResultStore
from merton.results.text import one_line

ROWS_A_PAGE = 500
"""Lines of a list after which it goes on in a further page."""

SUBMISSIONS_SHOWN = 2_000
"""Submissions, and attempts, that are listed, the latest; the counts are of all."""

PAGES = (
    ("index.html", "Board"),
    ("boards.html", "Boards"),
    ("cases.html", "Cases"),
    ("ratings.html", "Ratings"),
    ("history.html", "History"),
    ("submissions.html", "Submissions"),
    ("methods.html", "Methods"),
    ("downloads.html", "Downloads"),
)
SERVED_PAGES = (("submit", "Submit"), ("api", "API"))
"""Pages that a server adds; see `served`."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Turn:
    """A part of a long list: the `number`-th of the files `names`, entries `first` to `last` of `total`."""

    number: int
    names: tuple[str, ...]
    first: int
    last: int
    total: int

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len(self.names)


def write_site(
    snapshot: Snapshot,
    folder: Path | str,
    store: ResultStore | None = None,
    *,
    images: Sequence[Path | str] | None = None,
    published: Sequence[PublishedBoard | Evaluation] = (),
    served: bool = False,
) -> Path:
    """Write a snapshot as a folder of pages that need no server and ask nothing of anybody; returns its index.html.

    The folder appears whole: a site that was there before stays until the new one is ready, and if it cannot be
    written. The same arguments give the same bytes.

    Args:
        snapshot: what to show.
        folder: where to; it must not exist, be empty, or hold a site written before.
        store: the record, for what a snapshot lacks: earlier snapshots, submissions, attempts.
        images: run directories whose pictures and answers go with the cases; None: the run that the record lies in.
        published: boards under published rules, shown beside the snapshot's own.
        served: a server shows it and adds `SERVED_PAGES`: link there.

    Raises:
        InputError: the folder holds something else, or `images` names something that is no run.
        InfrastructureError: the site cannot be written, or the record or a run cannot be read.
    """
    target = Path(folder)
    _check_target(target)
    extras = beside.read(store, snapshot) if store is not None else beside.Beside()
    evidence = Evidence([Path(run) for run in (extras.runs if images is None else images)])
    draft = target.absolute().with_name(f".{target.absolute().name}.{os.getpid()}.part")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        _Writer(snapshot, draft, View(snapshot, published), evidence, served).write(extras)
        _replace(target, draft)
    except OSError as error:
        raise InfrastructureError(f"cannot write the site into {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target / "index.html"


def frame(snapshot: Snapshot, title: str, body: Markup, current: str = "", served: bool = True, root: str = "") -> str:
    """A page of a server's own in the site's layout.

    Args:
        snapshot: the one whose name and hash the page carries.
        title: of the browser's window.
        body: HTML of the main part, with its h1.
        current: which entry of the navigation it is, such as "submit".
        served: as in `write_site`.
        root: from the page's address to index.html, such as "../".
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
            view=View(snapshot),
            pages=_pages(served),
        )
    )


class _Writer:
    """Renders the pages of one snapshot into a folder."""

    def __init__(self, snapshot: Snapshot, folder: Path, view: View, evidence: Evidence, served: bool) -> None:
        self._folder, self._snapshot, self._view, self._evidence = folder, snapshot, view, evidence
        self._environment = _environment()
        self._common: dict[str, Any] = {"snapshot": snapshot, "view": view, "pages": _pages(served)}

    def write(self, extras: beside.Beside) -> None:
        """All files."""
        for name in ("agents", "assets", "boards", "cases", "pictures"):
            (self._folder / name).mkdir()
        self._assets()
        snapshot, view = self._snapshot, self._view
        standings = [agent.standing for agent in snapshot.agents]
        self._page(
            "index.html",
            "index.html",
            f"{_count(len(snapshot.agents), 'agent')} on {_count(len(snapshot.cases), 'test case')}",
            span=rating_domain(standings),
            has_trials=any(agent.trials or agent.infrastructure for agent in snapshot.agents),
        )
        self._page("boards.html", "boards.html", "Boards")
        for sheet in view.sheets:
            name = f"boards/{view.board_files[sheet.name]}.html"
            self._page("board.html", name, sheet.title, current="boards.html", board=sheet)
        self._cases()
        for index in range(len(snapshot.agents)):
            self._agent(index)
        self._page("ratings.html", "ratings.html", "Ratings", **ratings_page(view))
        self._page("history.html", "history.html", "History", **history_page(extras, snapshot))
        self._page("submissions.html", "submissions.html", "Submissions", log=extras, limit=SUBMISSIONS_SHOWN)
        self._page("methods.html", "methods.html", "Methods")
        listed = write_downloads(snapshot, self._folder)
        self._page("downloads.html", "downloads.html", "Downloads", files=listed)

    def _assets(self) -> None:
        templates = files("merton.leaderboard.site") / "templates"
        for name in ("site.js", "icon.svg"):
            (self._folder / "assets" / name).write_bytes((templates / name).read_bytes())
        style = self._environment.get_template("site.css.j2").render(colors=figures.heat_colors())
        (self._folder / "assets" / "site.css").write_text(style, encoding="utf-8")

    def _cases(self) -> None:
        snapshot, view = self._snapshot, self._view
        shown = [snapshot.cases[index] for index in view.shown]
        span = rating_domain((view.standing(case) for case in shown), of_agents=False)
        for turn, part in _turns(view.shown, "cases"):
            self._page(
                "cases.html",
                turn.names[turn.number - 1],
                "Test cases",
                current="cases.html",
                cases=part,
                turn=turn,
                span=span,
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
        evidence = self._evidence.of(case.id)
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
            evidence=evidence,
            pictures=[self._picture(picture) for picture in evidence.pictures] if evidence else (),
        )

    def _picture(self, content: bytes | None) -> str | None:
        """Write a JPEG once, whoever shows it, and return where it lies."""
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
        for turn, part in _turns(met, view.agent_files[agent.id]):
            self._page(
                "agent.html",
                f"agents/{turn.names[turn.number - 1]}",
                agent.id,
                current="index.html",
                agent=agent,
                rated=sum(other.rank is not None for other in snapshot.agents),
                heat=view.heat(index) if turn.number == 1 else (),
                tasks=view.by_task(index) if turn.number == 1 else (),
                families=view.by_family(index) if turn.number == 1 else (),
                boards=view.board_lines(index) if turn.number == 1 else (),
                met=part,
                beyond=len(view.by_agent[index]) - len(met),
                turn=turn,
                task_choices=_choices(view.task(case) for case in cases),
                family_choices=_choices(view.family(case) for case in cases),
            )

    def _page(self, template: str, name: str, title: str, current: str = "", **values: Any) -> None:
        page = self._environment.get_template(f"{template}.j2").render(
            **self._common, **values, title=title, current=current or name, root="../" * name.count("/")
        )
        # What is no Unicode, such as half a surrogate pair out of broken JSON, becomes a question mark.
        (self._folder / name).write_text(page, encoding="utf-8", errors="replace")


@cache
def _environment() -> jinja2.Environment:
    return environment(
        "merton.leaderboard.site", figures=figures, bound_sign=bound_sign, levels=LEVELS, method_labels=METHOD_LABELS
    )


METHOD_LABELS = {"likelihood": "likelihood", "agi_elo": "AGI-Elo"}


def _pages(served: bool) -> tuple[tuple[str, str], ...]:
    return (*PAGES, *SERVED_PAGES) if served else PAGES


def _turns(items: Sequence[Item], name: str) -> list[tuple[Turn, Sequence[Item]]]:
    """A list in parts with the files that hold them: name.html, name~2.html and so on; at least one part."""
    starts = range(0, max(len(items), 1), ROWS_A_PAGE)
    # "~" is in no file name made from an id, so a second part is no other agent's page.
    names = tuple(f"{name}{f'~{number}' if number > 1 else ''}.html" for number in range(1, len(starts) + 1))
    parts = [items[start : start + ROWS_A_PAGE] for start in starts]
    return [
        (Turn(number, names, start + 1, start + len(part), len(items)), part)
        for number, (start, part) in enumerate(zip(starts, parts, strict=True), start=1)
    ]


def _choices(values: Any) -> list[str]:
    """What a filter offers, as it stands in the rows."""
    return sorted({one_line(value) for value in values if value})


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' if n != 1 else ''}"


def _check_target(target: Path) -> None:
    """InputError unless a site may be put there: nothing that somebody else left must be lost."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(f"{target} is no folder: choose one that is new, empty, or holds a site")
    is_site = (target / "board.json").is_file() and (target / "assets" / "site.css").is_file()
    if target.is_dir() and not is_site and any(target.iterdir()):
        raise InputError(f"{target} holds other files: choose a folder that is new, empty, or holds a site")


def _replace(target: Path, draft: Path) -> None:
    """Put the finished draft where the target is; the old site goes only after the new one stands."""
    old = draft.with_name(f"{draft.name}.old")
    had_one = target.exists()
    if had_one:
        os.rename(target, old)
    try:
        os.rename(draft, target)
    except OSError:
        if had_one:
            os.rename(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)
