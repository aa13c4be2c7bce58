"""The leaderboard as a folder of plain pages: no server, no request to anywhere, readable without scripts."""

from __future__ import annotations

from merton.leaderboard.site.build import frame, write_site

__all__ = ["frame", "write_site"]
