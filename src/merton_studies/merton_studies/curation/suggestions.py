"""Suggestions of an agent that people correct, and their effect on the people's verdicts (A2Eval, appendix D.1).

An agent proposes the dimensions of each question before people look. Its proposals are a table, a row for each:

    question,dimension              a question may have several rows; dimension Other: it needs none of them

as .csv, .tsv, .jsonl or .parquet, or the `assignments.parquet` of a curation. A question without a row has no
suggestion, which is no "no". People who see a suggestion may lean towards it, so its agreement with them is no evidence
by itself: `hidden` answers, given without it, are the measure. `verification.csv` has for this two more columns:

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
    """Suggestions beside people's verdicts on one dimension, or on all together. Kappas count each verdict as a row.

    Attributes:
        name: of the dimension, or "all".
        shown, hidden: verdicts with the suggestion in sight, and without.
        corrected: share of the shown ones that differ from the suggestion.
        before: Cohen's kappa of suggestions and hidden verdicts: people who were not influenced.
        kept: Cohen's kappa of suggestions and shown verdicts; it has what people took over without a thought, too.
        after: Cohen's kappa of shown and hidden verdicts of the same question, all pairs: corrected labels beside
            people who were not influenced.
        gain: share of these pairs that are equal, less the share that equals the suggestion: > 0, if corrections
            brought labels nearer to people who were not influenced; -1..1.
        anchoring: mean over questions with both kinds of (share of shown verdicts equal to the suggestion - share of
            hidden ones), -1..1: > 0 if the sight of a suggestion pulls. Ours: the source shows it to all.
        raters_shown, raters_hidden: Fleiss' kappa among the raters of either kind.
    """

    name: str
    shown: int
    hidden: int
    corrected: RaterAgreement
    before: RaterAgreement
    kept: RaterAgreement
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
    hidden = [one for one in verdicts if not one.shown]
    seen_of, free_of = _by_item(shown), _by_item(hidden)
    pairs = [(one, other) for item in seen_of if item in free_of for one in seen_of[item] for other in free_of[item]]
    nearer = [(one.verdict == other.verdict) - (one.suggestion == other.verdict) for one, other in pairs]
    both = [item for item in seen_of if item in free_of]
    pulled = [_equal_share(seen_of[item]) - _equal_share(free_of[item]) for item in both]
    return SuggestionEffect(
        name,
        len(shown),
        len(hidden),
        _mean([float(one.verdict != one.suggestion) for one in shown], [one.scene for one in shown], 0.0),
        _with_suggestion(hidden, seed),
        _with_suggestion(shown, seed),
        cohen_kappa(
            [one.verdict for one, _ in pairs],
            [other.verdict for _, other in pairs],
            [one.scene for one, _ in pairs],
            seed,
        ),
        _mean(nearer, [one.scene for one, _ in pairs], -1.0),
        _mean(pulled, [seen_of[item][0].scene for item in both], -1.0),
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


def _with_suggestion(verdicts: Sequence[SuggestedVerdict], seed: int) -> RaterAgreement:
    scenes = [one.scene for one in verdicts]
    return cohen_kappa([one.suggestion for one in verdicts], [one.verdict for one in verdicts], scenes, seed)


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
    told = []
    for one in found:
        parts = [f"corrected {one.corrected.shown} of {one.shown} shown", f"kept {one.kept.shown} (Cohen)"]
        if one.hidden:
            parts += [
                f"before {one.before.shown}, after {one.after.shown} (Cohen, with {one.hidden} answers without it)",
                f"gain {one.gain.shown}",
                f"anchoring {one.anchoring.shown}",
                f"raters without it {one.raters_hidden.shown} (Fleiss)",
            ]
        parts.append(f"raters who saw it {one.raters_shown.shown} (Fleiss)")
        told.append(f"suggestions, {one.name}: {'; '.join(parts)}")
    if found and not found[-1].hidden:
        told.append("all raters saw the suggestions, so how far these drew them is not known: set hidden above 0")
    return told
