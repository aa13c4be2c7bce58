"""`merton iqa`: image quality for robots."""

from __future__ import annotations

from merton.cli.tree import App

app = App("Image quality for robots: metrics, their training and comparison, and a gate.")
