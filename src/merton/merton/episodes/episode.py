"""One episode under way: the pictures it is shown, the answers of its policy, and its end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from numpy.typing import ArrayLike

from merton.decision.spread import as_rows
from merton.episodes.design import Condition, Design
from merton.episodes.names import safe_camera
from merton.episodes.pairs import frame_sha256
from merton.episodes.shown import EpisodePictures, ShownPart, pictures_seed
from merton.errors import InputError
from merton.results.text import counted
from merton.world.observation import Image

MOST_PICTURES = 8
"""Steps of which the pictures are kept, at most."""
MOST_NOTES = 20
"""Different clauses about an episode that are kept, at most."""
OUTSIDE = "no picture of it was distorted: "
"""How the reason of an episode begins that is no trial of its distortion."""
MOST_ROWS = 512
"""Rows of an undistorted episode's answers that are kept for the spread, at most: of more, every second answer."""


class Recorder(Protocol):
    """The run that an episode belongs to (`merton.episodes.run.EpisodesRun`)."""

    @property
    def design(self) -> Design:
        """The conditions of its scenes."""

    def ended(self, episode: Episode, success: bool | None, why: str) -> bool:
        """See `Episode.end`."""

    def lost(self, episode: Episode, why: str) -> bool:
        """See `Episode.lost`."""


