"""The documentation's site: built once without a warning, then every page opened in a browser, from its folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from docs_site import INTERNAL
from installed import skip_file_without

from patience import stretched

ROOT = Path(__file__).parents[2]
for needed in ("sphinx", "furo", "myst_parser"):
    skip_file_without(needed, f"no {needed} (make develop)")
AXE = ("index", "docs/use/tutorials/your_vla", "docs/reference/interfaces", "api/rating", "search")
"""A page of every kind: those that axe-core looks at, wide and light, then narrow and dark."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's folder; Sphinx treats a warning as an error."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, str(ROOT / "tools" / "docs_site.py"), str(folder)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_document_and_every_public_package_has_a_page(site: Path) -> None:
    import merton

    documents = {page.relative_to(ROOT).with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    packages = {Path("api") / f"{name}.html" for name in merton.__all__ if name not in INTERNAL}
    pages = {page.relative_to(site) for page in site.rglob("*.html")}
    assert documents | packages <= pages
    assert "Args" not in (site / "api" / "rating.html").read_text(encoding="utf-8"), "sections of docstrings are read"


def test_every_page_opens_from_the_folder_without_a_complaint(site: Path, browser: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe (make develop)").Axe()
    for scheme, width in (("light", 1440), ("dark", 390)):
        context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
        context.set_default_timeout(stretched(60_000))
        page, complaints, requests = context.new_page(), [], []
        page.on("console", lambda message, to=complaints: to.append(message.text))
        page.on("pageerror", lambda error, to=complaints: to.append(str(error)))
        page.on("request", lambda request, to=requests: to.append(request.url))
        everything = [file.relative_to(site).with_suffix("").as_posix() for file in sorted(site.rglob("*.html"))]
        for name in everything if scheme == "light" else AXE:
            page.goto(f"{(site / name).as_uri()}.html")
            inner, outer = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert inner <= outer, f"{name} is {inner} px wide"
            assert page.locator("h1").count() == 1, name
            if name in AXE:
                options = {"preload": False, "resultTypes": ["violations"]}
                found = axe.run(page, options=options).response["violations"]
                assert [(name, item["id"], item["nodes"][0]["html"][:200]) for item in found] == []
        page.goto(f"{(site / 'search.html').as_uri()}?q=likelihood")
        page.locator("#search-results li a").first.wait_for()
        assert complaints == []
        assert [address for address in requests if not address.startswith(("file:", "data:"))] == []
        context.close()
