"""Decision scores of a run of episodes: answers to distorted and undistorted pictures, in units of their spread.

A policy of another program has actions of its own size: half a metre, which trials are measured by, may be its whole
table. So differences are measured by the width in which the policy's own undistorted answers vary over the run
(`merton.decision.spread`), and the scores are known only when those answers are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.decision.spread import Spread, as_rows, likeness
from merton.episodes.design import Design
from merton.episodes.history import Past, recorded
from merton.errors import InputError, InvalidActionError
from merton.perception.distortion import TEMPORAL_FAULTS
from merton.world.action import ActionChunk

Rows = NDArray[np.float64]
NO_STEP = (
    "a fault of time changes nothing at step 0, and no later step was asked about (clean_every: n asks at each n-th)"
)
"""Why an episode under a fault of time has no decision score."""
PARTNERS = 10
"""The most other scenes that an answer is compared with for the floor, as in the report."""


@dataclass(frozen=True)
class Decision:
    """The decision scores of an episode, each 0..1.

    Attributes:
        total: of step 0, as a trial's; under a fault of time, which changes nothing there, the mean over the observed
            steps after it. None if they cannot be compared.
        mean: over all observed steps that count; None if none can be compared.
        steps: number of each observed step to its score.
        rows: the answers of step 0 to the undistorted and to the distorted pictures, in the units that are compared.
        step_s: time of a row [s] if they are rows of deltas (`ActionChunk`); None in the policy's own numbers.
        why: the reason why there is no score, in one clause; empty if there is one.
    """

    total: float | None = None
    mean: float | None = None
    steps: Mapping[int, float] = field(default_factory=dict)
    rows: tuple[Rows, Rows] | None = None
    step_s: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Scores:
    """All decision scores of a run.

    Attributes:
        decisions: number of each recorded episode to its scores.
        spreads: agent to the width that its scores are measured by.
        floors: agent to task to the mean score of the answer for another scene; only where there are two scenes.
    """

    decisions: Mapping[int, Decision]
    spreads: Mapping[str, Spread]
    floors: Mapping[str, Mapping[str, float]]


def score(design: Design, episodes: Iterable[Past]) -> Scores:
    """The scores of all recorded episodes; the same episodes have the same scores."""
    known = recorded(episodes)
    reader, step_s = _reader(design.convention)
    spreads: dict[str, Spread] = {}
    faults: dict[str, str] = {}
    for agent in sorted({past.agent for past in known}):
        try:
            spreads[agent] = _spread(design, [past for past in known if past.agent == agent], reader)
        except InputError as error:
            faults[agent] = str(error)
    decisions = {}
    for past in known:
        if past.agent in faults:
            decisions[past.number] = Decision(why=faults[past.agent])
        else:
            decisions[past.number] = _decision(past, spreads[past.agent], reader, step_s)
    return Scores(decisions, spreads, _floors(known, decisions, spreads))


Reader = Callable[[ArrayLike], Rows]


def _reader(convention: str) -> tuple[Reader, float | None]:
    """The rows that are compared of a policy's answer, and the time of a row if they are deltas."""
    if not convention:
        return as_rows, None
    from merton.decision.models.conventions import CONVENTIONS  # needs scipy

    known = CONVENTIONS[convention]
    return (lambda answer: known.chunk(answer).deltas), known.step_s


def _spread(design: Design, episodes: Sequence[Past], reader: Reader) -> Spread:
    if design.spread is not None:
        return Spread(np.array(design.spread, np.float64))
    answers = []
    for past in episodes:
        assert past.end is not None
        if past.condition.is_reference:
            answers += past.end.get("actions", ())
        else:
            answers += [clean for _, clean, _ in past.end.get("answers", ()) if clean is not None]
    if not answers:
        raise InputError("the run has no answer to undistorted pictures")
    return Spread.of([_read(reader, answer) for answer in answers])


def _read(reader: Reader, answer: ArrayLike) -> Rows:
    """Rows of an answer; an answer that the convention cannot read is wrong input."""
    try:
        return reader(answer)
    except InvalidActionError as error:
        raise InputError(str(error)) from None


def _decision(past: Past, spread: Spread, reader: Reader, step_s: float | None) -> Decision:
    assert past.end is not None
    if past.undistorted:
        return Decision(why=past.undistorted)
    of_time = past.condition.distortion in TEMPORAL_FAULTS
    steps: dict[int, float] = {}
    rows = None
    why = NO_STEP if of_time else "the policy was not asked about undistorted pictures"
    for step, clean, shown in past.end.get("answers", ()):
        if clean is None or shown is None:
            continue
        try:
            pair = _read(reader, clean), _read(reader, shown)
            value = likeness(*pair, spread)
        except InputError as error:
            why = str(error)
            continue
        rows = pair if step == 0 else rows
        if of_time and step == 0:
            continue
        if value is None:
            why = "the policy's undistorted answers do not vary"
        else:
            steps[int(step)] = value
    mean = math.fsum(steps.values()) / len(steps) if steps else None
    return Decision(mean if of_time else steps.get(0), mean, steps, rows, step_s, "" if steps else why)


def _floors(
    episodes: Sequence[Past], decisions: Mapping[int, Decision], spreads: Mapping[str, Spread]
) -> dict[str, dict[str, float]]:
    """The floor of each agent and task: the undistorted answer of step 0 against those of other scenes of the task."""
    rows: dict[tuple[str, str], dict[int, Rows]] = {}
    for past in episodes:
        found = decisions[past.number].rows
        if past.condition.is_reference and found is not None:
            rows.setdefault((past.agent, past.case.task), {})[past.case.seed] = found[0]
    floors: dict[str, dict[str, float]] = {}
    for (agent, task), by_scene in sorted(rows.items()):
        scenes = [by_scene[scene] for scene in sorted(by_scene)]
        values = []
        for shift in range(1, min(len(scenes), PARTNERS + 1)):
            for place, one in enumerate(scenes):
                value = likeness(one, scenes[(place + shift) % len(scenes)], spreads[agent])
                values += [] if value is None else [value]
        if values:
            floors.setdefault(agent, {})[task] = math.fsum(values) / len(values)
    return floors


def detail(decision: Decision, spread: Spread | None) -> dict[str, Any]:
    """The part `decision` of a trial.json.

    `total` is that of the record, and `mean` over all observed steps that count. The answers of step 0 stand in it as
    `rows`, and as `deltas`, too, where a convention says what they are: readers take chance floors from them.
    """
    found: dict[str, Any] = {
        "total": decision.total,
        "mean": decision.mean,
        "steps": {str(step): value for step, value in decision.steps.items()},
        "unit": "spread",
        "width": spread.width.tolist() if spread is not None else None,
    }
    if decision.why:
        found["why"] = decision.why
    for side, rows in zip(("reference", "distorted"), decision.rows or (), strict=False):
        found[side] = {"rows": rows.tolist()}
        if decision.step_s is not None:
            chunk = ActionChunk(rows, decision.step_s)
            found[side] |= {"deltas": rows.tolist(), "step_s": chunk.step_s, "frame": chunk.frame}
    return found
