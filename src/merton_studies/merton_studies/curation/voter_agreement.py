"""Agreement of voters without an LLM with people: accuracy and Cohen's kappa, on questions they have not learnt from.

With shots, scenes are dealt to folds at random; the voters of a fold learn from shots drawn from the other folds and
vote on it. This is repeated with other folds and shots, and everything is a mean over the draws. Intervals are 95 %,
from a bootstrap over scenes that has the same resamples for voters and baseline. They hold for these draws of shots:
`scatter` says how much one draw differs from another.

The baseline is the simplest one that learns from the same shots: the nearest centroid of TF-IDF of words and pairs.
Without shots it is the definition with the nearest TF-IDF.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, require
from merton.progress import OnProgress, unseen
from merton.seeding import generator
from merton.statistics.intervals import Interval
from merton.statistics.resampling import interval, resamples
from merton_studies.curation.agents import Voter
from merton_studies.curation.assignment import assign
from merton_studies.curation.computed.learners import Shot, shot_voters
from merton_studies.curation.computed.matchers import zero_shot_voters
from merton_studies.curation.computed.texts import Remembered, full_texts
from merton_studies.curation.induction import Embed
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.curation.taxonomy import OTHER, Taxonomy

SHOTS, FOLDS, DRAWS = 10, 5, 20
"""Shots of each dimension, folds, and draws of folds and shots."""
VOTE, BASELINE = "vote", "baseline"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AssignmentAgreement:
    """One way to assign, compared with people.

    Attributes:
        accuracy, kappa: mean over the draws; kappa is Cohen's, unweighted.
        accuracy_interval, kappa_interval: 95 %; None with one scene.
        scatter: standard deviation of kappa between draws; 0 for one.
    """

    accuracy: float
    accuracy_interval: Interval | None
    kappa: float
    kappa_interval: Interval | None
    scatter: float


@dataclass(frozen=True)
class VoterAgreement:
    """Voters compared with people.

    Attributes:
        shots: of each dimension; 0 for none.
        draws: of folds and shots.
        questions, scenes: that count.
        of: "vote", "baseline" and the name of each voter to its agreement.
        gain: kappa of the vote less that of the baseline, and its interval.
        confusion: (dimensions, dimensions + 1) mean number of questions by people's dimension (rows) and the vote
            (columns), in the order of the taxonomy; the last column is "Other".
        contested: share of the questions.
    """

    shots: int
    draws: int
    questions: int
    scenes: int
    of: dict[str, AssignmentAgreement]
    gain: tuple[float, Interval | None]
    confusion: Floats
    contested: float


def voter_agreement(
    pool: Pool,
    taxonomy: Taxonomy,
    embed: Embed,
    shots: int = SHOTS,
    folds: int = FOLDS,
    seed: int = 0,
    draws: int = DRAWS,
    on_progress: OnProgress = unseen,
) -> VoterAgreement:
    """Compare the computed voters with `Question.dimension`; questions without one are left out.

    Args:
        embed: texts to (n, d) rows of norm 1.
        shots: of each dimension; of one with fewer in the other folds, all of them. 0: nothing is learnt, one draw.
        on_progress: called with (done, total) in folds.

    Raises:
        InputError: no dimensions given by people, one that is not in the taxonomy, or fewer scenes than folds.
    """
    questions = _judged(pool, taxonomy)
    scenes = sorted({question.unit_of_intervals for question in questions})
    if shots and (folds < 2 or len(scenes) < folds):
        raise InputError(f"{folds} folds by scene need at least 2 folds and as many scenes; there are {len(scenes)}")
    remembered = embed if isinstance(embed, Remembered) else Remembered(embed)
    remembered(full_texts(questions))
    draws, folds = (draws, folds) if shots else (1, 1)
    codes: dict[str, list[Floats]] = defaultdict(list)
    contested: list[float] = []
    place = {question.id: index for index, question in enumerate(questions)}
    number = {name: index for index, name in enumerate((*taxonomy.names, OTHER))}
    for draw in range(draws):
        found: dict[str, Floats] = defaultdict(lambda: np.full(len(questions), number[OTHER]))
        for fold, (known, asked) in enumerate(_folds(questions, scenes, folds, seed, draw)):
            drawn = _shots(known, taxonomy, shots, seed, draw, fold)
            voters = shot_voters(taxonomy, drawn, remembered) if shots else zero_shot_voters(remembered)
            for name, ids, votes in _votes(pool, asked, taxonomy, voters, drawn, contested):
                rows = [place[one] for one in ids]
                found[name][rows] = [number.get(vote or OTHER, number[OTHER]) for vote in votes]
            on_progress(draw * folds + fold + 1, draws * folds)
        for name, code in found.items():
            codes[name].append(code)
    return _told(questions, taxonomy, shots, codes, contested, seed)


def _judged(pool: Pool, taxonomy: Taxonomy) -> list[Question]:
    found = [question for question in pool.questions if question.dimension]
    if not found:
        raise InputError("no question of this pool has a dimension given by people, so there is nothing to agree with")
    for question in found:
        if question.dimension not in (*taxonomy.names, OTHER):
            raise InputError(
                f"people gave question {question.id!r} the dimension {question.dimension!r}, which the taxonomy "
                f"{taxonomy.name!r} does not have: {', '.join(taxonomy.names)}"
            )
    return found


def _folds(
    questions: Sequence[Question], scenes: Sequence[str], folds: int, seed: int, draw: int
) -> Iterator[tuple[list[Question], list[Question]]]:
    """Of each fold, the questions of the other scenes, and its own."""
    order = generator("folds of voters", seed, draw).permutation(len(scenes))
    fold_of = {scenes[index]: rank % folds for rank, index in enumerate(order)}
    for fold in range(folds):
        own = [fold_of[question.unit_of_intervals] == fold for question in questions]
        yield (
            [question for question, asked in zip(questions, own, strict=True) if not asked],
            [question for question, asked in zip(questions, own, strict=True) if asked],
        )


def _shots(known: Sequence[Question], taxonomy: Taxonomy, shots: int, seed: int, draw: int, fold: int) -> list[Shot]:
    drawn = []
    for name in taxonomy.names:
        own = [question for question in known if question.dimension == name]
        order = generator("shots", seed, draw, fold, name).permutation(len(own))[:shots]
        drawn += [Shot(own[index], name) for index in order]
    return drawn


def _votes(
    pool: Pool,
    asked: Sequence[Question],
    taxonomy: Taxonomy,
    voters: Sequence[Voter],
    drawn: Sequence[Shot],
    contested: list[float],
) -> Iterator[tuple[str, Sequence[str], Sequence[str | None]]]:
    """Name, ids and dimensions of the vote, of each voter, and of the baseline."""
    assigned = assign(pool.subset(question.id for question in asked), taxonomy, voters)
    contested += assigned.contested.astype(float).tolist()
    yield VOTE, assigned.ids, assigned.dimension
    for column, name in enumerate(assigned.voters):
        yield name, assigned.ids, [votes[column] for votes in assigned.votes]
        if name == "words" and not drawn:
            yield BASELINE, assigned.ids, [votes[column] for votes in assigned.votes]
    if drawn:
        yield BASELINE, [question.id for question in asked], _baseline(asked, drawn)


def _baseline(asked: Sequence[Question], drawn: Sequence[Shot]) -> list[str | None]:
    text = require("sklearn.feature_extraction.text", "curation", "voters without an LLM")
    features = text.TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    known = features.fit_transform(full_texts([shot.question for shot in drawn])).toarray()
    labels = np.array([shot.dimension for shot in drawn])
    names = sorted(set(labels))
    centers = np.stack([known[labels == name].mean(axis=0) for name in names])
    # half the squared distance, but for a part that is the same for all centers
    distances = (centers**2).sum(axis=1) / 2 - features.transform(full_texts(asked)).toarray() @ centers.T
    return [names[nearest] for nearest in distances.argmin(axis=1)]


def _told(
    questions: Sequence[Question],
    taxonomy: Taxonomy,
    shots: int,
    codes: dict[str, list[Floats]],
    contested: Sequence[float],
    seed: int,
) -> VoterAgreement:
    kinds = len(taxonomy.names) + 1
    truth = np.array([(*taxonomy.names, OTHER).index(question.dimension) for question in questions])
    drawn = resamples([question.unit_of_intervals for question in questions], "voter agreement", seed)
    weights = np.vstack([np.ones(drawn.weights.shape[1]), drawn.weights])
    values = {}
    for name, of_draws in codes.items():
        tables = [_tables(truth, code.astype(int), drawn.scene, weights, kinds) for code in of_draws]
        values[name] = np.stack([_statistics(table) for table in tables])  # (draws, 2, resamples)
        if name == VOTE:
            confusion = np.mean([table[0] for table in tables], axis=0)[:-1]
    mean = {name: value.mean(axis=0) for name, value in values.items()}
    gain = mean[VOTE][1] - mean[BASELINE][1]
    return VoterAgreement(
        shots,
        len(codes[VOTE]),
        len(questions),
        weights.shape[1],
        {
            name: AssignmentAgreement(
                float(mean[name][0][0]),
                interval(mean[name][0][1:]),
                float(mean[name][1][0]),
                interval(mean[name][1][1:]),
                float(values[name][:, 1, 0].std(ddof=1)) if len(values[name]) > 1 else 0.0,
            )
            for name in values
        },
        (float(gain[0]), interval(gain[1:])),
        confusion,
        float(np.mean(contested)),
    )


def _tables(
    truth: NDArray[np.intp], code: NDArray[np.intp], scene: NDArray[np.int64], weights: Floats, kinds: int
) -> Floats:
    """(1 + resamples, kinds, kinds) how often people said one thing and the voters another."""
    scenes = weights.shape[1]
    cell = (scene * kinds + truth) * kinds + code
    counts = np.bincount(cell, minlength=scenes * kinds * kinds).reshape(scenes, kinds * kinds)
    return (weights @ counts).reshape(-1, kinds, kinds)


def _statistics(tables: Floats) -> Floats:
    """(2, resamples) accuracy and kappa of each table; a kappa without two categories is NaN."""
    n = tables.sum(axis=(1, 2))
    agreed = np.trace(tables, axis1=1, axis2=2) / n
    chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / n**2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([agreed, np.where(chance < 1, (agreed - chance) / (1 - chance), np.nan)])
