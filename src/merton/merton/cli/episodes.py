"""Runs of episodes that another program carried out, as the commands for runs read them."""

from __future__ import annotations

from pathlib import Path

from merton.cli.console import from_here, own_command, print_out, working
from merton.errors import InputError
from merton.results.text import counted


def conclude_episodes(run: Path, everything: bool, shows_board: bool) -> Path:
    """Board on the terminal, with `everything` all of its tables and remarks, report on disk; gives the report.

    Raises InputError if the run has no results.
    """
    with working("loading"):
        from merton.leaderboard.snapshot import store as snapshot
        from merton.leaderboard.snapshot.terminal import render_snapshot
        from merton.leaderboard.terminal import terminal_width
        from merton.results.database import RUN_FILE
        from merton.results.store import ResultStore
        from merton.results.trial_files import json_object
        from merton.study.episode_notes import episode_notes
        from merton.study.report import write_report

    if not (run / RUN_FILE).is_file():
        raise InputError(f"{run} has no results")
    with ResultStore(run / RUN_FILE, read_only=True) as store:
        records = store.records()
    if not records:
        raise InputError(f"{run} has no results")
    if shows_board:
        with working("rating"):
            board = render_snapshot(snapshot.of_trials(records), terminal_width(), everything)
        print_out(board)
    for sentence in episode_notes(json_object(run / "run.json") or {}, records):
        print_out(sentence)
    with working("writing the report"):
        page = write_report(run)
    print_out(f"{counted(len(records), 'episode')}. Report: {page}")
    print_out(f"Next: {own_command('report', from_here(run), '--open')}")
    return page
