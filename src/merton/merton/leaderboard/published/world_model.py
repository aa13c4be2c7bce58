"""The board of world models as evaluators (rubric of the GigaBrain Challenge 2026, world model track).

Annotators compare a generated video with the real robot's and score it 0..3. With N_k the videos of a team and task
scored k and N the number of the task's real videos:

    task = (3 N_3 + 2 N_2 + N_1) / N          final = mean of the tasks, eight in the challenge

Our decisions where the rubric is open (docs/studies/published_rules.md gives the reasons): a video that several
annotators scored counts once, with their mean; a video without a score counts 0, unless it is known to be submitted; a
task with such a video, or with fewer than three annotators, is missing. The table of real videos names the tasks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from merton.config import Model, load
from merton.errors import InputError, UnknownNameError
from merton.files import resource
from merton.leaderboard.board import Board, BoardCell, BoardRow, missing_cell, ranked, share_cell, total_cell
from merton.results.tables import name_in, number_in, read_rows
from merton.results.text import counted
from merton.statistics.raters import PooledKappa, pooled_kappa

COLUMNS = ("team", "task", "video", "annotator", "score")
COUNT_COLUMNS = ("task", "videos")
MAX_VIDEOS = 10_000
"""A larger number of real videos of a task is refused as a slip."""


class Outcomes(Model):
    """Words for an end as in the reference, and for another."""

    same: str
    other: str


class Words(Model):
    """The rubric and the words of the annotator's form in one language.

    Attributes:
        name: of the language, in it.
        scores: the meaning of each score, from 0 up.
        examples: one of each score.
        for_example: sentence around an example, {} in its place.
        outcome, outcomes: the question how it ends, and its answers.
        wrong, defects: the question after defects, and each defect by its name in an answer.
        score, reference, video: headings of the score and of the two videos.
        suggested, open: sentences with the suggested score, {} in its place, and before there is one.
    """

    name: str
    scores: Annotated[tuple[str, ...], Field(min_length=2)]
    examples: tuple[str, ...]
    for_example: str
    outcome: str
    outcomes: Outcomes
    wrong: str
    defects: dict[str, str]
    score: str
    reference: str
    video: str
    suggested: str
    open: str


class Rules(Model):
    """The rubric's numbers, and its words in each language by code (BCP 47), the first of which is shown at first.

    `tasks` are the challenge's; a host's own are those of the table of real videos.
    """

    tasks: tuple[str, ...]
    annotators: Annotated[int, Field(ge=1)]
    videos_per_annotator: Annotated[int, Field(ge=1)]
    languages: Annotated[dict[str, Words], Field(min_length=1)]

    @property
    def scores(self) -> tuple[str, ...]:
        """The meaning of each score in the first language, from 0 up."""
        return next(iter(self.languages.values())).scores

    @property
    def maximum(self) -> int:
        """The highest score."""
        return len(self.scores) - 1

    @property
    def most_scores(self) -> int:
        """The most scores of a team and task: as many annotators with as many videos each."""
        return self.annotators * self.videos_per_annotator


@dataclass(frozen=True, slots=True)
class Annotation:
    """The score of one annotator for one video of a team; `where`: place in a file, for error messages."""

    team: str
    task: str
    video: str
    annotator: str
    score: int
    where: str = field(default="the annotations", compare=False)


@dataclass(frozen=True)
class Evaluation:
    """The board, and the agreement of the annotators: weighted kappa over all videos that two of them scored."""

    board: Board
    agreement: PooledKappa

    @property
    def board_with_agreement(self) -> Board:
        """The board with a sentence on the annotators' agreement at the end of its note."""
        kappa = self.agreement.kappa
        text = "How far the annotators agree is unknown: no two of them scored the same videos, or no score varies."
        if kappa.value is not None:
            text = f"Annotators agree with a weighted kappa of {kappa.shown}, {kappa.n} videos."
        return replace(self.board, note=f"{self.board.note} {text}")


def load_rules() -> Rules:
    """The rubric in config/leaderboards/world_model.yaml."""
    return load(resource("merton_bringup", "config/leaderboards/world_model.yaml"), Rules)


def read_sheet(path: Path, rules: Rules) -> list[Annotation]:
    """The annotations in a table with the columns `COLUMNS`; see `merton.results.tables.read_rows`.

    Raises:
        InputError: as for `read_rows`; also an empty or overlong name, or a score that the rubric does not have.
    """
    sheet = []
    for where, row in read_rows(path, COLUMNS):
        team, task, video, annotator = (name_in(where, row, column) for column in COLUMNS[:4])
        score = number_in(where, row, "score", 0, rules.maximum)
        if score != int(score):
            raise InputError(f"{where}: score is {score:g}; choose one of: {_choices(rules)}")
        sheet.append(Annotation(team, task, video, annotator, int(score), where))
    if not sheet:
        raise InputError(f"{path}: has no annotations; every line must have: {', '.join(COLUMNS)}")
    return sheet


def read_ground_truth(path: Path) -> dict[str, int]:
    """The number of real videos of each task, from a table with the columns `COUNT_COLUMNS`.

    Raises:
        InputError: as for `read_rows`; also a task that is named twice, or a count that is not a whole number
            from 1 up.
    """
    counts: dict[str, int] = {}
    for where, row in read_rows(path, COUNT_COLUMNS):
        task = name_in(where, row, "task")
        videos = number_in(where, row, "videos", 1, MAX_VIDEOS)
        if videos != int(videos):
            raise InputError(f"{where}: videos is {videos:g}; it must be a whole number")
        if task in counts:
            raise InputError(f"{where}: the task {task!r} stands twice; leave one")
        counts[task] = int(videos)
    return counts


