"""The operator's page in a browser without a graph: how it shows given content, and that nothing on it delays STOP."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra serve)")

from merton.monitor.buttons import PressReply
from merton.monitor.hub import Hub, HubFrame
from merton.monitor.motion import MotionLog
from merton.monitor.pictures import jpeg
from merton.monitor.scene import SceneView
from merton.monitor.server import MonitorServer
from merton.world.cell import load_cell
from patience import stretched, until

LIMIT_MS = 60_000
NORMAL = {"mode": "NORMAL", "message": "", "links": [], "clearance_mm": None, "force_n": None}
PROGRESS = {
    "state": "running", "run_id": "quickstart-1", "experiment": "quickstart", "completed": 36, "total": 528,
    "trial_id": "servo.pick.3.gaussian_blur.4", "agent": "servo", "task": "pick", "scene": 3,
    "distortion": "gaussian_blur", "level": 4, "stage": "execution", "step": 2, "next_trial_id": "servo.pick.3.jpeg.4",
    "elapsed_s": 130.0, "remaining_s": 719.0, "why": "",
}  # fmt: skip
NAMES = ("red mat", "blue cube", "green cube", "yellow cylinder")


class Desk:
    """Controls that note their presses."""

    def __init__(self) -> None:
        self.pressed: list[str] = []

    def _answer(self, press: str) -> Future[PressReply]:
        self.pressed.append(press)
        pending: Future[PressReply] = Future()
        pending.set_result(PressReply(True, "noted"))
        return pending

    def stop(self) -> Future[PressReply]:
        return self._answer("stop")

    def reset(self) -> Future[PressReply]:
        return self._answer("reset")

    def confirm(self, trial_id: str, verdict: str, who: str) -> Future[PressReply]:
        return self._answer(f"confirm {trial_id} {verdict} {who}")

    arranged = confirm

    def record(self, wanted: bool) -> Future[PressReply]:
        return self._answer(f"record {wanted}")


def quality(value: float) -> dict[str, Any]:
    """Of an image, as monitor_node shows it, by a metric of which lower is better, with a bound of 0.6."""
    content: dict[str, Any] = {"value": value, "metric": "blur_effect", "lower_is_better": True, "refused": value > 0.6}
    return {**content, "share": 1 - value, "minimum": 0.6, "minimum_share": 0.4}


class Shown:
    """A served page with the content of a trial that is under way; its arm stands at 11 s of the cell's clock."""

    def __init__(self, folder: Path) -> None:
        self.hub, self.desk = Hub(), Desk()
        self.server = MonitorServer(self.hub, self.desk, folder / "presses.jsonl", port=0)
        cell = load_cell()
        view, log = SceneView(cell), MotionLog(cell)
        joints = np.radians([-7.8, -70.9, 93.7, -112.7, -90.0, -28.3])  # down among the objects
        for number in range(40):
            log.add(7.0 + 0.1 * number, joints, 0.4 * np.sin(0.3 * number + np.arange(6)), 0.1)
        crowd = [{"name": n, "at": [0.58 + 0.015 * i, 0.03, 0.02]} for i, n in enumerate(NAMES)]
        stage = {"stage": "perception", "step": 0, "start_s": 0.0, "end_s": 1.5}
        content: dict[str, Any] = {
            "safety": NORMAL,
            "cameras": ["top", "side"],
            "cell": view.still(),
            "arm": view.arm(joints, 0.1, 11.0),
            "arm_seen": True,
            "scene": {"task": "pick", "seed": 3, "instruction": "pick it up", "success": False, "objects": crowd},
            "path": {"points": [[0.4, 0.0, 0.3], [0.45, 0.0, 0.1]], "cut_short": False},
            "quality": {"top": quality(0.31)},
            "progress": PROGRESS,
            "motion": log.rows,
            "timeline": {
                "trial_id": "t.37", "running": True, "elapsed_s": 4.0,
                "stages": [stage, {"stage": "execution", "step": 2, "start_s": 1.5, "end_s": None}],
                "events": [{"kind": "stop", "text": "pressed by Ada", "at_s": 2.5}],
            },
            "recording": {"state": "off", "file": "", "megabytes": 0.0},
            "ratings": {
                "experiment": "quickstart-1",
                "agents": [{"id": "servo", "mean": 1600.0, "deviation": 80.0, "matches": 12},
                           {"id": "hold", "mean": None, "deviation": None, "matches": 0}],
            },
            "tally": {"servo": [12, 9]},
        }  # fmt: skip
        for section, value in content.items():
            self.hub.put(section, value)
        self.stop_path_is_seen = True
        self._ended, self._looks = threading.Event(), threading.Thread(target=self._look)

    def start(self) -> None:
        self.server.start()
        self._looks.start()

    def stop(self) -> None:
        self._ended.set()
        self._looks.join()
        self.server.stop()

    def _look(self) -> None:
        """Ten times a second, as monitor_node does: beside the test, whose steps take long on a busy machine."""
        while not self._ended.wait(0.1):
            if self.stop_path_is_seen:
                self.hub.put("stop_path", True)

    def picture(self, stream: str, stamp_s: float) -> None:
        self.hub.put_frame(HubFrame(stream, int(1e9 * stamp_s), jpeg(np.full((60, 106, 3), 120, np.uint8))))


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    shown = Shown(tmp_path)
    shown.start()
    yield shown
    shown.stop()


