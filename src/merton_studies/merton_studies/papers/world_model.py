"""The scale of the scoring criteria of world models as evaluators (GigaBrain Challenge 2026), against Merton's code.

The numbers of the page, in `config/published/world_model.csv`. Its table "examples" has the score of each of its
examples; it follows from what is seen by `merton_studies.people.protocols.episodes.suggested`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from merton.leaderboard.published.world_model import Annotation, Rules, evaluate, load_rules
from merton_studies.opinions.published import Claim
from merton_studies.papers.facts import Cells, Recomputed
from merton_studies.people.protocols.episodes import suggested

EXAMPLES: dict[str, tuple[bool, tuple[str, ...]]] = {
    "3 points": (True, ()),
    "2 points, A": (True, ("deformed",)),
    "2 points, B": (True, ("deformed", "implausible")),
    "1 point, A": (False, ()),
    "1 point, B": (False, ()),
    "0 points": (False, ("other_motion", "chaotic")),
}
"""Example of the page to whether the outcome is that of the reference, and to the defects it names."""
TIERS = (3, 2, 2, 1, 0, 0, 3)
"""Scores of a task's videos, for the formula."""
REAL = 10
"""Real videos of that task: three were not submitted."""


def recompute() -> Iterator[Recomputed]:
    """Every number of the rubric, from Merton's rules; the formula, by Merton's board of a small sheet."""
    rules = load_rules()
    for column, value in (
        ("lowest score", 0),
        ("highest score", rules.maximum),
        ("annotators of a team and task", rules.annotators),
        ("videos of an annotator, at most", rules.videos_per_annotator),
        ("tasks", len(rules.tasks)),
    ):
        yield Recomputed(("scale", "rubric", column), float(value), "config/leaderboards/world_model.yaml")
    for score in (3, 2, 1):
        yield Recomputed(
            ("scale", "task score", f"weight of a video scored {score}"),
            _task(rules, [score], 1), "Merton's board of one video with that score",
        )  # fmt: skip
    for name, (outcome, defects) in EXAMPLES.items():
        score = suggested(outcome, defects)
        how = f"{'same' if outcome else 'another'} outcome, {', '.join(defects) or 'no defect'}"
        yield Recomputed(("examples", name, "score"), float(score), how.replace("_", " "))
    shown = _task(rules, TIERS, REAL)
    yield Recomputed(
        ("scale", "task score", "of seven of ten videos scored 3 2 2 1 0 0 3"), shown,
        "Merton's board; three videos were not submitted and count in the denominator",
    )  # fmt: skip
    yield Recomputed(
        ("scale", "final score", "with that task and seven full ones"),
        _final(rules, TIERS, REAL), "Merton's board: the mean of the eight tasks",
    )  # fmt: skip


def claims(cells: Cells) -> tuple[Claim, ...]:
    """The formulas, in exact fractions, against Merton's board."""
    rules = load_rules()
    weights = {score: cells["scale", "task score", f"weight of a video scored {score}"] for score in (3, 2, 1)}
    printed = sum(Fraction(weights.get(score, 0)) for score in TIERS) / REAL
    full = (printed + 3 * (len(rules.tasks) - 1)) / len(rules.tasks)
    task, final = _task(rules, TIERS, REAL), _final(rules, TIERS, REAL)
    same = abs(task - float(printed)) < 1e-12 and abs(final - float(full)) < 1e-12
    return (
        Claim(
            "Task score (3 N3 + 2 N2 + N1) / N, final score the mean of the tasks",
            f"seven of ten videos scored {' '.join(map(str, TIERS))}: {printed} = {float(printed):.4f} and {full}; "
            f"Merton's board gives {task:.4f} and {final:.4f}",
            "holds" if same else "does not hold",
        ),
    )


def _sheet(rules: Rules, task: str, scores: Sequence[int]) -> list[Annotation]:
    """Each annotator scores every video alike."""
    return [
        Annotation("team", task, f"video {place}", f"annotator {person}", score)
        for person in range(rules.annotators)
        for place, score in enumerate(scores)
    ]


def _board(rules: Rules, scores: Sequence[int], real: int) -> tuple[float, float]:
    """The first task's score and the final one; the other tasks have one video each, scored 3."""
    sheet = _sheet(rules, rules.tasks[0], scores)
    for task in rules.tasks[1:]:
        sheet += _sheet(rules, task, [rules.maximum])
    counts = {task: real if task == rules.tasks[0] else 1 for task in rules.tasks}
    row = evaluate(sheet, counts, rules).board.rows[0]
    task_score, total = row.cells[0].score, row.total.score
    assert task_score is not None
    assert total is not None
    return task_score, total


def _task(rules: Rules, scores: Sequence[int], real: int) -> float:
    return _board(rules, scores, real)[0]


def _final(rules: Rules, scores: Sequence[int], real: int) -> float:
    return _board(rules, scores, real)[1]
