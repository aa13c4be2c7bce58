"""The power of an experiment: the scenes that resolve a drop, or a difference of two agents on common scenes.

The estimate of one scene scatters with a variance that follows from `study.variance.PairedComponents`, for v distorted
trials of an agent in it (`scatter_of`):

    two agents, distorted trials     2 (agent x scene + residual / v)
    difference of two agents' drops  2 (agent x scene + residual / v + undistorted agent x scene - 2 covariance)
    drop of one agent                half of that, and the scene's own variances less twice their covariance

There is one undistorted trial a scene and task, however many distortions and levels: it does not average out. The
scene's own difficulty, the distortions' and the levels' cancel between agents.

A difference is resolved if its interval (`statistics.paired.paired_interval`) excludes 0. Its power is that of the
paired t test by noncentral t (Cohen 1988), whose limit is stretched by the part of that interval that allows for scenes
which were not met: of few scenes it is much wider than Student's. `tools/studies/plan_power.py` compares it with
simulated runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from scipy.optimize import brentq
from scipy.special import chdtri, nctdtr, stdtrit

from merton.errors import InputError
from merton.results.records import TestCase
from merton.statistics.means import wilson
from merton.statistics.paired import UNMET_GAIN
from merton.study.variance import PairedComponents

ALPHA = 0.05
"""Two-sided."""
WANTED = 0.8
MOST_SCENES = 100_000
STEPS = 8
"""Between the least and the largest variances of a range."""


class Quantity(str, Enum):
    """A quantity that an experiment estimates; the text is its name on the terminal."""

    DIFFERENCE = "Difference of two agents, distorted trials"
    DROP = "Drop of one agent, undistorted less distorted"
    DROP_DIFFERENCE = "Difference of two agents' drops"


MOST: Mapping[Quantity, float] = {
    Quantity.DIFFERENCE: 0.5,
    Quantity.DROP: 0.5,
    Quantity.DROP_DIFFERENCE: 1.0,
}
"""The variance in one scene of two, or of four, independent means of values that are 0 or 1 equally often."""

ASSUMED: Mapping[str, PairedComponents] = {
    "success": PairedComponents(0.016, 0.105, 0.020, 0.045, 0.038, 0.0, 0.028),
    "progress": PairedComponents(0.008, 0.094, 0.012, 0.045, 0.038, 0.0, 0.021),
    "decision": PairedComponents(0.0001, 0.0046, 0.0001),
}
"""By value, where no record is given: of the five learned policies of the execution study, in 2,100 distorted trials in
six varied scenes (`execution_study_full.yaml`): seven verbs, all 30 types, one level for each scene and type, cameras
with the errors of a D455. Residuals there include what agents share in a case. Undistorted, of their 70 trials, one for
each scene and verb; of the covariances, three of the five policies show all of a scene's and nothing of an agent's."""
ASSUMED_RANGE = (1.0 / 3.0, 3.0)
"""The factors of assumed variances between which those of another experiment are looked for. Ours: within them lie
agents that differ three times as much from scene to scene, and agents near the floor or the ceiling."""


@dataclass(frozen=True)
class ExperimentSize:
    """The size of an experiment.

    Attributes:
        agents, trials: how many in all.
        scenes: those that are distorted.
        other_scenes: those that are seen undistorted only.
        views: distorted trials of an agent in each of `scenes`, on average.
        references: undistorted trials of an agent in each of `scenes`, on average: one for each of its tasks.
        other_trials: undistorted trials of an agent in `other_scenes`.
    """

    agents: int
    trials: int
    scenes: int
    other_scenes: int
    views: float
    references: float
    other_trials: int

    @classmethod
    def of(cls, cases: Sequence[TestCase], agents: int) -> ExperimentSize:
        """The design in which every agent meets these cases.

        Raises:
            InputError: no case is distorted.
        """
        distorted = [case.scene for case in cases if not case.is_reference]
        if not distorted:
            raise InputError("the experiment distorts nothing: name a distortion and a level above 0 to plan it")
        scenes = set(distorted)
        references = [case.scene in scenes for case in cases if case.is_reference]
        return cls(
            agents,
            agents * len(cases),
            len(scenes),
            len({case.scene for case in cases} - scenes),
            len(distorted) / len(scenes),
            sum(references) / len(scenes),
            references.count(False),
        )

    def trials_with(self, scenes: int) -> int:
        """All trials, references too, with another number of distorted scenes."""
        return self.agents * (round(scenes * (self.views + self.references)) + self.other_trials)


@dataclass(frozen=True)
class SceneScatter:
    """The variances of an estimate of a quantity of which each trial tells a value in -1..1, or in -2..2.

    Attributes:
        scene: of the mean of a scene's trials.
        trial: of a single trial in a scene of its own.
        other_way: the share of its trials that a scene which was not met may change the other way.
    """

    scene: float
    trial: float
    other_way: float = 1.0

    def around(self, factors: tuple[float, float], quantity: Quantity) -> list[SceneScatter]:
        """Others between these multiples; power need not fall from one to the next, for few scenes with little scatter
        leave room for scenes that were not met."""
        low, high = map(math.log, factors)
        return [self.times(math.exp(low + (high - low) * step / STEPS), quantity) for step in range(STEPS + 1)]

    def times(self, factor: float, quantity: Quantity) -> SceneScatter:
        """Both so many times as large, at most what `MOST` allows but no less than they are."""
        scene, trial = (
            max(min(own * factor, MOST[quantity]), min(own, own * factor)) for own in (self.scene, self.trial)
        )
        return replace(self, scene=scene, trial=trial)


@dataclass(frozen=True)
class Forecast:
    """The forecast of a design for one quantity of one value.

    Attributes:
        seen: power for the difference asked for in the design's scenes, 0..1.
        resolvable: the smallest difference that these scenes resolve; None if they resolve none.
        needed: scenes that resolve the difference asked for; None if `MOST_SCENES` do not.
    """

    seen: float
    resolvable: float | None
    needed: int | None


def forecast(scenes: int, scatter: SceneScatter, difference: float, wanted: float = WANTED) -> Forecast:
    """The power of a design, and the differences and scenes at a power of `wanted`; arguments as of `power`."""
    return Forecast(
        power(difference, scenes, scatter),
        resolvable(scenes, scatter, wanted),
        scenes_needed(difference, scatter, wanted),
    )


def scatter_of(quantity: Quantity, parts: PairedComponents, views: float) -> SceneScatter | None:
    """The scatter of a quantity; None for a drop of a value that only distorted trials have.

    Args:
        parts: of the value.
        views: distorted trials of an agent in each scene.
    """
    scene, trial = (_variance(quantity, parts, number) for number in (views, 1.0))
    other_way = UNMET_GAIN if quantity is Quantity.DROP else 1.0
    return None if scene is None or trial is None else SceneScatter(scene, trial, other_way)


def _variance(quantity: Quantity, parts: PairedComponents, views: float) -> float | None:
    own = parts.agent_scene + parts.residual / views
    if quantity is Quantity.DIFFERENCE:
        return 2.0 * own
    if parts.undistorted_agent_scene is None:
        return None
    dropped = own + parts.undistorted_agent_scene - 2.0 * parts.agent_scene_covariance
    dropped = max(dropped, parts.residual / views)  # a large covariance may be chance
    if quantity is Quantity.DROP_DIFFERENCE:
        return 2.0 * dropped
    return dropped + max(parts.scene + parts.undistorted_scene - 2.0 * parts.scene_covariance, 0.0)


def estimate_range(scenes: int, agents: int) -> tuple[float, float]:
    """The least and largest factor of variances that so many scenes and agents of a run allow, at least two of each.

    They are the ends of the 95 % interval of a variance of normal values with (scenes - 1) (agents - 1) degrees of
    freedom, over its estimate.
    """
    freedom = (scenes - 1) * (agents - 1)
    low, high = (freedom / float(chdtri(freedom, upper)) for upper in (0.025, 0.975))
    return low, high


def power(difference: float, scenes: int, scatter: SceneScatter) -> float:
    """The chance that a difference which is there comes out as different from 0.

    Args:
        difference: of the means of a value in 0..1, or a drop, or a difference of drops.
        scenes: all met by both.
        scatter: of its estimate (`scatter_of`).
    """
    if scenes < 2:
        return 0.0
    size, deviation = abs(difference), math.sqrt(scatter.scene / scenes)
    unmet = _unmet(size, scenes, scatter)
    if deviation == 0.0:
        return 1.0 if size > unmet else 0.0
    freedom, shift = scenes - 1, size / deviation
    limit = math.hypot(float(stdtrit(freedom, 1.0 - ALPHA / 2.0)), unmet / deviation)
    below, far_below = (float(nctdtr(freedom, shift, end)) for end in (limit, -limit))
    # far out, where it is 0 or 1, scipy's function is NaN
    return 1.0 - (float(shift < limit) if math.isnan(below) else below) + (0.0 if math.isnan(far_below) else far_below)


def _unmet(difference: float, scenes: int, scatter: SceneScatter) -> float:
    """The half-width that `paired_interval` adds for scenes that were not met: they may change the other way.

    It is what is allowed less what is expected: of trials that change by 1 or not at all, the share that goes the other
    way follows from their variance. Ours: a trial changes by four standard deviations at most, which is careful for
    values that are not 0 or 1.
    """
    square = scatter.trial + difference**2
    other_way = max(square - difference, 0.0) / 2.0
    most = min(4.0 * math.sqrt(square), 1.0) * scatter.other_way
    return max(most * wilson(0.0, scenes).high - other_way, 0.0)


def scenes_needed(difference: float, scatter: SceneScatter, wanted: float = WANTED) -> int | None:
    """The fewest scenes that resolve a difference with that power; None if `MOST_SCENES` do not."""
    low, high = 2, MOST_SCENES
    if power(difference, high, scatter) < wanted:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(difference, middle, scatter) >= wanted else (middle + 1, high)
    return low


def resolvable(scenes: int, scatter: SceneScatter, wanted: float = WANTED) -> float | None:
    """The smallest difference that so many scenes resolve with that power; None if they resolve none below 1."""
    if power(1.0, scenes, scatter) < wanted:
        return None
    return float(brentq(lambda difference: power(difference, scenes, scatter) - wanted, 0.0, 1.0, xtol=1e-6))
