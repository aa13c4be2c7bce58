"""Faults of time: the picture that a model gets is not the one of the present instant.

They act on the pictures of a trial, which are taken between the steps, while the arm is at rest: time is counted in
steps. A picture of an earlier step comes under the stamp of the present one, so that no check of its age finds the
fault, and with the camera's present pose. The first pictures of a trial are always as they are: nothing came before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from merton.perception.distortion.faults import Fault, Levels
from merton.registry import Registry
from merton.seeding import generator
from merton.world.observation import Frame


@dataclass(frozen=True)
class Moment:
    """The pictures of one camera up to now.

    Attributes:
        now: the true picture of this step.
        earlier: the true pictures of the steps before, at least one and at most `LONGEST_MEMORY`, the newest last.
        shown: the picture that the model got in the step before, one of those before it included.
    """

    now: Frame
    earlier: Sequence[Frame]
    shown: Frame


TemporalOperation = Callable[[Moment, float, np.random.Generator], Frame]
"""(pictures, level value > 0, generator) to the picture that the model gets."""

LONGEST_MEMORY = 8
"""Pictures of a camera that are kept: the steps of a usual trial."""


TEAR_SPREAD = 0.25
"""Largest distance of a tear from its mean place, as a share of the rows: reader and writer do not know each other. A
tear at one place would do nothing or everything to a model that has its object in the middle of the picture."""


@dataclass(frozen=True)
class TemporalFault(Fault):
    """A fault of a camera's succession of pictures.

    Attributes:
        apply: the operation itself; `FaultyStream` calls it.
    """

    category: ClassVar[str] = "time"
    apply: TemporalOperation


TEMPORAL_FAULTS: Registry[TemporalFault] = Registry("fault of time")
"""Name to entry."""


Seen = TypeVar("Seen", bound=Frame)
"""A frame, with all that its source knows of the camera."""


class FaultyStream:
    """The pictures of a trial, step after step, with one fault. Every camera fails on its own.

    Equal seeds and pictures give equal results: a trial that is run again gets the same ones.

    Args:
        name: of the fault.
        level: 0 .. 5.
        seed: of its draws, >= 0.

    Raises:
        UnknownNameError: no such fault.
    """

    def __init__(self, name: str, level: float, seed: int) -> None:
        self.fault, self.seed = TEMPORAL_FAULTS[name], seed
        self.value = self.fault.value(level)
        self._true: dict[str, deque[Frame]] = {}
        self._shown: dict[str, Frame] = {}
        self._steps: dict[str, int] = {}

    def fork(self) -> FaultyStream:
        """A stream that goes on from here by itself."""
        forked = copy(self)
        forked._true = {camera: deque(views, LONGEST_MEMORY) for camera, views in self._true.items()}
        forked._shown, forked._steps = dict(self._shown), dict(self._steps)
        return forked

    def next(self, view: Seen) -> Seen:
        """The view that a model gets in place of a camera's next: only colour and depth may differ from the present."""
        camera = view.camera
        earlier = self._true.setdefault(camera, deque(maxlen=LONGEST_MEMORY))
        shown: Frame = view
        step = self._steps.get(camera, 0)
        if earlier and self.value:
            moment = Moment(view, earlier, self._shown[camera])
            shown = self.fault.apply(moment, self.value, generator(self.seed, camera, step))
        earlier.append(view)
        self._shown[camera], self._steps[camera] = shown, step + 1
        return view if shown is view else replace(view, color=shown.color, depth_m=shown.depth_m)


def register(unit: str, levels: Levels, depth_alone: bool = False) -> Callable[[TemporalOperation], TemporalOperation]:
    """Decorator that registers a function under its own name."""
    return TEMPORAL_FAULTS.function(
        lambda name, description, operation: TemporalFault(name, levels, unit, description, depth_alone, operation)
    )


@register("probability at each step", (0.1, 0.2, 0.4, 0.7, 1.0))
def frozen(moment: Moment, probability: float, rng: np.random.Generator) -> Frame:
    """The camera stops: its last picture stays until the end of the trial."""
    has_stopped = moment.shown is not moment.earlier[-1]
    return moment.shown if has_stopped or rng.random() < probability else moment.now


@register("probability at each step", (0.1, 0.2, 0.4, 0.6, 0.9))
def dropped(moment: Moment, probability: float, rng: np.random.Generator) -> Frame:
    """A picture is lost: the one before it is seen once more."""
    return moment.shown if rng.random() < probability else moment.now


@register("mean delay [steps]", (0.1, 0.25, 0.5, 1.0, 2.0))
def late(moment: Moment, delay: float, rng: np.random.Generator) -> Frame:
    """Pictures come late, each by the whole steps of the delay, and by one more with the probability of the rest."""
    steps = min(int(delay) + (rng.random() < delay % 1), len(moment.earlier))
    return moment.earlier[-steps] if steps else moment.now


@register("mean delay [steps]", (0.1, 0.25, 0.5, 1.0, 2.0), depth_alone=True)
def depth_lag(moment: Moment, delay: float, rng: np.random.Generator) -> Frame:
    """Depth comes late, as in `late`; colour does not."""
    return replace(moment.now, depth_m=late(moment, delay, rng).depth_m)


@register("mean share of the rows", (0.1, 0.3, 0.45, 0.6, 0.8))
def torn(moment: Moment, share: float, rng: np.random.Generator) -> Frame:
    """The lower rows are still those of the picture before: it was read while it was being written."""
    now, before = moment.now, moment.earlier[-1]
    old_share = min(max(share + rng.uniform(-TEAR_SPREAD, TEAR_SPREAD), 0.0), 1.0)
    new_rows = round((1 - old_share) * len(now.color))
    color = np.concatenate((now.color[:new_rows], before.color[new_rows:]))
    if now.depth_m is None or before.depth_m is None:
        return replace(now, color=color)
    return replace(now, color=color, depth_m=np.concatenate((now.depth_m[:new_rows], before.depth_m[new_rows:])))


@register("probability at each step", (0.1, 0.2, 0.4, 0.6, 0.9))
def out_of_order(moment: Moment, probability: float, rng: np.random.Generator) -> Frame:
    """Any earlier picture comes in place of the present one, so that time may run backwards."""
    if rng.random() >= probability:
        return moment.now
    return moment.earlier[int(rng.integers(len(moment.earlier)))]
