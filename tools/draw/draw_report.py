"""Draws the first sections of a run's report: `python tools/draw/draw_report.py runs/<id> docs/images/report.jpg`.

A run of the quickstart, whose report is there; it needs Chromium.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH_PX = 1240
LAST_SECTION = "losses"
"""The picture ends with it."""


def main(run: Path, target: Path) -> None:
    """Write the picture, a JPEG."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH_PX, "height": 900}, color_scheme="light")
        page.goto((run / "report.html").resolve().as_uri())
        page.add_style_tag(content="body { padding-top: 2rem; } .report nav { display: none; }")
        box = page.locator(f"section[aria-labelledby={LAST_SECTION}]").bounding_box()
        assert box is not None
        clip = {"x": 0, "y": 0, "width": WIDTH_PX, "height": box["y"] + box["height"] + 20}
        page.screenshot(path=target, type="jpeg", quality=82, full_page=True, clip=clip)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
