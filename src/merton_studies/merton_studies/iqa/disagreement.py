"""A policy's disagreement with itself: how far its decision moves when the image changes by less than a person sees.

Ours, because Embodied-IQA has no such measure: a decision that rests on what is in the picture survives a shift of two
pixels and a slightly different exposure; one that rests on noise does not. It costs three further decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from merton.decision.score import end_motions
from merton.errors import InvalidActionError
from merton.world.action import ActionChunk
from merton.world.observation import CameraView

SHIFT_PX = 2
BRIGHTER = 1.04
UNDECIDED_M, UNDECIDED_RAD = 1.0, math.pi
"""The disagreement of a policy that has no decision on one of the images. Ours: as far as an arm reaches."""

Views = Mapping[str, CameraView]


@dataclass(frozen=True)
class Disagreement:
    """The spread of the ends of a policy's chunks.

    Attributes:
        position_m: root mean square distance of the ends from their mean [m].
        rotation_rad: the largest angle between two of the total rotations [rad], 0..pi.
    """

    position_m: float
    rotation_rad: float


def jittered(views: Views) -> tuple[Views, Views, Views]:
    """The views shifted to the right, shifted down, and brighter, all cameras alike.

    A shifted view says so in its principal point, so that a policy that uses it finds everything where it was.
    """
    return (
        {name: _shifted(view, SHIFT_PX, 0) for name, view in views.items()},
        {name: _shifted(view, 0, SHIFT_PX) for name, view in views.items()},
        {name: _brighter(view) for name, view in views.items()},
    )


def disagreement(decide: Callable[[Views], ActionChunk], views: Views) -> Disagreement:
    """The spread of the decisions on the views and on their three jittered copies.

    Args:
        decide: the policy's chunk for views; may raise InvalidActionError.
        views: of the cameras that the policy looks at.
    """
    try:
        return spread([decide(shown) for shown in (views, *jittered(views))])
    except InvalidActionError:
        return Disagreement(UNDECIDED_M, UNDECIDED_RAD)


def spread(chunks: Sequence[ActionChunk]) -> Disagreement:
    """The spread of the ends of chunks in one frame; at least one."""
    from scipy.spatial.transform import Rotation

    points, turns = end_motions(chunks)
    offsets = points - points.mean(axis=0)
    rotations = Rotation.from_rotvec(turns)
    angles = [float((rotations[one].inv() * rotations).magnitude().max()) for one in range(len(chunks))]
    return Disagreement(float(np.sqrt((offsets**2).sum(axis=1).mean())), max(angles))


def _shifted(view: CameraView, right_px: int, down_px: int) -> CameraView:
    """The picture moved, its edge repeated; depth moves with it."""
    height, width = view.color.shape[:2]
    rows = np.clip(np.arange(height) - down_px, 0, height - 1)[:, None]
    columns = np.clip(np.arange(width) - right_px, 0, width - 1)[None, :]
    seen = view.lens
    return replace(
        view,
        color=view.color[rows, columns],
        depth_m=None if view.depth_m is None else view.depth_m[rows, columns],
        intrinsics=replace(seen, cx=seen.cx + right_px, cy=seen.cy + down_px),
    )


def _brighter(view: CameraView) -> CameraView:
    return replace(view, color=np.clip(np.rint(view.color * BRIGHTER), 0, 255).astype(np.uint8))
