"""Chance floors: every fidelity score beside the score of the output for another image.

An answer is scored against the same model's answer to the undistorted image. Answers to a task resemble each other for
any image, and a model that ignores the image always agrees with itself. So the floor of a score is the score of the
model's reference output for one scene against its reference output for another scene of the same task. Only
(score - floor) / (1 - floor) can be compared between models.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from merton.cognition.score import score_batch as cognition_scores
from merton.cognition.slots import slots_batch
from merton.cognition.text import Cider, words
from merton.decision.score import score_batch as decision_scores
from merton.leaderboard.snapshot.contents import AgentRow, Snapshot
from merton.results.decisions import inert_dimensions
from merton.statistics.means import mean
from merton.study.outputs import BESIDE, DIMENSIONS, Output, references, scene_pairs
from merton.world.action import ActionChunk

_NO_ROOM = 1e-9  # between a floor and the maximum: equal outputs score 1 but for rounding

Scores = Mapping[str, float]


@dataclass(frozen=True)
class Floor:
    """A stage's mean score of an agent on distorted trials, beside its floor.

    Attributes:
        raw: the score; 0..1, execution 0..100.
        floor: the score of chance, on the same scale; None if the run has no two scenes of one task to compare.
        normalised: (raw - floor) / (maximum - floor): 0 is chance, 1 perfect, less than 0 worse than chance; None for
            `is_blind` and `repeats`, where the score would be the maximum whatever the image.
        repeats: the model gives one output to different images: a VLM the same words, a policy the same first motion.
            It may look nevertheless, as a policy that first only goes near and decides later.
        dimensions: the floors of the three dimensions and of the slots beside cognition, 0..1; empty without a floor.
            The own spread beside decision has none: 0 is as far as another scene's decision.
        inert: of the decision, dimensions of `merton.world.action.DIMENSION_NAMES` that have one value whatever the
            image, and so always add full similarity; empty for `repeats`, where that holds for all.
        is_blind: of the decision, the agent looks at nothing (`study.blindness`).
    """

    raw: float | None
    floor: float | None
    normalised: float | None
    repeats: bool
    dimensions: Scores
    inert: tuple[str, ...] = ()
    is_blind: bool = False


def floors(outputs: Sequence[Output], board: Snapshot, blind: Collection[str] = ()) -> dict[str, dict[str, Floor]]:
    """Agent to stage ("cognition", "decision", "execution") to its floor; execution's is that of doing nothing.

    Args:
        outputs: of the run's trials.
        board: of the same trials.
        blind: ids of the agents that look at nothing (`blindness.blind_agents`).
    """
    corpora = _corpora(outputs)
    result = {}
    for row in board.agents:
        mine = [output for output in outputs if output.agent == row.id]
        by_task = references(mine, row.id)
        cider = corpora.get(mine[0].models["cognition"]) if mine else None
        decision = _floor("decision", row, _chance(by_task, _of_chunks), _moves_alike(mine))
        inert = inert_dimensions((output.case, output.chunks) for output in mine if output.chunks)
        result[row.id] = {
            "cognition": _floor("cognition", row, _chance(by_task, partial(_of_answers, cider=cider)), _repeats(mine)),
            "decision": replace(
                decision,
                inert=() if decision.repeats else inert,
                is_blind=row.id in blind,
                normalised=None if row.id in blind else decision.normalised,
            ),
            "execution": Floor(row.execution_distorted, board.chance_floor, row.execution_above_floor, False, {}),
        }
    return result


def of_episodes(facts: Mapping[str, Any], board: Snapshot) -> dict[str, dict[str, Floor]]:
    """Agent to the floor of its decisions, of a run of episodes: only its run.json says in which units it is measured.

    Args:
        facts: run.json, which is not trusted: `decision`, agent to `floors`, task to the mean likeness of the agent's
            undistorted answers for two scenes, in units of its own spread.
        board: of the run's trials.
    """
    result = {}
    for row in board.agents:
        about: Any = facts.get("decision")
        for key in (row.id, "floors"):
            about = about.get(key) if isinstance(about, Mapping) else None
        values = about.values() if isinstance(about, Mapping) else ()
        total = mean(float(value) for value in values if isinstance(value, int | float) and 0.0 <= value <= 1.0)
        if row.decision is not None:
            result[row.id] = {"decision": _floor("decision", row, {} if total is None else {"decision": total}, False)}
    return result


def _corpora(outputs: Sequence[Output]) -> dict[str, Cider]:
    """The corpus of each VLM, as in the scores of the run: its reference answers, one for each scene and task."""
    answers: dict[str, dict[str, str]] = {}
    for output in outputs:
        if output.case.is_reference and output.answers:
            answers.setdefault(output.models["cognition"], {}).setdefault(output.case.id, output.answers[0])
    return {model: Cider(found.values()) for model, found in answers.items() if len(found) >= 2}


def _chance(
    by_task: Mapping[str, Sequence[Output]], score: Callable[[list[tuple[Output, Output]]], dict[str, list[float]]]
) -> dict[str, float]:
    """Mean over tasks of the mean over pairs of scenes, by dimension; empty if no task has two scenes."""
    tasks = []
    for scenes in by_task.values():
        means = {name: mean(values) for name, values in score(scene_pairs(scenes)).items()}
        tasks.append({name: value for name, value in means.items() if value is not None})
    names = dict.fromkeys(name for task in tasks for name in task)
    return {name: float(np.mean([task[name] for task in tasks if name in task])) for name in names}


def _of_answers(pairs: list[tuple[Output, Output]], cider: Cider | None) -> dict[str, list[float]]:
    answers = [(one.answers[0], other.answers[0]) for one, other in pairs if one.answers and other.answers]
    ones, others = [one for one, _ in answers], [other for _, other in answers]
    scores = cognition_scores(ones, others, cider)
    values = {
        "cognition": scores.total,
        "bleu": scores.bleu,
        "rouge_l": scores.rouge_l,
        "cider": scores.cider / 10.0,
        "slots": slots_batch(ones, others),
    }
    return {name: found[~np.isnan(found)].tolist() for name, found in values.items()}


def _of_chunks(pairs: list[tuple[Output, Output]]) -> dict[str, list[float]]:
    decided = [(one.chunks[0], other.chunks[0]) for one, other in pairs if one.chunks and other.chunks]
    decided = [(one, other) for one, other in decided if one.frame == other.frame]
    scores = decision_scores([one for one, _ in decided], [other for _, other in decided])
    values = {"decision": scores.total} | {name: getattr(scores, name) for name in DIMENSIONS["decision"]}
    return {name: found[~np.isnan(found)].tolist() for name, found in values.items()}  # parts are the UR5 cell's


def _floor(stage: str, row: AgentRow, chance: Scores, repeats: bool) -> Floor:
    raw, total = getattr(row, stage), chance.get(stage)
    is_same = repeats or (total is not None and total >= 1.0 - _NO_ROOM)
    normalised = None if raw is None or total is None or is_same else (raw - total) / (1.0 - total)
    names = (*DIMENSIONS[stage], BESIDE[stage])
    return Floor(raw, total, normalised, is_same, {name: chance[name] for name in names if name in chance})


def _repeats(outputs: Sequence[Output]) -> bool:
    """Whether all answers, to two scenes or tasks at least, are the same words."""
    by_case = [(output.case.reference, output.answers) for output in outputs if output.answers]
    distinct = {tuple(words(answer)) for _, answers in by_case for answer in answers}
    return len({case for case, _ in by_case}) >= 2 and len(distinct) == 1


def _moves_alike(outputs: Sequence[Output]) -> bool:
    """Whether all first chunks, for two scenes or tasks at least, are one and the same motion."""
    chunks = _decided(outputs)
    if len({chunk.frame for chunk in chunks}) != 1:
        return False
    return bool(decision_scores(chunks[:1] * len(chunks), chunks).total.min() >= 1.0 - _NO_ROOM)


def _decided(outputs: Sequence[Output]) -> list[ActionChunk]:
    """All first chunks; none if they are of fewer than two scenes or tasks."""
    decided = [(output.case.reference, output.chunks) for output in outputs if output.chunks]
    return [chunk for _, both in decided for chunk in both] if len({case for case, _ in decided}) >= 2 else []
