"""How long a rater waits for the next item: from the key that saves an answer until the next picture is painted.

    python tools/people_next_item.py [--items 60] [--pause-ms 400]

A study of the protocol quality on loopback, with pictures of 1280 x 720 pixels that compress badly, and another with
videos in their place. Chromium answers each item by keys after a pause, as a fast person would.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from merton.config import dumps
from merton.seeding import generator

WATCH = """() => {
  window.waits = [];
  document.addEventListener("keydown", (event) => { if (event.key === "Enter") window.since = event.timeStamp; }, true);
  new MutationObserver(() => {
    const seen = () => {
      const picture = document.querySelector("#form img");
      if (picture && !picture.complete) return requestAnimationFrame(seen);
      requestAnimationFrame(() => window.waits.push(performance.now() - window.since));
    };
    requestAnimationFrame(seen);
  }).observe(document.getElementById("form"), { childList: true });
}"""


def picture(seed: int, width: int, height: int) -> np.ndarray:
    """Smooth noise with grain: about as hard to compress as a photograph."""
    rng = generator("next item", seed)
    coarse = rng.integers(0, 256, (9, 16, 3), np.uint8)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC).astype(np.int16)
    return np.clip(smooth + rng.normal(0, 6, smooth.shape), 0, 255).astype(np.uint8)


def write_project(folder: Path, items: int, videos: bool) -> Path:
    """The project's file; `items` pictures, or as many generated videos of three seconds."""
    about: dict[str, Any] = {"name": "wait", "title": "Next item", "raters": 1, "ratings": 1}
    if videos:
        for number in range(items):
            for place in (folder / "videos/reference/place", folder / "videos/team-a/place"):
                place.mkdir(parents=True, exist_ok=True)
                writer = cv2.VideoWriter(
                    str(place / f"{number:03d}.mp4"), cv2.VideoWriter.fourcc(*"mp4v"), 10, (640, 360)
                )
                for frame in range(30):
                    writer.write(np.roll(picture(number, 640, 360), 4 * frame, axis=1))
                writer.release()
        about |= {"protocol": "episodes", "items": {"videos": {"folder": "videos"}}}
    else:
        (folder / "pictures").mkdir(parents=True)
        for number in range(items):
            cv2.imwrite(str(folder / f"pictures/{number:03d}.png"), picture(number, 1280, 720))
        about |= {"protocol": "quality", "items": {"images": {"folder": "pictures"}}}
    path = folder / "project.yaml"
    path.write_text(dumps(about), encoding="utf-8")
    return path


def measured(project: Path, keys: str, pause_ms: int) -> list[float]:
    """Waits for all items but the first [ms]."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "merton", "people", "serve", str(project), "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address
            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                page.goto(address[0])
                page.get_by_label("Your name").fill("Ada")
                page.keyboard.press("Enter")
                page.get_by_role("button", name="Begin").click()
                page.locator("#form > section").wait_for()
                page.evaluate(WATCH)
                while page.locator("#work").is_visible():
                    page.wait_for_timeout(pause_ms)
                    for key in keys:
                        page.keyboard.press(key)
                    page.keyboard.press("Enter")
                    page.wait_for_timeout(200)
                waits = page.evaluate("() => window.waits")
                browser.close()
            return [float(one) for one in waits]
        finally:
            server.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--pause-ms", type=int, default=400, help="of a rater before the answer")
    arguments = parser.parse_args()
    for name, videos, keys in (("pictures 1280 x 720", False, "4"), ("pairs of videos 640 x 360", True, "y3")):
        with tempfile.TemporaryDirectory() as folder:
            project = write_project(Path(folder), min(arguments.items, 10) if videos else arguments.items, videos)
            waits = measured(project, keys, arguments.pause_ms)
        p50, p95 = np.percentile(waits, [50, 95])
        print(f"{name}: {len(waits)} waits, median {p50:.0f} ms, p95 {p95:.0f} ms, longest {max(waits):.0f} ms")


if __name__ == "__main__":
    main()