def wait(page: Any, script: str) -> None:
    """Until a script is true in the page."""
    assert until(lambda: bool(page.evaluate(script))), script


@pytest.fixture
def page(browser: Any, shown: Shown) -> Iterator[Any]:
    """The page, live, in a window of a desktop; the test fails on a word in its console."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(stretched(LIMIT_MS))
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(shown.server.address)
    wait(page, "document.querySelector('#safety').classList.contains('normal')")
    yield page
    context.close()
    assert complaints == []


def text(page: Any, name: str) -> str:
    """The text of an element that can be seen; empty for one that cannot."""
    found = page.locator(f"#{name}")
    return str(found.inner_text()) if found.is_visible() else ""


def test_the_page_says_what_runs_and_shows_the_trial(shown: Shown, page: Any) -> None:
    assert text(page, "progress-now") == "trial 37 of 528 · servo · pick · gaussian_blur 4 · 12 min left"
    for word in ("quickstart", "execution, step 2", "2 min elapsed", "next servo.pick.3.jpeg.4"):
        assert word in text(page, "progress-more")
    assert page.locator("#progress-bar").evaluate("bar => bar.value / bar.max") == pytest.approx(36 / 528)
    assert page.locator("#motion svg").count() == 4
    for title in ("joint speeds [°/s]", "speed of the tool [mm/s]", "height of the tool [mm]", "[mm]"):
        assert title in page.locator("#motion").inner_text()
    assert "perception 1.5 s" in text(page, "timeline")
    assert "stop at 2.5 s: pressed by Ada" in text(page, "timeline")
    assert "9 of 12" in text(page, "ratings")
    for words in ("workspace", "path planned for the tool", "base_link"):
        assert words in page.locator(".arm .legend").inner_text()
    for state, said in (("idle", "idle: no experiment runs"), ("failed", "idle: quickstart failed")):
        shown.hub.put("progress", {**PROGRESS, "state": state, "why": "the arm was lost"})
        wait(page, f"document.querySelector('#progress-now').textContent === '{said}'")
    assert "36 of 528 trials" in text(page, "progress-more")
    assert "the arm was lost" in text(page, "progress-more")

    shown.picture("top/after", 11.0)
    wait(page, "!document.querySelector('#quality-top').hidden")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
    found = axe.Axe().run(page, options=rules)
    assert found.violations_count == 0, found.generate_report()


def test_the_quality_of_an_image_is_seen_to_fall(shown: Shown, page: Any) -> None:
    """As words and as a bar below the pictures of its camera, in the caption, and in the picture that is large."""
    shown.picture("top/after", 11.0)
    wait(page, "!document.querySelector('#quality-top').hidden")
    bar = page.locator("#quality-top .bar")
    assert "top: quality 0.31 (blur_effect, lower is better; the arm refuses above 0.6)" in text(page, "quality-top")
    assert float(bar.get_attribute("width")) == pytest.approx(69)
    page.locator("#picture-top-after").click()
    shown.hub.put("quality", {"top": quality(0.83)})
    wait(page, "document.querySelector('#quality-top').classList.contains('refused')")
    assert float(bar.get_attribute("width")) == pytest.approx(17)
    assert "quality 0.83: refused" in text(page, "quality-top")
    wait(page, "document.querySelector('#zoom-title').textContent.includes('quality 0.83: refused')")
    assert page.locator("#zoom").is_visible()
    assert not page.locator("#quality-side").is_visible()


def test_labels_of_objects_cover_neither_each_other_nor_an_object(page: Any) -> None:
    wait(page, f"document.querySelector('#arm').labels?.length === {len(NAMES)}")
    labels = page.evaluate("document.querySelector('#arm').labels")
    assert {one["name"] for one in labels} == set(NAMES)
    for i, one in enumerate(labels):
        for other in labels[:i]:
            apart = (
                one["x"] + one["w"] <= other["x"]
                or other["x"] + other["w"] <= one["x"]
                or one["y"] + one["h"] <= other["y"]
                or other["y"] + other["h"] <= one["y"]
            )
            assert apart, (one, other)


def test_no_picture_is_called_dead_while_the_cell_stands(shown: Shown, page: Any) -> None:
    """The clock of the page runs, that of the cell stands at 11 s; one camera's last picture is older than that."""
    captions = "[...document.querySelectorAll('#cameras figcaption')].map(one => one.textContent)"
    wait(page, f"{captions}[0] === 'top, before: waiting for the camera'")
    assert page.evaluate(captions)[1] == "top, after: waiting for distortion_node"
    page.clock.install()  # after the page is up
    shown.picture("top/before", 11.0)
    shown.picture("side/before", 4.0)
    for name in ("top", "side"):
        wait(page, f"document.querySelector('#picture-{name}-before').dataset.stamp")
    page.clock.run_for(5000)
    wait(page, "document.querySelectorAll('#cameras figcaption')[2].textContent.includes('no picture for')")
    top, side = (page.locator("#cameras figcaption").nth(number).inner_text() for number in (0, 2))
    assert top == "top: before, the cell stands"
    assert side.startswith("side: no picture for ")
    old = [page.locator("#cameras figure").nth(number).get_attribute("class") or "" for number in (0, 2)]
    assert old == ["", "old"]


