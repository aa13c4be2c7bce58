"""Judgements of people on an assignment and on models' plans, read from tables (A2Eval, appendices D and E).

`verification.csv` has a row for each answer to "does this question need this dimension?":

    question_id,dimension,rater,verdict         verdict: yes or no; blank where the rater gave none

and perhaps the columns suggestion and shown of `merton_studies.curation.suggestions`.

`ratings.csv` has a row for each mark of a plan by one criterion:

    model,scenario,rater,criterion,score        score: a whole number from 1 (worst) to 5

Both may also be .jsonl or .parquet. `merton_studies.curation.sheet` draws the sheet that people fill in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from merton.errors import InputError, UnknownNameError
from merton.results.tables import name_in, number_in, read_rows
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton.statistics.raters import RaterAgreement, cohen_kappa, fleiss_kappa, percent_agreement, pooled_kappa
from merton_studies.curation.assignment import Assignment
from merton_studies.curation.sheet import SHOWN, sheet_id
from merton_studies.curation.suggestions import SuggestedVerdict

YES, NO = "yes", "no"
VERIFICATION = ("question_id", "dimension", "rater", "verdict")
SUGGESTED = ("suggestion", "shown")
"""Columns that a table of verdicts has besides, if an agent suggested them: yes, no or blank each."""
RATINGS = ("model", "scenario", "rater", "criterion", "score")
LEAST, MOST = 1, 5


@dataclass(frozen=True)
class Verification:
    """Verdicts of raters on a question and a dimension.

    Attributes:
        question: its id, or `sheet_id` of it.
        dimension: asked about.
        by_rater: rater to "yes" or "no".
    """

    question: str
    dimension: str
    by_rater: Mapping[str, str]

    @property
    def majority(self) -> str | None:
        """Of the raters; None if as many say yes as no."""
        votes = list(self.by_rater.values())
        yes, no = votes.count(YES), votes.count(NO)
        return None if yes == no else YES if yes > no else NO


@dataclass(frozen=True)
class DimensionAgreement:
    """Agreement about one dimension, or about all together.

    Attributes:
        name: of the dimension.
        kappa: Cohen's, of the assignment ("yes" for its own dimension) and the majority of people; None without an
            assignment.
        share: of equal verdicts of these two; None without an assignment.
        raters: Fleiss' kappa among the raters.
        tied: questions on which as many raters say yes as no: without a majority.
    """

    name: str
    kappa: RaterAgreement | None
    share: RaterAgreement | None
    raters: RaterAgreement
    tied: int


@dataclass(frozen=True)
class HumanScore:
    """A model's score by people.

    Attributes:
        model: its name.
        mean: of the marks, 1..5.
        score: 100 (mean - 1) / 4, 0..100. Ours: the worst mark is 0. The paper does not say how it scales.
        share: 100 mean / 5, 20..100: the other reading, beside it; the order of models is the same.
        interval: of `score`, 95 %, clustered by scenario; (0, 100) with one scenario.
        scenarios, raters, marks: counts.
    """

    model: str
    mean: float
    score: float
    share: float
    interval: Interval
    scenarios: int
    raters: int
    marks: int


def read_verification(paths: Sequence[Path]) -> tuple[Verification, ...]:
    """The verdicts in tables, by dimension and question; rows without a verdict are left out.

    Raises:
        InputError: no such table, or a row that is wrong or stands twice; with the line.
    """
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for (question, dimension, rater), verdict, _ in _verdicts(paths):
        found[dimension, question][rater] = verdict
    if not found:
        raise InputError(f"{', '.join(map(str, paths))}: has no verdict: write yes or no in the column verdict")
    return tuple(Verification(question, dimension, votes) for (dimension, question), votes in sorted(found.items()))


def read_suggested(paths: Sequence[Path], scenes: Mapping[str, str] | None = None) -> tuple[SuggestedVerdict, ...]:
    """The verdicts of these tables that have a suggestion; none where the columns `SUGGESTED` are absent or blank.

    Args:
        paths: as of `read_verification`.
        scenes: id of a question to its scene; each question by itself if not given.

    Raises:
        InputError: as `read_verification`; or one of the two columns is blank, and the other is not.
    """
    by_sheet = {sheet_id(name): scene for name, scene in (scenes or {}).items()}
    found = []
    for (question, dimension, rater), verdict, about in _verdicts(paths):
        if about is not None:
            scene = by_sheet.get(question, (scenes or {}).get(question, question))
            suggestion, shown = about
            found.append(SuggestedVerdict(question, dimension, rater, scene, suggestion, verdict, shown == YES))
    return tuple(found)


def _verdicts(paths: Sequence[Path]) -> Iterator[tuple[tuple[str, str, str], str, tuple[str, str] | None]]:
    """Each (question, dimension, rater) with its verdict, and perhaps the suggestion and whether it was shown."""
    seen: dict[tuple[str, ...], str] = {}
    for where, row in (p for path in paths for p in read_rows(path, VERIFICATION, optional=(*SHOWN, *SUGGESTED))):
        verdict = _yes_or_no(where, row, VERIFICATION[3])
        if not verdict:
            continue
        question, dimension, rater = (name_in(where, row, column) for column in VERIFICATION[:3])
        _once(seen, (question, dimension, rater), where, f"{rater!r} on question {question!r} and {dimension}")
        suggestion, shown = (_yes_or_no(where, row, column) for column in SUGGESTED)
        if bool(suggestion) != bool(shown):
            raise InputError(f"{where}: suggestion and shown must both be yes or no, or both be blank")
        yield (question, dimension, rater), verdict, (suggestion, shown) if suggestion else None


def _yes_or_no(where: str, row: Mapping[str, Any], column: str) -> str:
    """What a column says in small letters, "" if it is blank or absent."""
    found = str(row.get(column) or "").strip().lower()
    if found not in ("", YES, NO):
        raise InputError(f"{where}: {column} is {found[:40]!r}; it must be yes or no")
    return found


def agreement_with_people(
    verdicts: Sequence[Verification],
    assignment: Assignment | None = None,
    scenes: Mapping[str, str] | None = None,
    seed: int = 0,
) -> tuple[DimensionAgreement, ...]:
    """Agreement per dimension in the order of the taxonomy, and last of all together (A2Eval, table 9).

    Args:
        verdicts: of `read_verification`.
        assignment: whose dimensions are compared.
        scenes: id of a question to its scene, in which intervals are clustered; each question by itself if not given.
        seed: of the bootstrap.

    Raises:
        InputError: a verdict about a question or dimension that the assignment does not have.
    """
    by_sheet = {sheet_id(name): name for name in assignment.ids} if assignment else {}
    assigned = dict(zip(assignment.ids, assignment.dimension, strict=True)) if assignment else {}
    ids = [by_sheet.get(verdict.question, verdict.question) for verdict in verdicts]
    for verdict, name in zip(verdicts, ids, strict=True):
        if assignment and verdict.dimension not in assignment.taxonomy.names:
            raise UnknownNameError("dimension", verdict.dimension, assignment.taxonomy.names)
        if assignment and name not in assigned:
            raise InputError(f"question {name!r} has a verdict, but is not in the assignment")
    automatic = [
        (YES if assigned[name] == verdict.dimension else NO) if assignment else None
        for verdict, name in zip(verdicts, ids, strict=True)
    ]
    clusters = [(scenes or {}).get(name, name) for name in ids]
    there = {verdict.dimension for verdict in verdicts}
    names = [name for name in assignment.taxonomy.names if name in there] if assignment else sorted(there)
    places = {name: [place for place, verdict in enumerate(verdicts) if verdict.dimension == name] for name in names}
    if len(names) > 1:
        places["all"] = list(range(len(verdicts)))
    return tuple(
        _of_dimension(name, [verdicts[place] for place in some], [automatic[place] for place in some],
                      [clusters[place] for place in some], assignment is not None, seed)
        for name, some in places.items()
    )  # fmt: skip


def _of_dimension(
    name: str,
    verdicts: Sequence[Verification],
    automatic: Sequence[str | None],
    clusters: Sequence[str],
    compared: bool,
    seed: int,
) -> DimensionAgreement:
    people = [verdict.majority for verdict in verdicts]
    raters = fleiss_kappa([list(verdict.by_rater.values()) for verdict in verdicts], clusters, seed)
    kappa = cohen_kappa(automatic, people, clusters, seed) if compared else None
    share = percent_agreement(list(zip(automatic, people, strict=True)), clusters) if compared else None
    return DimensionAgreement(name, kappa, share, raters, sum(majority is None for majority in people))


def read_ratings(path: Path) -> tuple[tuple[HumanScore, ...], RaterAgreement]:
    """The score of each model, best first, and the agreement of all raters in marks (quadratic weights), by scenario.

    A plan's mark by one rater is the mean over its criteria, which weigh the same; then the mean over raters, then
    over scenarios (appendix E.7).

    Raises:
        InputError: no such table, a row that is wrong or stands twice, with the line, or a model without a scenario
            that others have.
    """
    marks: dict[str, dict[str, dict[str, list[float]]]] = {}
    scored: dict[tuple[str, tuple[str, str, str]], float] = {}
    seen: dict[tuple[str, ...], str] = {}
    for where, row in read_rows(path, RATINGS):
        model, scenario, rater, criterion = (name_in(where, row, column) for column in RATINGS[:4])
        score = number_in(where, row, "score", LEAST, MOST)
        if score != int(score):
            raise InputError(f"{where}: score is {score:g}; it must be a whole number from {LEAST} to {MOST}")
        _once(seen, (model, scenario, rater, criterion), where, f"{rater!r} on {model!r}, {scenario!r}, {criterion!r}")
        marks.setdefault(model, {}).setdefault(scenario, {}).setdefault(rater, []).append(score)
        scored[rater, (model, scenario, criterion)] = score
    if not marks:
        raise InputError(f"{path}: has no rating")
    scenarios = sorted({scenario for of_model in marks.values() for scenario in of_model})
    for model, of_model in marks.items():
        missing = [scenario for scenario in scenarios if scenario not in of_model]
        if missing:
            raise InputError(f"{path}: model {model!r} has no rating in scenario {missing[0]!r}, which others have")
    found = sorted((_human_score(model, of_model) for model, of_model in marks.items()), key=_best_first)
    scenario_of = {item: item[1] for _, item in scored}
    return tuple(found), pooled_kappa(scored, scenario_of).kappa


def _human_score(model: str, marks: Mapping[str, Mapping[str, Sequence[float]]]) -> HumanScore:
    means = [float(np.mean([np.mean(by_one) for _, by_one in sorted(marks[name].items())])) for name in sorted(marks)]
    mean = float(np.mean(means))
    interval = mean_interval([(value - LEAST) / (MOST - LEAST) for value in means], range(len(means)))
    raters = {rater for by_rater in marks.values() for rater in by_rater}
    count = sum(len(by_one) for by_rater in marks.values() for by_one in by_rater.values())
    score = 100.0 * (mean - LEAST) / (MOST - LEAST)
    return HumanScore(model, mean, score, 100.0 * mean / MOST, interval.scaled(100.0), len(marks), len(raters), count)


def _best_first(score: HumanScore) -> tuple[float, str]:
    return -score.mean, score.model


def _once(seen: dict[tuple[str, ...], str], key: tuple[str, ...], where: str, what: str) -> None:
    first = seen.setdefault(key, where)
    if first != where:
        raise InputError(f"{where}: {what} stands twice, first in {first}")


def mean_kappa(found: Iterable[DimensionAgreement]) -> float | None:
    """The mean of the dimensions' kappas, as table 9 has it; None where one is undefined. It has no interval."""
    kappas = [one.kappa.value for one in found if one.kappa is not None and one.name != "all"]
    known = [kappa for kappa in kappas if kappa is not None]
    return float(np.mean(known)) if known and len(known) == len(kappas) else None
