"""The power of a comparison of two agents on common scenes: how many scenes resolve how large a difference.

The difference of two agents in one scene, over the same `views` (distortions and levels), scatters with variance

    2 (agent x scene + residual / views)

because the scene's own difficulty, the distortions' and the levels' cancel. The two differ if the interval of
`study.pairs` excludes 0; its power is that of the paired t test by noncentral t (Cohen 1988). Simulated with trials
that succeed or fail, it is within 3 points for 6 and more views a scene, and up to 6 too high for one in 30 scenes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy.optimize import brentq
from scipy.special import nctdtr, stdtrit

from merton.errors import InputError
from merton.results.records import TestCase
from merton.study.variance import Components

ALPHA = 0.05
"""Two-sided."""
WANTED = 0.8
MOST_SCENES = 100_000

ASSUMED: Mapping[str, Components] = {
    "success": Components(0.0, 0.020, 0.016, 0.028, 0.008, 0.105),
    "progress": Components(0.0, 0.012, 0.008, 0.024, 0.007, 0.094),
    "decision": Components(0.0001, 0.0001, 0.0001, 0.0015, 0.0002, 0.0046),
}
"""By value, where no record is given: of the five learned policies of the execution study, in 2,100 distorted trials in
six varied scenes: seven verbs, all 30 types, one level for each scene and type, cameras with the errors of a D455."""


@dataclass(frozen=True)
class ExperimentSize:
    """The size of an experiment.

    Attributes:
        agents, trials: how many in all.
        scenes: those that are distorted.
        other_scenes: those that are seen undistorted only.
        views: distorted trials of an agent in each of `scenes`.
    """

    agents: int
    trials: int
    scenes: int
    other_scenes: int
    views: int

    @classmethod
    def of(cls, cases: Sequence[TestCase], agents: int) -> ExperimentSize:
        """The design in which every agent meets these cases.

        Raises:
            InputError: no case is distorted.
        """
        distorted = [case.scene for case in cases if not case.is_reference]
        if not distorted:
            raise InputError("the experiment distorts nothing: name a distortion and a level above 0 to plan it")
        scenes, every = len(set(distorted)), len({case.scene for case in cases})
        return cls(agents, agents * len(cases), scenes, every - scenes, round(len(distorted) / scenes))

    def trials_with(self, scenes: int) -> int:
        """All trials, references too, with another number of distorted scenes."""
        return self.agents * (scenes * (self.views + 1) + self.other_scenes)


@dataclass(frozen=True)
class Forecast:
    """The forecast of a design for one value.

    Attributes:
        resolvable: the smallest difference that its scenes resolve; None if they resolve none.
        needed: scenes that resolve the difference asked for; None if `MOST_SCENES` do not.
    """

    parts: Components
    resolvable: float | None
    needed: int | None


def forecast(design: ExperimentSize, parts: Components, difference: float, wanted: float = WANTED) -> Forecast:
    """The differences and scenes of a design at a power of `wanted`."""
    return Forecast(
        parts,
        resolvable(design.scenes, parts, design.views, wanted),
        scenes_needed(difference, parts, design.views, wanted),
    )


def power(difference: float, scenes: int, parts: Components, views: int) -> float:
    """The chance that two agents whose means differ by so much come out as different.

    Args:
        difference: of the means of a value in 0..1.
        scenes: that both meet.
        parts: variance components of the value.
        views: trials of an agent in each scene.
    """
    if scenes < 2:
        return 0.0
    deviation = math.sqrt(2.0 * (parts.agent_scene + parts.residual / views))
    if deviation == 0.0:
        return 1.0 if difference else 0.0
    freedom, shift = scenes - 1, abs(difference) * math.sqrt(scenes) / deviation
    limit = float(stdtrit(freedom, 1.0 - ALPHA / 2.0))
    below, far_below = (float(nctdtr(freedom, shift, end)) for end in (limit, -limit))
    # far out, where it is 0, scipy's function is NaN
    return 1.0 - (0.0 if math.isnan(below) else below) + (0.0 if math.isnan(far_below) else far_below)


def scenes_needed(difference: float, parts: Components, views: int, wanted: float = WANTED) -> int | None:
    """The fewest scenes that resolve a difference with that power; None if `MOST_SCENES` do not."""
    low, high = 2, MOST_SCENES
    if power(difference, high, parts, views) < wanted:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(difference, middle, parts, views) >= wanted else (middle + 1, high)
    return low


def resolvable(scenes: int, parts: Components, views: int, wanted: float = WANTED) -> float | None:
    """The smallest difference that so many scenes resolve with that power; None if they resolve none below 1."""
    if power(1.0, scenes, parts, views) < wanted:
        return None
    return float(brentq(lambda difference: power(difference, scenes, parts, views) - wanted, 0.0, 1.0, xtol=1e-6))