def evaluate(
    annotations: Iterable[Annotation],
    ground_truth: Mapping[str, int],
    rules: Rules,
    submitted: Mapping[tuple[str, str], int] | None = None,
) -> Evaluation:
    """The board of all teams; the order of the annotations plays no part.

    Args:
        ground_truth: task to the number of its real videos: the tasks of the board, in their order.
        submitted: (team, task) to the number of videos that the team submitted, where it is known; a task of which one
            has no score is missing. Without it a video that has no score counts as not submitted.

    Raises:
        InputError: no task, or one without a count, a score beyond the rubric, a video an annotator scored twice, more
            annotators than three for a team and task, more videos than ten of one of them, or more than there are real
            ones; with the place and the choices.
    """
    annotations, submitted, tasks = list(annotations), submitted or {}, tuple(ground_truth)
    _check_counts(ground_truth)
    marks = _grouped(annotations, ground_truth, rules)
    teams = sorted({team for team, _ in (*marks, *submitted)})
    rows, warnings = [], []
    if len(tasks) != len(rules.tasks):
        warnings.append(f"The board has {counted(len(tasks), 'task')}, the challenge {len(rules.tasks)}")
    for team in teams:
        cells = {}
        for task in tasks:
            videos = marks.get((team, task), {})
            cells[task] = _cell(videos, ground_truth[task], rules, submitted.get((team, task), 0))
            unscored = ground_truth[task] - len(videos)
            if cells[task].score is not None and unscored:
                warnings.append(f"{team}, {task}: {unscored} of {ground_truth[task]} videos have no score and count 0")
        rows.append(BoardRow(team, None, total_cell(cells, rules.maximum), tuple(cells.values())))
    board = Board(
        "world-model",
        "World models as evaluators",
        f"A task is the sum of its videos' scores, 0 to {rules.maximum}, over the number of real videos; the total is "
        f"the mean of the tasks ({len(tasks)}).",
        tasks,
        ranked(rows),
        float(rules.maximum),
        tuple(warnings),
    )
    return Evaluation(board, pooled_kappa({(a.annotator, (a.team, a.task, a.video)): a.score for a in annotations}))


Marks = dict[tuple[str, str], dict[str, dict[str, int]]]
"""(team, task) to video to annotator to score."""


def _cell(videos: Mapping[str, Mapping[str, int]], n: int, rules: Rules, submitted: int) -> BoardCell:
    """A task's score: every video counts with the mean of its scores, those without one count 0; n real videos."""
    if len(videos) < submitted:
        return missing_cell(f"{len(videos)} of {submitted} submitted videos scored", len(videos))
    annotators = {annotator for scores in videos.values() for annotator in scores}
    if len(annotators) < rules.annotators:
        reason = f"{len(annotators)} of {rules.annotators} annotators" if annotators else "no annotations"
        return missing_cell(reason, len(videos))
    points = sorted(sum(scores.values()) / (len(scores) * rules.maximum) for scores in videos.values())
    return share_cell([0.0] * (n - len(points)) + points, rules.maximum)


def _check_counts(ground_truth: Mapping[str, int]) -> None:
    if not ground_truth:
        raise InputError("the table of real videos names no task; write a line of task,videos for each")
    for task, videos in ground_truth.items():
        if isinstance(videos, bool) or not isinstance(videos, int) or not 1 <= videos <= MAX_VIDEOS:
            raise InputError(f"the counts of real videos: {task} has {videos!r}; write a whole number from 1 up")


def _grouped(annotations: Sequence[Annotation], ground_truth: Mapping[str, int], rules: Rules) -> Marks:
    marks: defaultdict[tuple[str, str], dict[str, dict[str, int]]] = defaultdict(dict)
    load: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for item in annotations:
        if item.task not in ground_truth:
            unknown = UnknownNameError("task", item.task, tuple(ground_truth))
            raise InputError(f"{item.where}: {unknown} (the tasks of the table of real videos)")
        if isinstance(item.score, bool) or item.score not in range(rules.maximum + 1):
            raise InputError(f"{item.where}: score is {item.score!r}; choose one of: {_choices(rules)}")
        at = f"{item.where}: {item.team!r}, {item.task}"
        scores = marks[item.team, item.task].setdefault(item.video, {})
        if item.annotator in scores:
            raise InputError(f"{at}: {item.annotator!r} scored video {item.video!r} before; leave one")
        scores[item.annotator] = item.score
        counts = load[item.team, item.task]
        counts[item.annotator] = counts.get(item.annotator, 0) + 1
        if len(counts) > rules.annotators:
            raise InputError(
                f"{at}: {item.annotator!r} is one annotator too many; at most {rules.annotators} score a task, here "
                f"{', '.join(repr(name) for name in sorted(set(counts) - {item.annotator}))}"
            )
        if counts[item.annotator] > rules.videos_per_annotator:
            raise InputError(
                f"{at}: video {item.video!r} is one too many for {item.annotator!r}; an annotator scores at most "
                f"{rules.videos_per_annotator} of a team and task"
            )
        if len(marks[item.team, item.task]) > ground_truth[item.task]:
            raise InputError(
                f"{at}: video {item.video!r} is one more than the {ground_truth[item.task]} real videos of the task"
            )
    return dict(marks)


def _choices(rules: Rules) -> str:
    return "; ".join(f"{score} ({meaning})" for score, meaning in enumerate(rules.scores))
