"""The player of moving pictures in a browser: steps, speed, loop, two reels at the same moment, keys, no barriers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import merton_studies.people
from merton.pages.environment import environment
from merton_studies.people.media.reel import Reel, reel_of_pictures
from patience import stretched

PAGE = Path(merton_studies.people.__file__).parent / "serve" / "page"
HOST = "http://reels.test"
STEP = 20
"""Each frame of a reel is so much lighter than that before it, so that a pixel tells which frame is shown."""
HTML = """<!doctype html><html lang="en"><head><title>Reels</title><meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="base.css"><link rel="stylesheet" href="reel.css"></head>
<body><main><h1>Two reels</h1><label>Note <input id="note"></label><section id="here"></section></main>
<script type="module" src="test.js"></script></body></html>"""
SCRIPT = """import { ReelPlayer } from "./reel.js";
const loaded = async (name) => ({ url: URL.createObjectURL(await (await fetch(name)).blob()), width: 64, height: 48 });
const media = await Promise.all(["fast.reel", "slow.reel"].map(loaded));
const copy = new OffscreenCanvas(64, 48).getContext("2d", { willReadFrequently: true });
window.pixels = () => player.canvases.map((canvas) => {
  copy.drawImage(canvas, 0, 0);
  return copy.getImageData(5, 5, 1, 1).data[0];
});
window.restart = async () => {
  window.player?.close();
  [window.log, window.endings] = [[], 0];
  window.player = new ReelPlayer(document.getElementById("here"), media, { labels: ["Reference", "Generated"] });
  player.addEventListener("frame", () => log.push([player.time, ...pixels()]));
  player.addEventListener("ended", () => { window.endings += 1; });
  await player.ready;
  document.activeElement.blur();
};
const broken = new ReelPlayer(document.createElement("div"), [{ blob: new Blob(["no reel"]), width: 4, height: 4 }]);
window.broken = broken.ready.then(() => "shown", () => broken.position.textContent);
"""


def shaded(count: int, rate_hz: float, folder: Path) -> Reel:
    return reel_of_pictures([np.full((48, 64, 3), STEP * k, np.uint8) for k in range(count)], rate_hz, folder)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the page asks for: a reel of 10 frames at 10 Hz, one of 3 at 5 Hz that ends earlier, and the page."""
    folder = tmp_path_factory.mktemp("reels")
    style = environment("merton.pages").get_template("base.css.j2").render()
    return {
        "": HTML.encode(),
        "test.js": SCRIPT.encode(),
        "base.css": style.encode(),
        "fast.reel": shaded(10, 10.0, folder).file.read_bytes(),
        "slow.reel": shaded(3, 5.0, folder).file.read_bytes(),
        **{name: (PAGE / name).read_bytes() for name in ("reel.js", "reel.css")},
    }


@pytest.fixture(scope="module")
def opened(browser: Any, files: dict[str, bytes]) -> Iterator[Any]:
    """The page, narrow and dark; fails on any error in its log."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    kinds = {"js": "text/javascript", "css": "text/css", "": "text/html", "reel": "application/octet-stream"}

    def answer(route: Any) -> None:
        name = route.request.url.removeprefix(f"{HOST}/")
        if name == "favicon.ico":
            route.fulfill(status=204)
            return
        route.fulfill(body=files[name], content_type=kinds[name.rpartition(".")[2]])

    context.route(f"{HOST}/**", answer)
    context.set_default_timeout(stretched(30_000))
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{HOST}/")
    page.wait_for_function("window.broken")
    yield page
    context.close()
    assert complaints == []


@pytest.fixture
def page(opened: Any) -> Any:
    """The page with a new player, both reels loaded."""
    opened.evaluate("restart()")
    return opened


def frames(page: Any) -> list[int]:
    """Which frame each canvas shows, by its pixels."""
    return [round(value / STEP) for value in page.evaluate("pixels()")]


def press(page: Any, key: str) -> None:
    """Press a key and wait until what it asks for is on the page."""
    page.keyboard.press(key)
    page.evaluate("player.show()")


def test_both_reels_are_stepped_together(page: Any) -> None:
    shown = [frames(page)]
    for key in (".", ".", ".", ".", ".", ",", "Home", ","):
        press(page, key)
        shown.append(frames(page))
    # the slow one has half the frames a second, and keeps its last
    assert shown == [[0, 0], [1, 0], [2, 1], [3, 1], [4, 2], [5, 2], [4, 2], [0, 0], [0, 0]]
    page.get_by_label("Position").fill("9")
    page.wait_for_function("player.drawn[0] === 9")
    assert frames(page) == [9, 2]
    page.get_by_label("One frame back").click()
    page.wait_for_function("player.drawn[0] === 8")
    assert page.locator(".reel-position").inner_text() == "0.80 of 1.00 s"


def test_playing_shows_the_same_moment_of_both_and_ends_on_the_last_frame(page: Any) -> None:
    page.evaluate("log.length = 0")
    page.keyboard.press("Space")
    page.wait_for_function("endings === 1")
    log = page.evaluate("log")
    assert len(log) > 3
    for time_s, fast, slow in log:
        moment = int(time_s * 10 + 1e-6)
        assert [round(fast / STEP), round(slow / STEP)] == [min(9, moment), min(2, moment // 2)]
    assert [entry[0] for entry in log] == sorted(entry[0] for entry in log)
    assert frames(page) == [9, 2]
    assert page.get_by_role("button", name="Play", exact=True).is_visible()
    page.keyboard.press("Space")  # from the start again
    page.wait_for_function("endings === 2")
    assert min(page.evaluate("log.map((entry) => entry[0])")[len(log) :]) < 0.5


def test_a_loop_goes_on_until_it_is_paused(page: Any) -> None:
    page.keyboard.press("l")
    page.get_by_label("Speed").select_option("2")
    page.get_by_role("button", name="Play", exact=True).click()
    again = "log.filter((entry, i) => i && entry[0] < log[i - 1][0]).length >= 2"
    page.wait_for_function(again)
    page.get_by_role("button", name="Pause").click()
    assert page.evaluate("[endings, player.playing, player.loop]") == [0, False, True]
    assert page.get_by_role("button", name="Loop").get_attribute("aria-pressed") == "true"


def test_slow_is_a_key_and_typing_is_not(page: Any) -> None:
    page.keyboard.press("s")
    assert page.evaluate("player.speed") == 0.25
    assert page.get_by_label("Speed").input_value() == "0.25"
    page.get_by_label("Note").fill("")
    page.keyboard.type("slow, s.")
    assert page.get_by_label("Note").input_value() == "slow, s."
    assert page.evaluate("[player.speed, player.tick, player.playing]") == [0.25, 0, False]


def test_a_closed_player_leaves_nothing_behind(page: Any) -> None:
    assert page.evaluate("broken") == "The moving picture could not be loaded."
    page.evaluate("player.close()")
    page.keyboard.press("Space")
    assert page.evaluate("[player.playing, document.querySelectorAll('.reel-player').length]") == [False, 0]


def test_the_player_has_no_barriers(page: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe (make develop)").Axe()
    page.wait_for_function("document.getElementById('here').children.length === 1")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    found = axe.run(page).response["violations"]
    assert found == [], [(one["id"], one["nodes"][0]["html"]) for one in found]
