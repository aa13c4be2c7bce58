"""A served Arena in a browser: from the first page to a capability board, filtered by type and by source."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patience import stretched

pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra serve)")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make develop)")

END_S = 30.0
TABLE = """agent,benchmark,item,dimension,score,type,source
Large,LabQA,1,Object Type,1,general,self-reported
Large,LabQA,1,Object Type,0,general,evaluated by the host
Robo,LabQA,1,Object Type,1,embodied,evaluated by the host
"""
TAXONOMY = """extends: embodied_arena
tasks:
  - name: Embodied Question Answering
    benchmarks:
      - {name: LabQA, metrics: [exact match], dimensions: [Object Type]}
"""


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where `merton leaderboard serve` shows an Arena whose record is new."""
    folder: Path = tmp_path_factory.mktemp("arena")
    (folder / "items.csv").write_text(TABLE)
    (folder / "lab.yaml").write_text(TAXONOMY)
    files = ["arena.sqlite", "--arena", "items.csv", "--taxonomy", "lab.yaml", "--title", "Lab Arena", "--port", "0"]
    command = [sys.executable, "-m", "merton", "leaderboard", "serve", *files]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            said = "".join(server.stdout.readline() for _ in range(2))
            found = re.search(r"http://127\.0\.0\.1:\d+/", said)
            assert found, said
            yield found[0]
            server.send_signal(signal.SIGINT)
            assert server.wait(stretched(END_S)) == 130
        finally:
            server.kill()


@pytest.mark.parametrize("width", [1280, 390])
def test_boards_are_filtered_by_type_and_source(browser: Any, address: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    complaints: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def shown() -> list[str]:
        heads = page.locator("table[data-filtered] tbody tr:visible > th").all()
        return [" ".join(head.inner_text().split()) for head in heads]

    def fits() -> bool:
        return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))

    page.goto(address)
    assert fits()
    page.get_by_role("link", name="LabQA: capabilities").click()
    page.wait_for_url("**/boards/published-capabilities-labqa.html")
    everything = [
        "Large general large model self-reported",
        "Robo embodied AI model evaluated by the host",
        "Large general large model evaluated by the host",
    ]
    assert shown() == everything
    assert fits()
    page.get_by_label("Type").select_option("general large model")
    assert shown() == [everything[0], everything[2]]
    page.get_by_label("Source").select_option("evaluated by the host")
    assert shown() == [everything[2]]
    page.goto(f"{address}boards.html")
    assert fits()
    section = page.locator("section", has=page.get_by_role("heading", name="Core capabilities"))
    section.get_by_role("link", name="embodied AI models").click()
    page.wait_for_url("**/boards/published-core-capabilities.html#*")
    assert shown() == [everything[1]]
    context.close()
    assert complaints == []
