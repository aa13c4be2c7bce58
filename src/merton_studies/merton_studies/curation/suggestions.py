"""Suggestions of an agent that people correct, and their effect on the people's verdicts (A2Eval, appendix D.1).

An agent proposes the dimensions of each question before people look. Its proposals are a table, a row for each:

    question,dimension              a question may have several rows; dimension Other: it needs none of them

as .csv, .tsv, .jsonl or .parquet, or the `assignments.parquet` of a curation. A question without a row has no
suggestion, which is no "no". People who see a suggestion may lean towards it, so its agreement with them is no evidence
by itself; answers that are given without it are the measure. `verification.csv` has for this two more columns:

    suggestion,shown                yes or no each, or blank: none; whether the rater's page showed the suggestion
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from merton.errors import UnknownNameError
from merton.results.tables import name_in, read_rows
from merton.statistics.means import mean_interval
from merton.statistics.raters import RaterAgreement, cohen_kappa, fleiss_kappa
from merton_studies.curation.assignment import read_assignment
from merton_studies.curation.taxonomy import OTHER, Taxonomy

ASSIGNMENTS = "assignments.parquet"


@dataclass(frozen=True)
class SuggestedVerdict:
    """A rater's verdict on a question and a dimension that have a suggestion.

    Attributes:
        question, dimension, rater: names.
        scene: of the question; intervals are clustered by it.
        suggestion: "yes" or "no", the agent's.
        verdict: "yes" or "no", the rater's.
        shown: True if the rater saw the suggestion.
    """

    question: str
    dimension: str
    rater: str
    scene: str
    suggestion: str
    verdict: str
    shown: bool


@dataclass(frozen=True)
class SuggestionEffect:
    """Suggestions beside people's verdicts on one dimension, or on all together.

    `before`, `after` and `gain` are over all pairs of a verdict with the suggestion in sight and one without, by two
    raters, on one question. Those without are people whom no suggestion drew.

    Attributes:
        name: of the dimension, or "all".
        shown, hidden: verdicts with the suggestion in sight, and without.
        corrected: share of the shown ones that differ from the suggestion, 0..1.
        kept: Cohen's kappa of suggestions and shown verdicts; it has what people took over without a thought, too.
        before: Cohen's kappa of the suggestion and the verdict without it: of labels that nobody corrected.
        after: Cohen's kappa of the two verdicts: of labels that people corrected.
        gain: share of equal ones after less before, -1..1.
        anchoring: mean over questions with both kinds of (share of shown verdicts equal to the suggestion - share of
            hidden ones), -1..1: > 0 if the sight of a suggestion draws people. Ours: the source shows it to all.
        raters_shown, raters_hidden: Fleiss' kappa among the raters of either kind.
    """

    name: str
    shown: int
    hidden: int
    corrected: RaterAgreement
    kept: RaterAgreement
    before: RaterAgreement
    after: RaterAgreement
    gain: RaterAgreement
    anchoring: RaterAgreement
    raters_shown: RaterAgreement
    raters_hidden: RaterAgreement

    def as_json(self) -> dict[str, Any]:
        """All of it; an interval is a list."""
        return asdict(self)


def read_suggestions(path: Path, taxonomy: Taxonomy) -> dict[str, frozenset[str]]:
    """Question to the dimensions that an agent proposes; empty where it says that none of them is needed.

    Args:
        path: of a table, of `assignments.parquet`, or of the folder that has it.
        taxonomy: whose dimensions may be named.

    Raises:
        InputError: no such table, or a row that is wrong; with the line.
        UnknownNameError: a dimension that the taxonomy does not have.
        MissingDependencyError: Parquet without pyarrow.
    """
    file = path / ASSIGNMENTS if path.is_dir() else path
    found: dict[str, set[str]] = defaultdict(set)
    if file.name == ASSIGNMENTS:
        assignment = read_assignment(file)
        rows = [(str(file), *pair) for pair in zip(assignment.ids, assignment.dimension, strict=True)]
    else:
        read = read_rows(file, ("question", "dimension"))
        rows = [(where, name_in(where, row, "question"), name_in(where, row, "dimension")) for where, row in read]
    for where, question, dimension in rows:
        if dimension != OTHER and dimension not in taxonomy.names:
            raise UnknownNameError(f"{where}: dimension", dimension, (*taxonomy.names, OTHER))
        found[question] |= {dimension} - {OTHER}
    return {question: frozenset(dimensions) for question, dimensions in found.items()}


def effects(verdicts: Iterable[SuggestedVerdict], seed: int = 0) -> tuple[SuggestionEffect, ...]:
    """The effect of the suggestions per dimension by name, and last of all together if there are several.

    Args:
        verdicts: one of a rater for a question and dimension.
        seed: of the bootstrap.
    """
    ordered = sorted(verdicts, key=lambda one: (one.dimension, one.question, one.rater))
    by_dimension: dict[str, list[SuggestedVerdict]] = defaultdict(list)
    for one in ordered:
        by_dimension[one.dimension].append(one)
    if len(by_dimension) > 1:
        by_dimension["all"] = ordered
    return tuple(_effect(name, some, seed) for name, some in by_dimension.items())


def _effect(name: str, verdicts: Sequence[SuggestedVerdict], seed: int) -> SuggestionEffect:
    shown = [one for one in verdicts if one.shown]
    seen_of, free_of = _by_item(shown), _by_item([one for one in verdicts if not one.shown])
    both = [item for item in seen_of if item in free_of]
    pairs = [(one, other) for item in both for one in seen_of[item] for other in free_of[item]]
    scenes, unaided = [one.scene for one, _ in pairs], [other.verdict for _, other in pairs]
    nearer = [(one.verdict == other.verdict) - (one.suggestion == other.verdict) for one, other in pairs]
    return SuggestionEffect(
        name,
        len(shown),
        len(verdicts) - len(shown),
        _mean([float(one.verdict != one.suggestion) for one in shown], [one.scene for one in shown], 0.0),
        cohen_kappa(
            [one.suggestion for one in shown], [one.verdict for one in shown], [one.scene for one in shown], seed
        ),
        cohen_kappa([one.suggestion for one, _ in pairs], unaided, scenes, seed),
        cohen_kappa([one.verdict for one, _ in pairs], unaided, scenes, seed),
        _mean(nearer, scenes, -1.0),
        _mean(
            [_equal_share(seen_of[item]) - _equal_share(free_of[item]) for item in both],
            [seen_of[item][0].scene for item in both],
            -1.0,
        ),
        _among(seen_of, seed),
        _among(free_of, seed),
    )


_Item = tuple[str, str]


def _by_item(verdicts: Sequence[SuggestedVerdict]) -> Mapping[_Item, list[SuggestedVerdict]]:
    found: dict[_Item, list[SuggestedVerdict]] = defaultdict(list)
    for one in verdicts:
        found[one.dimension, one.question].append(one)
    return dict(found)


def _equal_share(verdicts: Sequence[SuggestedVerdict]) -> float:
    return fmean(float(one.verdict == one.suggestion) for one in verdicts)


def _among(by_item: Mapping[_Item, Sequence[SuggestedVerdict]], seed: int) -> RaterAgreement:
    rows = list(by_item.values())
    return fleiss_kappa([[one.verdict for one in row] for row in rows], [row[0].scene for row in rows], seed)


def _mean(values: Sequence[float], scenes: Sequence[str], least: float) -> RaterAgreement:
    """The mean of values from `least` to 1 with its interval by scene."""
    if not values:
        return RaterAgreement(None, None, 0, 0, 0)
    width = 1.0 - least
    interval = mean_interval([(value - least) / width for value in values], scenes).scaled(width, least)
    return RaterAgreement(fmean(values), interval, len(values), len(set(scenes)), 0)


def sentences(found: Sequence[SuggestionEffect]) -> list[str]:
    """The effects in words, a line for each dimension; and what is missing where nobody judged without a suggestion."""
    if not found:
        return []
    shown, verdicts = found[-1].shown, found[-1].shown + found[-1].hidden
    told = [f"{shown} of {verdicts} verdicts were given with a suggestion in sight; those above have them, too"]
    for one in found:
        parts = [f"{one.shown} verdicts, corrected {one.corrected.shown}, kept {one.kept.shown} (Cohen)"]
        if one.after.n:
            parts.append(f"people without it: before {one.before.shown}, after {one.after.shown} (Cohen)")
            parts.append(f"anchoring {one.anchoring.shown}")
        told.append(f"suggestions, {one.name}: {'; '.join(parts)}")
    last = found[-1]
    told.append(f"raters who saw a suggestion {last.raters_shown.shown} (Fleiss)")
    if not last.hidden:
        return [*told, "all raters saw it, so how far it drew them is not known: a study with hidden above 0 tells"]
    return [*told, f"raters who did not {last.raters_hidden.shown} (Fleiss)"]