def test_a_large_picture_hides_nothing_and_weakens_no_key(shown: Shown, page: Any) -> None:
    shown.picture("top/before", 11.0)
    wait(page, "document.querySelector('#picture-top-before').dataset.stamp")
    page.get_by_role("button", name="enlarge top, before").click()
    assert text(page, "zoom-title") == "top: before"
    assert page.locator("#zoom-picture").evaluate("canvas => canvas.width") == 106
    for number, key in enumerate(("Escape", "Space"), 1):  # with the button in focus that closes the picture
        page.keyboard.press(key)
        until(lambda number=number: shown.desk.pressed == ["stop"] * number)
        assert page.locator("#zoom").is_visible(), "the keys stop, and do nothing else"
    covered = "(() => { const b = document.querySelector('#stop').getBoundingClientRect();"
    covered += (
        " return document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2).closest('#stop') === null; })()"
    )
    assert page.evaluate(covered) is False
    page.locator("#stop").click()
    until(lambda: shown.desk.pressed == ["stop"] * 3)
    page.get_by_role("button", name="Close").click()
    assert not page.locator("#zoom").is_visible()


def test_a_name_is_asked_for_by_the_press_that_needs_one(shown: Shown, page: Any) -> None:
    assert not page.locator("#enter").is_visible(), "watching needs no name"
    page.locator("#stop").click()
    until(lambda: shown.desk.pressed == ["stop"])
    assert not page.locator("#enter").is_visible(), "a stop waits for no name"
    page.get_by_role("button", name="Record").click()
    assert page.locator("#name").is_visible()
    page.keyboard.press("Escape")
    until(lambda: shown.desk.pressed == ["stop", "stop"])
    page.get_by_role("button", name="Not now").click()
    assert not page.locator("#enter").is_visible()
    page.get_by_role("button", name="Record").click()
    page.get_by_label("Your name").fill("Ada")
    page.keyboard.press("Enter")
    until(lambda: shown.desk.pressed[2:] == ["record True"])
    shown.hub.put("recording", {"state": "on", "file": "runs/live/recording.mcap", "megabytes": 1.5})
    page.get_by_role("button", name="End the recording").click()
    until(lambda: shown.desk.pressed[3:] == ["record False"])
    assert "1.5 MB" in text(page, "recording")


