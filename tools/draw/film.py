"""Films one trial, clean and distorted side by side: `.venv/bin/python tools/draw/film.py docs/images/trial.webp`.

Above, the cell from its side camera, as a bystander sees it; below, the picture that the policy decided on. Both trials
have the same scene, the same seeds and the same policy, and end with the outcome that the cell judges.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pictures

from merton.decision.models.base import POLICIES
from merton.experiment.local import LocalPorts
from merton.experiment.plan import Trial, single_trial
from merton.experiment.ports import Side
from merton.experiment.runner import Runner
from merton.simulation.cameras import SceneCameras
from merton.world.action import ActionChunk
from merton.world.observation import Image, Observation

POLICY, TASK, SCENE, DISTORTION, LEVEL = "glance", "val-place", 6, "lens_blur", 4
VIEW, WIDTH_PX = "side", 400
"""The bystander's camera, and the width of each of the four pictures."""
DRAWN_PX, CROP = (552, 414), (slice(84, 414), slice(138, 538))
"""Width and height of the bystander's picture, and its rows and columns that are shown."""
SECONDS, LAST_S, RATE = 8.0, 1.8, 10
"""Length of the film, of its last picture, and pictures per second."""
QUALITY = 55
PAPER, INK, QUIET, GREEN, RED = (252, 252, 250), (29, 33, 41), (85, 92, 104), (31, 122, 64), (176, 42, 32)


@dataclass(frozen=True)
class Moment:
    """The cell and the picture of the last decision at one time of a trial."""

    qpos: NDArray[np.float64]
    seen: Image


class FilmedPorts(LocalPorts):
    """Ports that remember the cell at every slice of a motion, and what the policy looked at before it."""

    moments: list[Moment]
    _seen_by_policy: Image

    def act(self, model: str, observation: Observation, side: Side) -> ActionChunk:
        """Decide as usual; the picture of the distorted side is the one that is acted on."""
        if side == "distorted":
            self._seen_by_policy = observation.views[POLICIES[model].cameras[0]].color.copy()
        return super().act(model, observation, side)

    def film(self, runner: Runner, trial: Trial) -> tuple[list[Moment], str]:
        """The moments of a trial and its outcome."""
        self.moments, advance = [], self.cell.advance

        def filmed(seconds: float) -> None:
            advance(seconds)
            self.moments.append(Moment(self.cell.qpos.copy(), self._seen_by_policy))

        self.cell.advance = filmed  # type: ignore[method-assign]
        outcome = runner.run(trial).record.outcome.value
        self.cell.advance = advance  # type: ignore[method-assign]
        return self.moments, outcome


def main(path: str) -> None:
    """Run both trials, draw them and write the film."""
    spec, trial = single_trial(POLICY, TASK, DISTORTION, LEVEL, scene=SCENE)
    with FilmedPorts() as ports:
        runner = Runner(spec, "film", ports)
        clean = ports.film(runner, Trial(trial.agent, trial.case.reference))
        distorted = ports.film(runner, trial)
        instruction = ports.cell.scene.command.instruction if ports.cell.scene else ""
    columns = [
        column(*clean, f"{POLICY}, clean images"),
        column(*distorted, f"{POLICY}, {DISTORTION} level {LEVEL}"),
    ]
    frames = [titled(np.hstack(pair), f'"{instruction}": one scene, one policy') for pair in zip(*columns, strict=True)]
    first, *others = [Pictures.fromarray(frame) for frame in frames]
    shown_ms = [1000 // RATE] * len(others) + [int(LAST_S * 1000)]
    first.save(path, save_all=True, append_images=others, duration=shown_ms, loop=0, quality=QUALITY, method=6)


def column(moments: list[Moment], outcome: str, title: str) -> list[Image]:
    """The pictures of one trial, `SECONDS` long in all; its motion is shown faster than it was."""
    count = int((SECONDS - LAST_S) * RATE)
    chosen = [moments[index] for index in np.linspace(0, len(moments) - 1, count).astype(int)]
    cameras = SceneCameras(*DRAWN_PX, shadows=True, samples=4)
    drawn = []
    for number, moment in enumerate(chosen):
        view = cameras.render(TASK, SCENE, moment.qpos, VIEW, depth=False).color[CROP]
        height = moment.seen.shape[0] * WIDTH_PX // moment.seen.shape[1]
        seen = cv2.resize(moment.seen, (WIDTH_PX, height), interpolation=cv2.INTER_AREA)
        ended = number == count - 1
        said, colour = (outcome, GREEN if outcome == "success" else RED) if ended else ("", INK)
        parts = (line(title, INK, 0.62, said, colour), view, line("the policy decides on:", QUIET, 0.5), seen)
        drawn.append(np.vstack([framed(np.asarray(part, np.uint8)) for part in parts]))
    cameras.close()
    return drawn


def line(text: str, colour: tuple[int, int, int], scale: float, right: str = "", shade: object = INK) -> Image:
    """A line of text as wide as a picture, with a second text at its right end."""
    paper = np.full((30, WIDTH_PX, 3), PAPER, np.uint8)
    cv2.putText(paper, text, (2, 21), cv2.FONT_HERSHEY_SIMPLEX, scale, colour, 1, cv2.LINE_AA)
    (width, _), _ = cv2.getTextSize(right, cv2.FONT_HERSHEY_SIMPLEX, 0.62, 2)
    cv2.putText(paper, right, (WIDTH_PX - width - 4, 21), cv2.FONT_HERSHEY_SIMPLEX, 0.62, shade, 2, cv2.LINE_AA)
    return paper


def titled(image: Image, text: str) -> Image:
    """The picture with the instruction above it."""
    paper = np.full((38, image.shape[1], 3), PAPER, np.uint8)
    cv2.putText(paper, text, (10, 26), cv2.FONT_HERSHEY_SIMPLEX, 0.7, INK, 1, cv2.LINE_AA)
    return np.vstack([paper, image])


def framed(image: Image) -> Image:
    """The picture with a margin at both sides."""
    return np.asarray(cv2.copyMakeBorder(image, 0, 0, 8, 8, cv2.BORDER_CONSTANT, value=PAPER), np.uint8)


if __name__ == "__main__":
    main(sys.argv[1])