class Episode:
    """An episode that was begun (`merton.episodes.run.EpisodesRun.begin`). Not to be used by two threads at once.

    Attributes:
        number: in the run, from 0.
        agent: id of the policy.
        task, scene: as in test cases; `name` is the task's as the program has it.
        condition: what it is shown.
        recorded: whether its result will be in the record. One beyond the design is shown undistorted pictures, or
            those of the condition that was asked for.
    """

    def __init__(
        self, run: Recorder, number: int, agent: str, task: str, name: str, scene: int, condition: Condition,
        recorded: bool,
    ) -> None:  # fmt: skip
        self.run, self.number, self.agent, self.task, self.name, self.scene = run, number, agent, task, name, scene
        self.condition, self.recorded = condition, recorded
        design: Design = run.design
        part = design.part(condition.part) if not condition.is_reference else ShownPart()
        seed = pictures_seed(design.seed, condition.case(task, scene))
        self._pictures = EpisodePictures(condition.distortion, condition.level, seed, part)
        self._began_s = time.monotonic()
        self._wall_s: float | None = None
        self._steps = 0
        self._first_sha256 = ""
        self._kept: dict[tuple[int, str], tuple[Image, Image]] = {}
        self._answers: dict[int, list[Any]] = {}
        self._actions: list[tuple[int, list[Any]]] = []
        self._stride = 1
        self._added_ms: list[float] = []
        self._notes: list[str] = []
        self._changed = False
        self._distorted: set[int] = set()
        self._passed: dict[str, list[int]] = {}
        self._cameras: set[str] = set()
        self.ended = False

    @property
    def is_clean(self) -> bool:
        """Whether every picture passes as it is."""
        return self._pictures.clean

    def absent(self, cameras: Iterable[str]) -> list[str]:
        """The cameras that this episode is to distort and that are not among these."""
        return sorted({*(self._pictures.part.cameras or ())}.difference(cameras))

    def asks_clean(self, step: int) -> bool:
        """Whether the policy is to be asked about the undistorted pictures of a step, beside those it is shown.

        Not in an undistorted episode, in which its one answer is both.
        """
        return self.recorded and not self.is_clean and self._observes(step)

    def _observes(self, step: int) -> bool:
        every = self.run.design.clean_every
        return step == 0 or (every > 0 and step % every == 0)

    def show(self, step: int, pictures: Mapping[str, Image]) -> dict[str, Image]:
        """The pictures that the policy gets in place of those of its cameras.

        Args:
            step: number of the observation in the episode, from 0; each once, in order.
            pictures: camera name to (height, width, 3) uint8 RGB, upright.

        Returns:
            The same names; the very objects where nothing is distorted.

        Raises:
            InputError: a picture has another form; it names the camera.
        """
        shown = self._pictures.show_all(step, pictures)
        if not self.is_clean:
            self._look_for_distorted(step, pictures)
        if step == 0 and not self._first_sha256:
            self._first_sha256 = frame_sha256(pictures)
        if self.recorded and self._keeps(step, any(shown[name] is not pixels for name, pixels in pictures.items())):
            for name, pixels in pictures.items():
                self._kept[step, name] = pixels.copy(), shown[name].copy()
        self._steps = max(self._steps, step + 1)
        return shown

    def passed(self, step: int, why: str) -> None:
        """Keep that an observation was passed on as it is, because its pictures cannot be distorted.

        Args:
            step: number of the observation.
            why: in one clause.
        """
        self._steps = max(self._steps, step + 1)
        self._distorted.discard(step)
        if not self.is_clean and self._is_due(step) and (why in self._passed or len(self._passed) < MOST_NOTES):
            self._passed.setdefault(why, []).append(step)

    @property
    def undistorted(self) -> str:
        """Why it is no trial of its distortion, although pictures of it were to be distorted; empty if it is one.

        It is one, too, if it was over before the first step that is to be distorted: that is what such a distortion
        does to it.
        """
        return f"{OUTSIDE}{next(iter(self._passed))}" if self._passed and not self._distorted else ""

    def _is_due(self, step: int) -> bool:
        steps = self._pictures.part.steps
        return steps is None or step in steps

    def _look_for_distorted(self, step: int, pictures: Mapping[str, Image]) -> None:
        """Find out whether a picture of an observation is one of those that are distorted."""
        self._cameras |= pictures.keys()
        if any(self._pictures.part.holds(camera, step) for camera in pictures):
            self._distorted.add(step)
        elif pictures:
            wanted, sent = (", ".join(sorted(names)) for names in (self._pictures.part.cameras or (), pictures))
            self.passed(step, f"no picture of {wanted} was sent, only of {sent}")
        else:
            self.passed(step, "no picture was sent")

    def _keeps(self, step: int, is_changed: bool) -> bool:
        """Whether the pictures of a step are kept: of observed ones, and of the first that looks other than sent."""
        first, self._changed = is_changed and not self._changed, self._changed or is_changed
        room = MOST_PICTURES - (not self.is_clean and not self._changed)
        return len({kept for kept, _ in self._kept}) < room and (first or self._observes(step))

    def decided(
        self,
        step: int,
        action: ArrayLike | None,
        clean_action: ArrayLike | None = None,
        added_s: float | None = None,
    ) -> None:
        """Keep what the policy decided at a step.

        Args:
            step: number of the observation.
            action: rows (n, columns) or (columns,) in the policy's own numbers; None if its answer is no such rows.
            clean_action: its answer to the undistorted pictures; None if it was not asked. In an undistorted episode
                without one the action is both.
            added_s: time that was added to the observation on its way [s], without the policy's own.
        """
        self._steps = max(self._steps, step + 1)
        if added_s is not None:
            self._added_ms.append(round(1e3 * added_s, 3))
        if not self.recorded or self.ended:
            return
        shown, clean = self._rows(step, action), self._rows(step, clean_action)
        if self.is_clean and clean is None:
            clean = shown
        if self.is_clean and shown is not None:
            self._keep_action(step, shown)
        if self._observes(step):
            known = self._answers.get(step, [step, None, None])
            self._answers[step] = [step, clean or known[1], shown or known[2]]

    def _rows(self, step: int, action: ArrayLike | None) -> list[Any] | None:
        if action is None:
            return None
        try:
            rows = as_rows(action).tolist()
        except (InputError, TypeError, ValueError):
            self.note(f"the answer at step {step} is no rows of finite numbers")
            return None
        return rows or None

    def _keep_action(self, step: int, rows: list[Any]) -> None:
        """Keep an undistorted answer for the spread: of every step, or every 2nd, 4th, ... so that all are few."""
        if step % self._stride:
            return
        self._actions.append((step, rows))
        while len(self._actions) > 1 and sum(len(kept) for _, kept in self._actions) > MOST_ROWS:
            self._stride *= 2
            self._actions = [(at, kept) for at, kept in self._actions if at % self._stride == 0]

    def note(self, why: str) -> None:
        """Keep a clause about the episode that is no fault of its policy, such as a failed shadow session; once."""
        if why not in self._notes and len(self._notes) < MOST_NOTES:
            self._notes.append(why)

    def over(self) -> None:
        """Stop its clock: no more pictures come, and its end is told later, as by a file of all results."""
        self._wall_s = time.monotonic() - self._began_s

    def end(self, success: bool | None, why: str = "") -> bool:
        """End it. When this returns True, its result is on the disk and survives the loss of this process.

        Args:
            success: as the program says; None if it did not say, which counts as a failure and is counted apart.
            why: the reason, for the record.

        Returns:
            False if it had ended before; nothing is changed then.
        """
        return self.run.ended(self, success, why)

    def lost(self, why: str) -> bool:
        """Give it up for a fault of the infrastructure: it has no result, and its condition is given again.

        Returns:
            False if it had ended before.
        """
        return self.run.lost(self, why)

    def summary(self, success: bool | None, why: str) -> dict[str, Any]:
        """The content of its last line in the journal."""
        return {
            "success": success,
            "why": why,
            "steps": self._steps,
            "wall_s": round(time.monotonic() - self._began_s if self._wall_s is None else self._wall_s, 6),
            "first_sha256": self._first_sha256,
            "answers": [self._answers[step] for step in sorted(self._answers)],
            "actions": [rows for _, rows in self._actions],
            "added_ms": self._added_ms,
            "notes": [*self._notes, *self._not_distorted()],
            "undistorted": self.undistorted,
            "frames": [
                {"step": step, "camera": name, **{side: _file(step, name, side) for side in ("reference", "distorted")}}
                for step, name in sorted(self._kept)
            ],
        }

    def _not_distorted(self) -> list[str]:
        """Clauses on what was to be distorted and was not."""
        said = [
            f"{counted(len(steps), 'observation')}, the first at step {steps[0]}, passed undistorted: {why}"
            for why, steps in self._passed.items()
        ]
        missing = self.absent(self._cameras) if self._distorted else []
        return [*said, *([f"no picture was sent of {', '.join(missing)}"] if missing else [])]

    def files(self) -> dict[str, bytes]:
        """Its pictures by the names of their files."""
        from merton.recording.images import jpeg

        return {
            _file(step, name, side): bytes(jpeg(pixels))
            for (step, name), both in sorted(self._kept.items())
            for side, pixels in zip(("reference", "distorted"), both, strict=True)
        }


def _file(step: int, camera: str, side: str) -> str:
    return f"{step:02d}_{safe_camera(camera)}_{side}.jpg"