@pytest.mark.parametrize("press", ["release", "arranged"])
def test_all_clear_is_said_after_the_name_and_not_before(shown: Shown, page: Any, press: str) -> None:
    """What moves the arm is never sent by the entry of a name: the cell may have changed meanwhile."""
    if press == "release":
        shown.hub.put("safety", {**NORMAL, "mode": "EMERGENCY_STOP"})
        first, second, sent = "Release", "All clear: release", "reset"
    else:
        shown.hub.put("arranging", {"trial_id": "pick.3", "instruction": "the cube there", "limit_s": None})
        first = second = "Done, all clear"
        sent = "confirm pick.3 success Ada"
    wait(page, f"!document.querySelector('{'#release' if press == 'release' else '#arrange'}').hidden")
    page.get_by_role("button", name=first).click()
    page.get_by_label("Your name").fill("Ada")
    page.keyboard.press("Enter")
    page.locator("#enter").wait_for(state="hidden")
    assert shown.desk.pressed == []
    page.get_by_role("button", name=second).click()
    until(lambda: shown.desk.pressed == [sent])


def test_nothing_looks_present_once_the_connection_is_lost(shown: Shown, page: Any) -> None:
    shown.picture("top/before", 11.0)
    wait(page, "document.querySelector('#picture-top-before').dataset.stamp")
    values = ("arm", "arm-numbers", "task", "motion", "timeline", "picture-top-before")
    assert all(page.locator(f"#{name}").is_visible() for name in values)
    shown.stop_path_is_seen = False
    until(lambda: "lost" in (page.locator("#safety").get_attribute("class") or ""))
    assert [name for name in values if page.locator(f"#{name}").is_visible()] == []
    assert text(page, "safety-mode") == "UNKNOWN"
    assert (text(page, "progress-now"), text(page, "progress-more")) == ("what runs is not known", "")
    assert page.locator("#cameras figcaption").first.inner_text() == "top, before: not connected"
    red = page.locator("#safety").evaluate("band => getComputedStyle(band).borderLeftColor.match(/\\d+/g).map(Number)")
    assert red[0] > 2 * max(red[1:]), "the band is red"
    shown.stop_path_is_seen = True
    wait(page, "document.querySelector('#safety').classList.contains('normal')")
    assert all(page.locator(f"#{name}").is_visible() for name in values), "it comes back with the connection"
    assert math.isclose(page.locator("#progress-bar").evaluate("bar => bar.max"), 528)


def test_on_a_phone_arm_band_and_stop_fit_together(shown: Shown, page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    stop = page.locator("#stop").bounding_box()
    for name in ("safety", "progress-now", "arm"):
        box = page.locator(f"#{name}").bounding_box()
        assert box["y"] >= 0, name
        assert box["y"] + box["height"] <= stop["y"], name
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
