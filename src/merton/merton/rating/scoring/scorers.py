"""The table of the kinds of predictions that can be scored, and the matrix that their scores make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from merton.errors import InputError, UnknownNameError
from merton.rating.metric import METRICS
from merton.rating.scoring import answers, boxes, driving, programs, trajectories
from merton.results.csv_writer import write_csv

Values = dict[tuple[str, str], float]
"""(agent, case) to the value of the metric."""


@dataclass(frozen=True)
class Scorer:
    """A way from predictions to the values of a metric.

    Attributes:
        values: of a file of predictions and a file of right answers (None where `needs_truth` is False); the name of
            the file without its ending is the agent where the rows name none.
        needs_truth: whether right answers are in a file of their own.
        predictions, truth: what the files hold, for people.
    """

    values: Callable[[Path, Path | None], Values]
    needs_truth: bool
    predictions: str
    truth: str = ""


SCORERS = {
    "coco_ap": Scorer(
        boxes.values,
        True,
        "COCO's results, a JSON list of {image_id, category_id, bbox, score}",
        "COCO's annotations, JSON with images and annotations",
    ),
    "pass_all": Scorer(programs.values, False, "a table of problem, test, passed (0 or 1), perhaps agent"),
    "womd_map": Scorer(
        trajectories.values, False, "a table of case, object, bucket, confidence, miss (0 or 1), perhaps agent"
    ),
    "pdms": Scorer(driving.values, False, "a table of case, NC, DAC, EP, TTC, C, perhaps agent"),
    "acc_at_1": Scorer(answers.values, True, "a table of case, answer, perhaps agent", "a table of case, answer"),
    "mmlu": Scorer(answers.letters, True, "a table of case, answer (A to D), perhaps agent", "a table of case, answer"),
}
"""By metric."""


def scorer(metric: str) -> Scorer:
    """The scorer of a metric; UnknownNameError lists the metrics that have one."""
    if metric not in SCORERS:
        raise UnknownNameError("metric with predictions", metric, SCORERS)
    return SCORERS[metric]


def score(metric: str, predictions: Sequence[Path], truth: Path | None = None) -> Values:
    """The value of a metric for each agent on each case, by agent and case.

    Args:
        metric: of `SCORERS`.
        predictions: files, each of one agent or with a column of agents.
        truth: the right answers, for a metric that needs them.

    Raises:
        UnknownNameError: no such metric.
        InputError: a file is invalid, an agent has a case twice, or `truth` is missing or not wanted.
    """
    chosen = scorer(metric)
    if chosen.needs_truth and truth is None:
        raise InputError(f"{metric} needs the right answers: --truth FILE, {chosen.truth}")
    if truth is not None and not chosen.needs_truth:
        raise InputError(f"{metric} needs no right answers; leave out --truth")
    found: Values = {}
    for path in predictions:
        for key, value in chosen.values(path, truth).items():
            if key in found:
                raise InputError(f"{path}: agent {key[0]!r} has case {key[1]!r} in an earlier file already")
            METRICS[metric].score(value)  # a value that the metric does not have is a fault of ours
            found[key] = value
    if metric == "pass_all":
        programs.check_tests(predictions)
    if not found:
        raise InputError(f"{', '.join(path.name for path in predictions)}: nothing could be scored")
    return dict(sorted(found.items()))


def write_matrix(values: Values, out: Path) -> tuple[int, int, int]:
    """Write values as a matrix, rows agents and columns cases, blank where there is none.

    Returns:
        The numbers of agents, cases and blanks.

    Raises:
        InfrastructureError: the file cannot be written.
    """
    agents, cases = (sorted({key[place] for key in values}) for place in (0, 1))
    write_csv(out, ["agent", *cases], [[agent, *(values.get((agent, case)) for case in cases)] for agent in agents])
    return len(agents), len(cases), len(agents) * len(cases) - len(values)
