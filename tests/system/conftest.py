"""The browser of the system tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")  # not longer: while playwright runs, no other test of this process can use asyncio
def browser() -> Iterator[Any]:
    """Chromium, driven by playwright. Costly fixtures ask for it first, because it skips where it is absent."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (requirements/dev.txt)")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium (apt install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()
