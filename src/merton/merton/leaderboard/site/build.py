"""Writing a site as a whole: a new one takes the place of the old one only when it is complete."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from merton.errors import InfrastructureError, InputError
from merton.files import swapped_folder
from merton.leaderboard.board import Board
from merton.leaderboard.site.record_extras import RecordExtras, read_extras, read_submissions, run_directories
from merton.leaderboard.site.run_trials import RunTrials
from merton.leaderboard.site.view import View
from merton.leaderboard.site.writer import SiteWriter
from merton.leaderboard.snapshot.contents import Snapshot
from merton.results.store import ResultStore


def write_site(
    snapshot: Snapshot,
    folder: Path | str,
    store: ResultStore | None = None,
    *,
    images: Sequence[Path | str] | None = None,
    published: Sequence[Board] = (),
    served: bool = False,
    title: str | None = None,
) -> Path:
    """Write a snapshot as a folder of pages that need no server and request nothing else; returns its index.html.

    An older site stays in the folder until the new one is complete, and also if that cannot be written. The same
    arguments give the same bytes.

    Args:
        folder: a new or empty one, or one that holds a site written before.
        store: the record, for earlier snapshots, submissions and attempts.
        images: run directories with pictures and answers of the cases; None: those that `run_directories` finds.
        published: boards under published rules, shown beside those of the snapshot.
        served: whether a server adds `SERVED_PAGES`, so that the pages link there.
        title: of the site; None: the names of its matrices and experiments.

    Raises:
        InputError: the folder holds something else, or `images` names something that is not a run.
        InfrastructureError: the site cannot be written, or the record or a run cannot be read.
    """
    target = Path(folder)
    _check_target(target)
    extras = read_extras(store, snapshot) if store is not None else RecordExtras()
    if images is None:
        images = run_directories(store)[0] if store is not None else ()
    view = View(snapshot, published, title)
    shown = {snapshot.cases[index].id for index in view.shown}
    trials = RunTrials([Path(run) for run in images], shown)
    try:
        with swapped_folder(target) as draft:
            SiteWriter(snapshot, draft, view, trials, served).write(extras)
    except OSError as error:
        raise InfrastructureError(f"cannot write the site into {target}: {error.strerror or error}") from error
    return target / "index.html"


def write_submissions(snapshot: Snapshot, file: Path, store: ResultStore, title: str | None = None) -> None:
    """Write the page of submissions of a served site again, from the record as it is now.

    Args:
        snapshot: of the site; its agents, cases, matches and boards are not needed.
        file: the page, which exists.
        title: as in `write_site`.

    Raises:
        InfrastructureError: the record cannot be read.
        OSError: the page cannot be written; the old one stays.
    """
    extras = read_submissions(store)
    with tempfile.TemporaryDirectory(dir=file.parent) as draft:
        SiteWriter(snapshot, Path(draft), View(snapshot, title=title), RunTrials(()), True).write_submissions(extras)
        os.replace(Path(draft) / file.name, file)


def _check_target(target: Path) -> None:
    """InputError unless the folder is new, empty, or holds a site: no other file must be lost."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(f"{target} is not a folder: choose one that is new, empty, or holds a site")
    is_site = (target / "board.json").is_file() and (target / "assets" / "site.css").is_file()
    if target.is_dir() and not is_site and any(target.iterdir()):
        raise InputError(f"{target} holds other files: choose a folder that is new, empty, or holds a site")
