"""The leaderboard as a folder of plain pages that need no server and no scripts and request nothing else."""

from __future__ import annotations

from merton.leaderboard.site import figures
from merton.leaderboard.site.build import write_site, write_submissions
from merton.leaderboard.site.record_extras import run_directories
from merton.leaderboard.site.view import all_boards, board_files
from merton.leaderboard.site.writer import frame

__all__ = ["all_boards", "board_files", "figures", "frame", "run_directories", "write_site", "write_submissions"]
