"""The statistics of a study: agreement by criterion and group, each rater's work, and the items missing yet."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median, stdev
from typing import Any

import merton
from merton.results.text import counted
from merton.statistics.alpha import krippendorff_alpha
from merton.statistics.intraclass import Intraclass, intraclass
from merton.statistics.raters import (
    PairKappa,
    RaterAgreement,
    cohen_kappa,
    fleiss_kappa,
    percent_agreement,
    weighted_kappa,
)
from merton_studies.people.attention import Care, care
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.project import Attention, Project
from merton_studies.people.protocol import Protocol, Scale
from merton_studies.people.rating import ItemRating
from merton_studies.people.ratings import independent, ratings_of
from merton_studies.people.screening import Screened, screen

LEAST_ITEMS, LEAST_SCENES = 30, 20
"""Items with two ratings, and their scenes, from which on the intervals hold: see tools/studies/people_coverage.py."""
GROUPS = ("dimension", "task", "scenario", "distortion")
"""Facts of items by which agreement is split, where there are 2 to `MOST_GROUPS` values of `LEAST_IN_GROUP` items."""
MOST_GROUPS, LEAST_IN_GROUP = 40, 5
MOST_IN_PAIRS = 10
"""Most raters whose kappas of pairs are shown: of more there would be too many to read."""


@dataclass(frozen=True)
class Missing:
    """Numbers of further items with two ratings, and of further scenes, without which an interval is not reliable."""

    items: int
    scenes: int

    def __bool__(self) -> bool:
        return bool(self.items or self.scenes)

    @property
    def shown(self) -> str:
        """Such as "not enough yet: 12 more items with two ratings, 3 more scenes"; empty if enough."""
        parts = []
        if self.items:
            parts.append(f"{counted(self.items, 'more item')} with two ratings")
        if self.scenes:
            parts.append(counted(self.scenes, "more scene"))
        return f"not enough yet: {', '.join(parts)}" if parts else ""


@dataclass(frozen=True)
class CriterionAgreement:
    """Agreement of the raters by one criterion, on all items or on a group of them.

    Attributes:
        criterion: of the protocol.
        scale: of its values.
        group: "fact: value" of the items; empty for all.
        ratings: that agreement is computed from: no repeats, gold items or top-ups.
        counts: (value, times), in the order of the values.
        mean, deviation: of the ratings on a scale with numbers; None on a nominal one, or without two ratings.
        share: of pairs of ratings of an item that are equal.
        fleiss: Fleiss' kappa; None on scales with numbers, which have `intraclass`.
        alpha: Krippendorff's, for this scale.
        without_careless: the same without the raters who are marked as careless; None if none is.
        intraclass: correlations; None on a nominal scale.
        pairs: kappas of all pairs of raters with an item in common; empty for a group, or with many raters.
        missing: until there is enough.
    """

    criterion: str
    scale: Scale
    group: str
    ratings: int
    counts: tuple[tuple[float | str, int], ...]
    mean: float | None
    deviation: float | None
    share: RaterAgreement
    fleiss: RaterAgreement | None
    alpha: RaterAgreement
    without_careless: RaterAgreement | None
    intraclass: Intraclass | None
    pairs: tuple[PairKappa, ...]
    missing: Missing


@dataclass(frozen=True)
class RaterStatistics:
    """One rater's work.

    Attributes:
        rater: pseudonym.
        seconds: median of an answer [s].
        care: by the project's rules of attention.
        screened: agreement with others, bias, rejection; None before the first value.
        marks: a sentence for each reason for which the rater's work should be looked at: those of both.
    """

    rater: str
    seconds: float
    care: Care
    screened: Screened | None
    marks: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """The statistics of a study.

    Attributes:
        project, title, protocol: of the project file.
        definition_sha256: of the project's definition.
        seed: of the bootstrap: the project's.
        version: of Merton.
        items: of the project, gold items apart; `gold_items`: those.
        complete: items with as many ratings as the project asks for.
        wanted: further answers until all are complete.
        answers: that stand.
        agreements: of each criterion on all items.
        groups: of each criterion on each group of items.
        raters: by pseudonym.
    """

    project: str
    title: str
    protocol: str
    definition_sha256: str
    seed: int
    version: str
    items: int
    gold_items: int
    complete: int
    wanted: int
    answers: int
    agreements: tuple[CriterionAgreement, ...]
    groups: tuple[CriterionAgreement, ...]
    raters: tuple[RaterStatistics, ...]

    @property
    def missing(self) -> tuple[tuple[tuple[str, ...], Missing], ...]:
        """Items and scenes that are missing yet, with the criteria that miss them; empty if all have enough."""
        found: dict[Missing, list[str]] = defaultdict(list)
        for one in self.agreements:
            if one.missing:
                found[one.missing].append(one.criterion)
        return tuple((tuple(criteria), missing) for missing, criteria in found.items())

    def as_json(self) -> str:
        """All of it as JSON with a line end; the same study and seed give the same bytes."""
        return json.dumps(_plain(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def summary(
    project: Project, items: Sequence[Item], protocol: Protocol, answers: Sequence[Answer], definition_sha256: str = ""
) -> Summary:
    """The statistics of a study.

    Args:
        project: its settings.
        items: of it.
        protocol: its rules.
        answers: that stand, as `Ledger.answers` gives them.
        definition_sha256: of the project's definition.

    Raises:
        InputError: an answer to an item that the project does not have.
    """
    ratings = ratings_of(items, protocol, answers)
    screened = screen(ratings, protocol.criteria, project.seed)
    careless = frozenset(one.rater for one in screened if one.careless)
    used, facts = independent(ratings), {item.id: item.facts for item in items}
    by_group: dict[str, list[ItemRating]] = defaultdict(list)
    for fact in GROUPS:
        values = Counter(item.facts[fact] for item in items if fact in item.facts)
        if 2 <= len(values) <= MOST_GROUPS and values.total() >= LEAST_IN_GROUP * len(values):
            for rating in used:
                if fact in facts[rating.item]:
                    by_group[f"{fact}: {facts[rating.item][fact]}"].append(rating)
    ordinary = [item.id for item in items if item.gold is None]
    rated = Counter(
        item for item, _ in {(one.item, one.rater) for one in answers if one.kind not in ("gold", "review")}
    )
    lacking = [max(project.ratings - rated[item], 0) for item in ordinary]
    return Summary(
        project.name,
        project.title,
        protocol.name,
        definition_sha256,
        project.seed,
        merton.__version__,
        len(ordinary),
        len(items) - len(ordinary),
        lacking.count(0),
        sum(lacking),
        len(answers),
        tuple(
            agreement_of(used, criterion, scale, careless=careless, seed=project.seed)
            for criterion, scale in protocol.criteria.items()
        ),
        tuple(
            agreement_of(some, criterion, scale, group, careless, project.seed)
            for criterion, scale in protocol.criteria.items()
            for group, some in sorted(by_group.items())
        ),
        _raters(project.attention, items, protocol, answers, screened),
    )


def agreement_of(
    ratings: Iterable[ItemRating],
    criterion: str,
    scale: Scale,
    group: str = "",
    careless: frozenset[str] = frozenset(),
    seed: int = 0,
) -> CriterionAgreement:
    """Agreement by one criterion. A rater has one rating of an item; `independent` leaves no other.

    Args:
        ratings: of `independent`; those of other criteria play no part.
        criterion, scale: of the protocol.
        group: see `CriterionAgreement`.
        careless: raters to be left out of `without_careless`.
        seed: of the bootstrap.
    """
    of_item: dict[str, dict[str, float | str]] = defaultdict(dict)
    scene: dict[str, str] = {}
    for rating in ratings:
        if rating.criterion == criterion:
            of_item[rating.item][rating.rater] = rating.value
            scene[rating.item] = rating.scene
    names = sorted(of_item)
    table, scenes = [of_item[name] for name in names], [scene[name] for name in names]
    values = [value for row in table for value in row.values()]
    texts = [[str(value) for value in row.values()] for row in table]
    nominal = scale == "nominal"
    numbers = [] if nominal else [float(value) for value in values]
    kept = [{rater: value for rater, value in row.items() if rater not in careless} for row in table]
    alpha = krippendorff_alpha([list(row.values()) for row in table], scale, scenes, seed)
    scores = [{rater: float(value) for rater, value in row.items()} for row in table] if not nominal else []
    return CriterionAgreement(
        criterion,
        scale,
        group,
        len(values),
        tuple(sorted(Counter(values).items(), key=lambda one: (one[0],))),
        fmean(numbers) if numbers else None,
        stdev(numbers) if len(numbers) > 1 else None,
        percent_agreement(texts, scenes),
        fleiss_kappa(texts, scenes, seed) if nominal else None,
        alpha,
        krippendorff_alpha([list(row.values()) for row in kept], scale, scenes, seed)
        if any(len(row) < len(whole) for row, whole in zip(kept, table, strict=True))
        else None,
        None if nominal else intraclass(scores, scenes, seed),
        () if group else _pairs(table, scenes, nominal, seed),
        Missing(max(LEAST_ITEMS - alpha.n, 0), max(LEAST_SCENES - alpha.clusters, 0)),
    )


def _pairs(
    table: Sequence[Mapping[str, float | str]], scenes: Sequence[str], nominal: bool, seed: int
) -> tuple[PairKappa, ...]:
    raters = sorted({rater for row in table for rater in row})
    found = []
    for first, second in combinations(raters, 2) if len(raters) <= MOST_IN_PAIRS else ():
        both = [place for place, row in enumerate(table) if first in row and second in row]
        if not both:
            continue
        own = [scenes[place] for place in both]
        one, other = ([table[place][name] for place in both] for name in (first, second))
        kappa = (
            cohen_kappa([str(value) for value in one], [str(value) for value in other], own, seed)
            if nominal
            else weighted_kappa([float(v) for v in one], [float(v) for v in other], "quadratic", own, seed)
        )
        found.append(PairKappa(first, second, kappa))
    return tuple(found)


def _raters(
    rules: Attention,
    items: Sequence[Item],
    protocol: Protocol,
    answers: Sequence[Answer],
    screened: Sequence[Screened],
) -> tuple[RaterStatistics, ...]:
    known = {one.rater: one for one in screened}
    in_order = sorted(answers, key=lambda one: (one.rater, one.number))
    seconds = defaultdict(list)
    for one in answers:
        if one.kind != "review":
            seconds[one.rater].append(one.seconds)
    found = []
    for rater, own in care(rules, protocol, {item.id: item for item in items}, in_order).items():
        marks = (*own.reasons, *_marks(known.get(rater)))
        found.append(RaterStatistics(rater, median(seconds[rater]), own, known.get(rater), marks))
    return tuple(found)


def _marks(screened: Screened | None) -> list[str]:
    found = []
    if screened is not None:
        if screened.constant:
            found.append("always the same answer")
        elif screened.careless:
            found.append("agrees with the others no better than chance")
        if screened.rejection is not None and screened.rejection.rejected:
            found.append("rejected by ITU-R BT.500")
    return found


def _plain(value: Any) -> Any:
    """Dataclasses as objects by the names of their fields, and tuples as lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return shown | ({"sentence": value.shown} if isinstance(value, Missing) else {})
    return [_plain(one) for one in value] if isinstance(value, (tuple, list)) else value
