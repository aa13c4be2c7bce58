"""A lost block on the object of a task, and the same block beside it: does a metric tell them apart?

Embodied-IQA's Appendix H shows images whose level and score disagree, for a loss that covers the object of the task
costs a robot more than one elsewhere. Ours: pairs in which nothing else differs. Both blocks are square, mid-grey, of
one size, and of nearly the same squared error, so that PSNR is at chance by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.decision.score import score
from merton.errors import InvalidActionError
from merton.experiment.local import LocalPorts
from merton.perception.quality import METRICS, measure
from merton.seeding import derive_seed
from merton.simulation.scene import scene_has
from merton.statistics.means import Interval, mean_interval
from merton.world.action import ActionChunk
from merton.world.observation import Image, Observation
from merton_studies.iqa.disagreement import Views, disagreement
from merton_studies.iqa.watched_trials import (
    FIRST_SCENE,
    SENSOR,
    SPLIT,
    VERBS,
)

GREY = 128
MARGIN_PX = 6
"""The block covers the object and so much around it."""
FURTHEST_BLOCKS = 4.0
"""The other block lies within so many of its sides."""
CAMERA = "top"


@dataclass(frozen=True)
class Told:
    """How often a measure rates the loss on the object as the worse one.

    Attributes:
        name: of a metric, or "decision" or "disagreement" with a policy.
        share: 0..1; equal ratings count half.
        interval: of 95 %, clustered by scene.
        pairs: their number.
    """

    name: str
    share: float
    interval: Interval
    pairs: int


def loss_pair(image: Image, things: NDArray[np.bool_]) -> tuple[Image, Image] | None:
    """The image with a lost block on the largest thing, and with the same block beside all of them.

    Args:
        image: (height, width, 3).
        things: (height, width) the pixels that show the object and the target of the task.

    Returns:
        None if nothing is seen of them, or if there is no room beside them.
    """
    number, _, boxes, centers = cv2.connectedComponentsWithStats(things.astype(np.uint8))
    if number < 2:
        return None
    largest = 1 + int(np.argmax(boxes[1:, cv2.CC_STAT_AREA]))
    side = int(max(boxes[largest, cv2.CC_STAT_WIDTH], boxes[largest, cv2.CC_STAT_HEIGHT])) + 2 * MARGIN_PX
    height, width = things.shape
    if side > min(height, width) // 2:
        return None
    place = np.array([centers[largest][1], centers[largest][0]]) - side / 2.0
    row, column = (int(np.clip(round(at), 0, end - side)) for at, end in zip(place, (height, width), strict=True))
    errors = _window_sums(((image.astype(np.float64) - GREY) ** 2).sum(axis=2), side)
    covered = _window_sums(things.astype(np.float64), side)
    rows, columns = np.indices(errors.shape)
    away = np.hypot(rows - row, columns - column)
    free = (covered == 0) & (away <= FURTHEST_BLOCKS * side)
    if not free.any():
        return None
    difference = np.where(free, np.abs(errors - errors[row, column]), np.inf)
    other = np.unravel_index(int(np.argmin(difference)), difference.shape)
    return _lost(image, row, column, side), _lost(image, int(other[0]), int(other[1]), side)


def compare(
    ports: LocalPorts,
    scenes: int,
    metrics: Sequence[str],
    policies: Sequence[str],
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Told]:
    """One pair in each scene of the test split that the labelled sample does not have; the verb is drawn.

    Args:
        metrics: of `METRICS`.
        policies: that look at the top camera alone: their decision scores and disagreements are compared too.

    Raises:
        InfrastructureError: a model is missing.
    """
    found: dict[str, list[tuple[float, int]]] = {}
    ports.set_sensor(SENSOR)
    ports.set_distortion("reference", 0, 0)
    for number in range(FIRST_SCENE, FIRST_SCENE + scenes):
        verbs = [verb for verb in VERBS if scene_has(f"{SPLIT}-{verb}", number)]
        instruction = ports.reset(f"{SPLIT}-{verbs[derive_seed('object loss', number) % len(verbs)]}", number)
        view = ports.view((CAMERA,))
        seen = view.reference[CAMERA]
        pair = loss_pair(seen.color, ports.things(CAMERA))
        on_progress(number - FIRST_SCENE + 1, scenes)
        if pair is None:
            continue
        for name in metrics:
            sign = 1.0 if METRICS[name].better == "higher" else -1.0
            on, beside = (sign * measure(name, image, seen.color) for image in pair)
            found.setdefault(name, []).append((_worse(on, beside), number))
        for policy in policies:
            decide = _decider(ports, policy, view.observation("reference", instruction))
            try:
                clean = decide({CAMERA: seen})
            except InvalidActionError:
                continue
            shown = [{CAMERA: replace(seen, color=image)} for image in pair]
            scores = [_score(decide, clean, views) for views in shown]
            spreads = [disagreement(decide, views).position_m for views in shown]
            found.setdefault(f"decision of {policy}", []).append((_worse(*scores), number))
            found.setdefault(f"disagreement of {policy}", []).append((_worse(-spreads[0], -spreads[1]), number))
    return [_told(name, pairs) for name, pairs in found.items()]


def _decider(ports: LocalPorts, policy: str, observation: Observation) -> Callable[[Views], ActionChunk]:
    return lambda views: ports.act(policy, replace(observation, views=views), "distorted")


def _score(decide: Callable[[Views], ActionChunk], clean: ActionChunk, views: Views) -> float:
    """The decision score; 0 for none."""
    try:
        return score(clean, decide(views)).total
    except InvalidActionError:
        return 0.0


def _worse(on: float, beside: float) -> float:
    return 0.5 if on == beside else float(on < beside)


def _told(name: str, pairs: Sequence[tuple[float, int]]) -> Told:
    worse, scenes = zip(*pairs, strict=True)
    return Told(name, float(np.mean(worse)), mean_interval(worse, scenes), len(worse))


def _window_sums(values: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    """The sums over all windows of side x side, by their upper left corner."""
    whole = np.pad(values, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    return np.asarray(whole[side:, side:] - whole[:-side, side:] - whole[side:, :-side] + whole[:-side, :-side])


def _lost(image: Image, row: int, column: int, side: int) -> Image:
    made = image.copy()
    made[row : row + side, column : column + side] = GREY
    return made
